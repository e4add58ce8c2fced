package job

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// How long a pod that failed is not replaced: that doubles with each failure.
const (
	firstDelay = 10 * time.Second
	mostDelay  = 10 * time.Minute
)

// backoff is how many pods of a job have failed since one succeeded.
type backoff struct {
	failures int
	last     time.Time
	counted  map[types.UID]bool // of pods that still have their finalizer
}

// after is b and the pods that have ended since.
func (b backoff) after(job *batchv1.Job, pods []*corev1.Pod) backoff {
	now := map[types.UID]bool{}
	var fresh []*corev1.Pod
	for _, p := range pods {
		if !tracked(p) || p.Status.Phase != corev1.PodSucceeded && !hasFailed(job, p) {
			continue
		}
		if now[p.UID] = true; !b.counted[p.UID] {
			fresh = append(fresh, p)
		}
	}
	b.counted = now
	return b.add(job, fresh)
}

// since is what can be told when nothing is known: it is of pods that were counted
// and are still there.
func since(job *batchv1.Job, pods []*corev1.Pod) backoff {
	return backoff{}.add(job, slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return tracked(p) || !over(p) }))
}

func (b backoff) add(job *batchv1.Job, pods []*corev1.Pod) backoff {
	var success time.Time
	for _, p := range pods {
		if p.Status.Phase == corev1.PodSucceeded {
			b.failures, b.last = 0, time.Time{}
			success = latest(success, endOf(p))
		}
	}
	for _, p := range pods {
		if end := endOf(p); hasFailed(job, p) && (success.IsZero() || end.After(success)) {
			b.failures++
			b.last = latest(b.last, end)
		}
	}
	return b
}

// wait is how long no pod may be made.
func (b backoff) wait(now time.Time) time.Duration { return delay(b.failures, b.last, now) }

// delay is how long to wait after the last of some failures in a row.
func delay(failures int, last, now time.Time) time.Duration {
	if failures <= 0 {
		return 0
	}
	d := mostDelay
	if failures < 7 {
		d = firstDelay << (failures - 1)
	}
	return max(d-now.Sub(last), 0)
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// endOf is when a pod ended: as its containers say, or when it ceased to be ready,
// was deleted, or in doubt was made.
func endOf(p *corev1.Pod) time.Time {
	if end, ok := containersEnd(p); ok {
		return end
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse && !c.LastTransitionTime.IsZero() {
			return c.LastTransitionTime.Time
		}
	}
	if p.DeletionTimestamp == nil {
		return p.CreationTimestamp.Time
	}
	grace := time.Duration(0)
	if s := p.DeletionGracePeriodSeconds; s != nil {
		grace = time.Duration(*s) * time.Second
	}
	return p.DeletionTimestamp.Add(-grace)
}

// containersEnd is when the last container of a pod ended, sidecars included.
func containersEnd(p *corev1.Pod) (end time.Time, all bool) {
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Terminated == nil || c.State.Terminated.FinishedAt.IsZero() {
			return time.Time{}, false
		}
		end = latest(end, c.State.Terminated.FinishedAt.Time)
	}
	for _, c := range p.Status.InitContainerStatuses {
		if !sidecar(p, c.Name) {
			continue
		}
		if c.State.Terminated == nil || c.State.Terminated.FinishedAt.IsZero() {
			return time.Time{}, false
		}
		end = latest(end, c.State.Terminated.FinishedAt.Time)
	}
	return end, !end.IsZero()
}

func sidecar(p *corev1.Pod, name string) bool {
	return slices.ContainsFunc(p.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == name && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	})
}
