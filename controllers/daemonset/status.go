package daemonset

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/even-keel/evenkeel/controllers/pods"
)

// status is what is reported of a set. Of several pods on a node, the oldest counts.
func (s seen) status() appsv1.DaemonSetStatus {
	out := appsv1.DaemonSetStatus{ObservedGeneration: s.set.Generation, Conditions: s.set.Status.Conditions, CollisionCount: s.set.Status.CollisionCount}
	if s.collisions > 0 {
		out.CollisionCount = &s.collisions
	}
	places, _ := s.places()
	for _, at := range places {
		all := slices.SortedFunc(slices.Values(slices.Concat(at.live, at.ending, at.spent)), older)
		switch {
		case at.fit != runs:
			if len(all) > 0 {
				out.NumberMisscheduled++
			}
			continue
		case len(all) > 0:
			out.CurrentNumberScheduled++
			s.count(&out, all[0])
		}
		out.DesiredNumberScheduled++
	}
	out.NumberUnavailable = out.DesiredNumberScheduled - out.NumberAvailable
	return out
}

func (s seen) count(out *appsv1.DaemonSetStatus, p *corev1.Pod) {
	if pods.Ready(p) {
		out.NumberReady++
		if s.available(p) {
			out.NumberAvailable++
		}
	}
	if s.updated(p) {
		out.UpdatedNumberScheduled++
	}
}

// wait is when something is to be done, or to be told, without anybody's doing; 0 is
// never.
func (s seen) wait(do plan) time.Duration {
	next := do.again
	for _, p := range s.pods {
		if in, ok := pods.AvailableIn(p, s.set.Spec.MinReadySeconds, s.now); ok && in > 0 {
			next = sooner(next, in)
		}
	}
	return next
}

// alive tells the newest revision, and those that a pod is of.
func (s seen) alive() func(*appsv1.ControllerRevision) bool {
	hashes := map[string]bool{s.hash: true}
	for _, p := range s.pods {
		hashes[p.Labels[appsv1.DefaultDaemonSetUniqueLabelKey]] = true
	}
	return func(r *appsv1.ControllerRevision) bool {
		return hashes[r.Labels[appsv1.DefaultDaemonSetUniqueLabelKey]]
	}
}
