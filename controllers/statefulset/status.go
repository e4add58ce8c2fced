package statefulset

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/even-keel/evenkeel/controllers/pods"
)

// status is what is reported of a set.
func (s seen) status() appsv1.StatefulSetStatus {
	out := appsv1.StatefulSetStatus{
		ObservedGeneration: s.set.Generation, CurrentRevision: s.current, UpdateRevision: s.update,
		CollisionCount: &s.collisions, Conditions: s.set.Status.Conditions, Replicas: int32(len(s.pods)),
	}
	for _, p := range s.pods {
		if running(p) {
			out.ReadyReplicas++
			if pods.Available(p, s.set.Spec.MinReadySeconds, s.now) {
				out.AvailableReplicas++
			}
		}
		if p.DeletionTimestamp != nil {
			continue
		}
		if revisionOf(p) == s.current {
			out.CurrentReplicas++
		}
		if revisionOf(p) == s.update {
			out.UpdatedReplicas++
		}
	}
	if s.set.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType && s.complete(out) {
		out.CurrentRevision, out.CurrentReplicas = out.UpdateRevision, out.UpdatedReplicas
	}
	return out
}

// complete reports whether an update has come to its end: all pods are of the new
// revision, and ready.
func (s seen) complete(st appsv1.StatefulSetStatus) bool {
	n := int32(s.wanted())
	return st.UpdatedReplicas == n && st.ReadyReplicas == n && st.Replicas == n
}

// untilAvailable is when the next pod counts as available; 0 if none is waited for.
func (s seen) untilAvailable() time.Duration {
	var next time.Duration
	for _, p := range s.pods {
		if in, ok := pods.AvailableIn(p, s.set.Spec.MinReadySeconds, s.now); ok && in > 0 && (next == 0 || in < next) {
			next = in
		}
	}
	return next
}

// alive tells the revisions that a status names, or a pod is of.
func (s seen) alive(st appsv1.StatefulSetStatus) func(*appsv1.ControllerRevision) bool {
	names := map[string]bool{st.CurrentRevision: true, st.UpdateRevision: true}
	for _, p := range s.pods {
		names[revisionOf(p)] = true
	}
	return func(r *appsv1.ControllerRevision) bool { return names[r.Name] }
}
