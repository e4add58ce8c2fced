package replicaset

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// status is what a ReplicaSet reports of what is seen, and of what failed.
func (s seen) status(failed *failure) appsv1.ReplicaSetStatus {
	pods, template := s.active(), labels.SelectorFromSet(s.set.Spec.Template.Labels)
	terminating := int32(len(s.pods) - len(pods))
	out := appsv1.ReplicaSetStatus{
		ObservedGeneration:  s.set.Generation,
		Replicas:            int32(len(pods)),
		TerminatingReplicas: &terminating,
		Conditions:          s.conditions(failed),
	}
	for _, p := range pods {
		if template.Matches(labels.Set(p.Labels)) {
			out.FullyLabeledReplicas++
		}
		if ready(p) {
			out.ReadyReplicas++
		}
		if s.availableIn(p) == 0 {
			out.AvailableReplicas++
		}
	}
	return out
}

// never is when a pod will be available that is not ready.
const never = time.Duration(-1)

// availableIn is how long it takes until a pod counts as available, if it stays
// ready: 0 if it is now, never if it is not ready.
func (s seen) availableIn(p *corev1.Pod) time.Duration {
	since, ok := readySince(p)
	least := time.Duration(s.set.Spec.MinReadySeconds) * time.Second
	switch {
	case !ok, least > 0 && since.IsZero():
		return never
	case least == 0:
		return 0
	}
	return max(since.Add(least).Sub(s.now), 0)
}

// untilAvailable is when the next pod becomes available; 0 if none is waited for.
func (s seen) untilAvailable() time.Duration {
	var next time.Duration
	for _, p := range s.active() {
		if in := s.availableIn(p); in > 0 && (next == 0 || in < next) {
			next = in
		}
	}
	return next
}

// conditions tell of a failure from its first time until there is none. Its message
// stays, for it may name another pod each time, and each write would be the cause of
// another try.
func (s seen) conditions(failed *failure) []appsv1.ReplicaSetCondition {
	out := slices.Clone(s.set.Status.Conditions)
	i := slices.IndexFunc(out, func(c appsv1.ReplicaSetCondition) bool { return c.Type == appsv1.ReplicaSetReplicaFailure })
	switch {
	case failed == nil && i < 0, failed != nil && i >= 0 && out[i].Reason == failed.reason:
		return out
	case i >= 0:
		out = slices.Delete(out, i, i+1)
	}
	if failed == nil {
		return out
	}
	return append(out, appsv1.ReplicaSetCondition{
		Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: failed.reason,
		Message: message(failed.err), LastTransitionTime: metav1.NewTime(s.now).Rfc3339Copy(),
	})
}
