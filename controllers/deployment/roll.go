package deployment

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// bounds are how far a rolling update may go.
type bounds struct{ surge, unavailable int32 }

// boundsOf resolves percentages: of surge up, of unavailable pods down. If both come
// to nothing, one pod may be unavailable, for otherwise nothing could be done.
func boundsOf(d *appsv1.Deployment) bounds {
	rolling := d.Spec.Strategy.RollingUpdate
	if d.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType || rolling == nil {
		return bounds{}
	}
	n := replicasOf(d.Spec.Replicas)
	b := bounds{surge: resolve(rolling.MaxSurge, n, true), unavailable: resolve(rolling.MaxUnavailable, n, false)}
	if b.surge == 0 && b.unavailable == 0 {
		b.unavailable = 1
	}
	b.unavailable = min(b.unavailable, n)
	return b
}

func resolve(of *intstr.IntOrString, total int32, up bool) int32 {
	n, err := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(of, intstr.FromInt32(0)), int(total), up)
	if err != nil {
		return 0 // the server accepts no such value
	}
	return int32(n)
}

// roll lets the new ReplicaSet grow as far as there may be pods, and the old ones
// shrink as far as enough pods are available. What counts are the pods that there
// are: a ReplicaSet that is to shrink takes up room until it has, and while one has
// not yet seen what it is to be, nothing grows. So bounds hold for pods, and not only
// for what ReplicaSets are told.
func roll(s seen, all parts) parts {
	if all.new == nil {
		all.new = s.newPart()
	}
	n, b := replicasOf(s.deployment.Spec.Replicas), boundsOf(s.deployment)
	if all.new.replicas >= n {
		all.new.replicas = n
	} else if room := n + b.surge - sum(all.all(), (*part).pods); room > 0 && all.settled() {
		all.new.replicas = min(all.new.replicas+room, n)
	}
	shrink(all, n-b.unavailable)
	return all
}

// shrink takes replicas from old ReplicaSets, the oldest first, so that at least
// some stay available: first those that are not available anyway, which would
// otherwise be in the way for ever, and then others.
func shrink(all parts, least int32) {
	missing := all.new.replicas - all.new.available()
	spare := sum(all.all(), func(p *part) int32 { return p.replicas }) - least - missing
	for _, p := range all.old {
		broken := max(0, min(p.replicas-p.available(), spare))
		p.replicas -= broken
		spare -= broken
	}
	for _, p := range all.old {
		take := max(0, min(p.replicas, spare))
		p.replicas -= take
		spare -= take
	}
}

// recreate ends all old pods, and makes the new ones when the last is gone.
func recreate(s seen, all parts) parts {
	gone := true
	for _, p := range all.old {
		p.replicas = 0
		gone = gone && settled(p.set) && p.was() == 0 && p.set.Status.Replicas == 0 && terminating(p.set) == 0
	}
	if !gone {
		return all
	}
	if all.new == nil {
		all.new = s.newPart()
	}
	all.new.replicas = replicasOf(s.deployment.Spec.Replicas)
	return all
}

// terminating is how many pods of a ReplicaSet are about to end.
func terminating(set *appsv1.ReplicaSet) int32 {
	if set.Status.TerminatingReplicas == nil {
		return 0
	}
	return *set.Status.TerminatingReplicas
}
