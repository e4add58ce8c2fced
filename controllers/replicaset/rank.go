package replicaset

import (
	"cmp"
	"math/bits"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// ranking is the order in which pods go when there are too many.
type ranking struct {
	onNode map[string]int // how many related pods there are
	now    time.Time
}

func (s seen) ranking() ranking {
	r := ranking{onNode: map[string]int{}, now: s.now}
	for _, p := range s.related {
		if active(p) {
			r.onNode[p.Spec.NodeName]++
		}
	}
	return r
}

// compare puts the pod first that goes first: who is least far on its way to serve,
// then who costs least, whose node has most of its kind, who is ready for the
// shortest time, was restarted most often, and is youngest. Ages count by their
// magnitude, so that among pods of about the same age it is by chance, and not
// always those of the newest node that go.
func (r ranking) compare(a, b *corev1.Pod) int {
	sinceA, readyA := readySince(a)
	sinceB, readyB := readySince(b)
	restartsA, sidecarsA := restarts(a)
	restartsB, sidecarsB := restarts(b)
	return cmp.Or(
		falseFirst(a.Spec.NodeName != "", b.Spec.NodeName != ""),
		cmp.Compare(slices.Index(phases, a.Status.Phase), slices.Index(phases, b.Status.Phase)),
		falseFirst(readyA, readyB),
		cmp.Compare(cost(a), cost(b)),
		cmp.Compare(r.onNode[b.Spec.NodeName], r.onNode[a.Spec.NodeName]),
		cmp.Compare(r.age(sinceA, readyA), r.age(sinceB, readyB)),
		cmp.Compare(restartsB, restartsA),
		cmp.Compare(sidecarsB, sidecarsA),
		cmp.Compare(r.age(a.CreationTimestamp.Time, true), r.age(b.CreationTimestamp.Time, true)),
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

// age is the magnitude of the time since then, as a power of two; what has no time
// comes first.
func (r ranking) age(t time.Time, known bool) int {
	if !known || t.IsZero() {
		return -1
	}
	return bits.Len64(uint64(max(r.now.Sub(t), 0)))
}

// cost is what the pod says that its deletion costs; what is no number is nothing.
func cost(p *corev1.Pod) int64 {
	n, err := strconv.ParseInt(p.Annotations[corev1.PodDeletionCost], 10, 32)
	if err != nil {
		return 0
	}
	return n
}

// restarts are the most that a container has, and a sidecar.
func restarts(p *corev1.Pod) (containers, sidecars int32) {
	for _, c := range p.Status.ContainerStatuses {
		containers = max(containers, c.RestartCount)
	}
	for _, c := range p.Status.InitContainerStatuses {
		if slices.ContainsFunc(p.Spec.InitContainers, func(of corev1.Container) bool {
			return of.Name == c.Name && of.RestartPolicy != nil && *of.RestartPolicy == corev1.ContainerRestartPolicyAlways
		}) {
			sidecars = max(sidecars, c.RestartCount)
		}
	}
	return containers, sidecars
}
