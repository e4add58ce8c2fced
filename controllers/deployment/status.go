package deployment

import (
	"math"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
)

// status is what a Deployment reports of what is seen, and of what was done.
func (s seen) status(did outcome) appsv1.DeploymentStatus {
	out := s.counts()
	if did.collided {
		n := int32(1)
		if out.CollisionCount != nil {
			n += *out.CollisionCount
		}
		out.CollisionCount = &n
	}
	out.Conditions = s.conditions(out, did)
	return out
}

// counts is the status without its conditions.
func (s seen) counts() appsv1.DeploymentStatus {
	out := appsv1.DeploymentStatus{
		ObservedGeneration: s.deployment.Generation, CollisionCount: s.deployment.Status.CollisionCount,
		TerminatingReplicas: s.terminating(),
	}
	var wanted int32
	for _, set := range s.sets {
		wanted += replicasOf(set.Spec.Replicas)
		out.Replicas += set.Status.Replicas
		out.ReadyReplicas += set.Status.ReadyReplicas
		out.AvailableReplicas += set.Status.AvailableReplicas
	}
	out.UnavailableReplicas = max(0, wanted-out.AvailableReplicas)
	if p := s.split().new; p != nil {
		out.UpdatedReplicas = p.set.Status.Replicas
	}
	return out
}

// terminating is how many pods are about to end; nil if a ReplicaSet does not tell.
func (s seen) terminating() *int32 {
	var n int32
	for _, set := range s.sets {
		if set.Status.TerminatingReplicas == nil && set.Status.ObservedGeneration > 0 {
			return nil
		}
		n += terminating(set)
	}
	return &n
}

// complete reports whether there are all the pods that a Deployment wants, and no
// others.
func (s seen) complete(now appsv1.DeploymentStatus) bool {
	n := replicasOf(s.deployment.Spec.Replicas)
	return now.UpdatedReplicas == n && now.Replicas == n && now.AvailableReplicas == n
}

// advanced reports whether a Deployment came further than its last status says: new
// pods were made or became ready or available, or old ones went. What that status says
// of another revision's pods is nothing to compare with.
func (s seen) advanced(now appsv1.DeploymentStatus) bool {
	was := s.deployment.Status
	if s.deployment.Annotations[revisionAnnotation] != s.revision() {
		was.UpdatedReplicas = 0
	}
	return now.UpdatedReplicas > was.UpdatedReplicas || now.ReadyReplicas > was.ReadyReplicas ||
		now.AvailableReplicas > was.AvailableReplicas || now.Replicas-now.UpdatedReplicas < was.Replicas-was.UpdatedReplicas
}

// deadline is how long a Deployment may take to come further; ok is false if it may
// take for ever.
func deadline(d *appsv1.Deployment) (within time.Duration, ok bool) {
	n := d.Spec.ProgressDeadlineSeconds
	if n == nil || *n == math.MaxInt32 {
		return 0, false
	}
	return time.Duration(*n) * time.Second, true
}

// untilDeadline is when a Deployment will be late, 0 if it cannot be.
func untilDeadline(d *appsv1.Deployment, now time.Time) time.Duration {
	within, ok := deadline(d)
	c := conditionOf(d.Status.Conditions, appsv1.DeploymentProgressing)
	if !ok || c == nil || d.Spec.Paused || slices.Contains(cannotBeLate, c.Reason) {
		return 0
	}
	return max(c.LastUpdateTime.Add(within).Sub(now), 0) + time.Millisecond
}

// late reports whether a Deployment has not come further for too long.
func late(d *appsv1.Deployment, c *appsv1.DeploymentCondition, now time.Time) bool {
	within, ok := deadline(d)
	return ok && c != nil && !slices.Contains(cannotBeLate, c.Reason) && c.LastUpdateTime.Add(within).Before(now)
}

// cannotBeLate are the reasons with which a Deployment does not become late: it is
// there, or it is late already.
var cannotBeLate = []string{newSetAvailable, timedOut}
