package replicaset

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// burst is how many pods of one ReplicaSet are made or deleted before its status is
// reported, and others have their turn.
const burst = 500

// seen is what there is of a ReplicaSet. Its objects are shared and read-only.
type seen struct {
	set *appsv1.ReplicaSet
	// pods are its own that have not come to their end.
	pods []*corev1.Pod
	// related are the pods among which its own should be spread over nodes.
	related []*corev1.Pod
	now     time.Time
}

// plan is what is to be done.
type plan struct {
	create int
	remove []*corev1.Pod
	more   bool // will be to do after that
}

func (p plan) nothing() bool { return p.create == 0 && len(p.remove) == 0 }

// decide says which pods a ReplicaSet lacks, or has too many of.
func decide(s seen) plan {
	if s.set.DeletionTimestamp != nil {
		return plan{}
	}
	pods := s.active()
	switch extra := len(pods) - wanted(s.set); {
	case extra < 0:
		return plan{create: min(-extra, burst), more: -extra > burst}
	case extra > 0:
		slices.SortFunc(pods, s.ranking().compare)
		return plan{remove: pods[:min(extra, burst)], more: extra > burst}
	}
	return plan{}
}

func wanted(set *appsv1.ReplicaSet) int {
	if set.Spec.Replicas == nil {
		return 1
	}
	return int(*set.Spec.Replicas)
}

// active are the pods that count: those that are not about to end.
func (s seen) active() []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(s.pods), func(p *corev1.Pod) bool { return !active(p) })
}

func active(p *corev1.Pod) bool { return runs(p) && p.DeletionTimestamp == nil }

// runs reports whether a pod has not come to its end.
func runs(p *corev1.Pod) bool {
	return p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
}

// readySince is when a pod became ready; ok is false if it is not.
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
