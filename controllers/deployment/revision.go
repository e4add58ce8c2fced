package deployment

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A ReplicaSet notes the revision of its Deployment that it stands for, and, if it
// came back, those that it stood for before. The Deployment has the newest.
const (
	revisionAnnotation = "deployment.kubernetes.io/revision"
	historyAnnotation  = "deployment.kubernetes.io/revision-history"
)

// maxHistory is how long a history may be, in bytes; the oldest go.
const maxHistory = 2000

// notCopied are the annotations of a Deployment that its ReplicaSets do not get.
var notCopied = []string{
	corev1.LastAppliedConfigAnnotation, revisionAnnotation, historyAnnotation, desiredAnnotation, maxAnnotation,
	appsv1.DeprecatedRollbackTo,
}

// revisionOf is the revision that an object notes; 0 is none.
func revisionOf(set *appsv1.ReplicaSet) int64 {
	n, _ := strconv.ParseInt(set.Annotations[revisionAnnotation], 10, 64)
	return n
}

// revision is what the Deployment is to note; "" is nothing.
func (s seen) revision() string {
	if p := s.split().new; p != nil {
		return p.set.Annotations[revisionAnnotation]
	}
	return ""
}

// annotate has the new ReplicaSet note what its Deployment does, and the next
// revision if another has a later one.
func (s seen) annotate(set *appsv1.ReplicaSet) {
	for k, v := range s.deployment.Annotations {
		if !slices.Contains(notCopied, k) {
			metav1.SetMetaDataAnnotation(&set.ObjectMeta, k, v)
		}
	}
	next := int64(1)
	for _, p := range s.split().old {
		next = max(next, revisionOf(p.set)+1)
	}
	was, is := set.Annotations[revisionAnnotation], revisionOf(set)
	if is >= next {
		return
	}
	metav1.SetMetaDataAnnotation(&set.ObjectMeta, revisionAnnotation, strconv.FormatInt(next, 10))
	if was != "" {
		set.Annotations[historyAnnotation] = longer(set.Annotations[historyAnnotation], was)
	}
}

// longer is a history with one more revision.
func longer(history, revision string) string {
	if history == "" {
		return revision
	}
	history += "," + revision
	for len(history) > maxHistory {
		_, history, _ = strings.Cut(history, ",")
	}
	return history
}

// withoutHash is a template as its Deployment has it. It shares all but its labels.
func withoutHash(t *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	if _, ok := t.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; !ok {
		return t
	}
	out := *t
	out.Labels = maps.Clone(t.Labels)
	delete(out.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return &out
}
