package deployment

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReplicaSets note the size that their Deployment had when they were last scaled,
// without and with its surge.
const (
	desiredAnnotation = "deployment.kubernetes.io/desired-replicas"
	maxAnnotation     = "deployment.kubernetes.io/max-replicas"
)

// noteSize has a ReplicaSet note the size of its Deployment.
func noteSize(set *appsv1.ReplicaSet, d *appsv1.Deployment) {
	n := replicasOf(d.Spec.Replicas)
	metav1.SetMetaDataAnnotation(&set.ObjectMeta, desiredAnnotation, strconv.Itoa(int(n)))
	metav1.SetMetaDataAnnotation(&set.ObjectMeta, maxAnnotation, strconv.Itoa(int(n+boundsOf(d).surge)))
}

// noted reads a number that is noted.
func noted(set *appsv1.ReplicaSet, annotation string) (int32, bool) {
	n, err := strconv.ParseUint(set.Annotations[annotation], 10, 31)
	return int32(n), err == nil
}

// resized reports whether a Deployment has another size than when its ReplicaSets
// were last scaled.
func resized(d *appsv1.Deployment, all parts) bool {
	return slices.ContainsFunc(all.active(), func(p *part) bool {
		n, ok := noted(p.set, desiredAnnotation)
		return ok && n != replicasOf(d.Spec.Replicas)
	})
}

// scale gives a Deployment its size without rolling it: if one ReplicaSet has pods,
// or none has, that or the newest gets all of them. If several have, each gets its
// share.
func scale(d *appsv1.Deployment, all parts) {
	n, active := replicasOf(d.Spec.Replicas), all.active()
	for _, p := range active {
		p.counts = true
	}
	switch {
	case len(active) > 1:
		shrinkOrShare(d, all)
	case len(active) == 1:
		active[0].replicas = n
	case all.new != nil:
		all.new.replicas = n
	case len(all.old) > 0:
		all.old[len(all.old)-1].replicas = n
	}
}

// shrinkOrShare is scale for several active ReplicaSets: if the new one has all that
// the Deployment wants, and had so before, or has it then, the others get nothing.
func shrinkOrShare(d *appsv1.Deployment, all parts) {
	n := replicasOf(d.Spec.Replicas)
	full := func() bool {
		return all.new != nil && all.new.replicas == n && all.new.set.Status.AvailableReplicas == n
	}
	before := false
	if all.new != nil {
		desired, ok := noted(all.new.set, desiredAnnotation)
		before = ok && desired == n
	}
	if !(before && full()) && d.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		share(d, all.active())
	}
	if full() {
		for _, p := range all.old {
			p.replicas = 0
		}
	}
	if left := all.active(); len(left) == 1 {
		left[0].replicas = n
	}
}

// share distributes what the Deployment grows or shrinks by over its active
// ReplicaSets, to each in proportion to its size. The largest goes first, also in
// what rounding leaves; of equal ones, the newest grows first and the oldest shrinks
// first.
func share(d *appsv1.Deployment, active []*part) {
	var allowed int32
	if n := replicasOf(d.Spec.Replicas); n > 0 {
		allowed = n + boundsOf(d).surge
	}
	left := allowed - sum(active, func(p *part) int32 { return p.replicas })
	if left == 0 {
		return
	}
	slices.SortFunc(active, func(a, b *part) int {
		age := olderFirst(a.set, b.set)
		if left > 0 {
			age = -age
		}
		return cmp.Or(cmp.Compare(b.replicas, a.replicas), age)
	})
	for _, p := range active {
		by := proportion(d, p, allowed)
		if left > 0 {
			by = max(0, min(by, left))
		} else {
			by = min(0, max(by, left))
		}
		p.replicas += by
		left -= by
	}
	for _, p := range active {
		by := max(left, -p.replicas)
		p.replicas += by
		left -= by
	}
}

// proportion is by how much a ReplicaSet would change if it kept its share of all
// pods.
func proportion(d *appsv1.Deployment, p *part, allowed int32) int32 {
	before, ok := noted(p.set, maxAnnotation)
	if !ok || before == 0 {
		before = d.Status.Replicas
	}
	switch {
	case allowed == 0:
		return -p.replicas
	case before == 0:
		return 0
	}
	return int32(math.Round(float64(p.replicas)*float64(allowed)/float64(before))) - p.replicas
}
