package job

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tracked reports whether a pod waits to be counted.
func tracked(p *corev1.Pod) bool { return slices.Contains(p.Finalizers, batchv1.JobTrackingFinalizer) }

// over reports whether a pod's containers have come to their end.
func over(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

func active(p *corev1.Pod) bool { return !over(p) && p.DeletionTimestamp == nil }

func terminating(p *corev1.Pod) bool { return !over(p) && p.DeletionTimestamp != nil }

// hasFailed reports whether a pod counts as failed: as soon as it is being deleted,
// unless the job waits for its end.
func hasFailed(job *batchv1.Job, p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodFailed || terminating(p) && !replacesFailedOnly(job)
}

func replacesFailedOnly(job *batchv1.Job) bool {
	return job.Spec.PodReplacementPolicy != nil && *job.Spec.PodReplacementPolicy == batchv1.Failed
}

func readySince(p *corev1.Pod) (since time.Time, ok bool) {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.LastTransitionTime.Time, c.Status == corev1.ConditionTrue
		}
	}
	return time.Time{}, false
}

func ready(p *corev1.Pod) bool {
	_, ok := readySince(p)
	return ok
}

// compare puts the pod first that goes first if there are too many: who has done
// least, was restarted most often, and is youngest.
func compare(a, b *corev1.Pod) int {
	sinceA, readyA := readySince(a)
	sinceB, readyB := readySince(b)
	return cmp.Or(
		falseFirst(a.Spec.NodeName != "", b.Spec.NodeName != ""),
		cmp.Compare(slices.Index(phases, a.Status.Phase), slices.Index(phases, b.Status.Phase)),
		falseFirst(readyA, readyB),
		sinceB.Compare(sinceA),
		cmp.Compare(restarts(b), restarts(a)),
		b.CreationTimestamp.Compare(a.CreationTimestamp.Time),
		cmp.Compare(a.UID, b.UID),
	)
}

// phases are in the order in which their pods go.
var phases = []corev1.PodPhase{corev1.PodPending, corev1.PodUnknown, corev1.PodRunning}

func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// restarts is how often containers of a pod were started again.
func restarts(p *corev1.Pod) int {
	n := 0
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		n += int(c.RestartCount)
	}
	return n
}

// slot is a pod to be made.
type slot struct {
	index int // or none
	// failures and ignored are those of the index before it.
	failures, ignored int
}

// maxPrefix leaves room for what the server appends to a name.
const maxPrefix = 58

// podOf is a pod as the template has it.
func podOf(job *batchv1.Job, of slot) *corev1.Pod {
	t := job.Spec.Template.DeepCopy()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: job.Namespace, GenerateName: job.Name + "-",
			Labels: maps.Clone(t.Labels), Annotations: maps.Clone(t.Annotations), Finalizers: t.Finalizers,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))},
		},
		Spec: t.Spec,
	}
	if !tracked(pod) {
		pod.Finalizers = append(pod.Finalizers, batchv1.JobTrackingFinalizer)
	}
	if of.index != none {
		number(job, pod, of)
	}
	return pod
}

// number gives a pod its completion index.
func number(job *batchv1.Job, pod *corev1.Pod, of slot) {
	text := strconv.Itoa(of.index)
	suffix := "-" + text + "-"
	pod.GenerateName = job.Name[:min(len(job.Name), maxPrefix-len(suffix))] + suffix
	pod.Spec.Hostname = fmt.Sprintf("%s-%s", job.Name, text)
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Labels[batchv1.JobCompletionIndexAnnotation] = text
	pod.Annotations[batchv1.JobCompletionIndexAnnotation] = text
	if job.Spec.BackoffLimitPerIndex != nil {
		pod.Annotations[batchv1.JobIndexFailureCountAnnotation] = strconv.Itoa(of.failures)
		if of.ignored > 0 {
			pod.Annotations[batchv1.JobIndexIgnoredFailureCountAnnotation] = strconv.Itoa(of.ignored)
		}
	}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			tellIndex(&containers[i])
		}
	}
}

const indexVariable = "JOB_COMPLETION_INDEX"

func tellIndex(c *corev1.Container) {
	if slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == indexVariable }) {
		return
	}
	c.Env = append(c.Env, corev1.EnvVar{Name: indexVariable, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: fmt.Sprintf("metadata.labels['%s']", batchv1.JobCompletionIndexAnnotation)},
	}})
}
