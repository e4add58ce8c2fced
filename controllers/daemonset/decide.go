package daemonset

import (
	"cmp"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/even-keel/evenkeel/controllers/pods"
	"github.com/even-keel/evenkeel/controllers/revision"
)

// seen is what there is of a DaemonSet. Its objects are shared and read-only.
type seen struct {
	set   *appsv1.DaemonSet
	nodes []*corev1.Node
	pods  []*corev1.Pod
	// hash is that of the set's template, which pods have as a label.
	hash       string
	history    revision.History
	collisions int32
	// failed are the failures of pods, by node.
	failed map[string]failure
	now    time.Time
}

// plan is what is to be done.
type plan struct {
	create []string // nodes
	remove []*corev1.Pod
	// again is when a pod that has failed may go; 0 is none.
	again time.Duration
}

func (p plan) nothing() bool { return len(p.create)+len(p.remove) == 0 }

// place is a node, and what is on it.
type place struct {
	node string
	fit  fit
	// live are pods that run or are to, the oldest first.
	live []*corev1.Pod
	// ending are those that are about to go, and spent those that have ended.
	ending, spent []*corev1.Pod
	// waits says that a pod has failed which is not to be replaced yet.
	waits bool
}

// decide says which pods are to be made and which are to go. Before there is a pod on
// each node that should have one, and none too many, nothing is updated there.
func decide(s seen) plan {
	var p plan
	if s.set.DeletionTimestamp != nil {
		return p
	}
	places, astray := s.places()
	p.remove = astray
	for _, at := range places {
		s.manage(&p, at)
	}
	if s.set.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		return p
	}
	if surge := s.maxSurge(places); surge > 0 {
		s.surge(&p, places, surge)
	} else {
		s.roll(&p, places)
	}
	return p
}

// places returns the nodes with the set's pods, in the order of their names, and pods
// that wait for a node which is no more.
func (s seen) places() (places []*place, astray []*corev1.Pod) {
	f, byName := fitterOf(s.set), map[string]*place{}
	for _, n := range s.nodes {
		at := &place{node: n.Name, fit: f.of(n)}
		places, byName[n.Name] = append(places, at), at
	}
	for _, p := range slices.SortedFunc(slices.Values(s.pods), older) {
		at := byName[nodeOf(p)]
		switch {
		case at == nil && p.Spec.NodeName == "" && p.DeletionTimestamp == nil:
			astray = append(astray, p)
		case at == nil: // the pods of nodes that are gone are not our business
		case p.DeletionTimestamp != nil:
			at.ending = append(at.ending, p)
		case pods.Ended(p):
			at.spent = append(at.spent, p)
		default:
			at.live = append(at.live, p)
		}
	}
	slices.SortFunc(places, func(a, b *place) int { return cmp.Compare(a.node, b.node) })
	return places, astray
}

// older puts pods first that have a node, and then the oldest.
func older(a, b *corev1.Pod) int {
	unbound := func(p *corev1.Pod) int {
		if p.Spec.NodeName == "" {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(unbound(a), unbound(b)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// manage has one pod be on a node where there should be one, and none where there must
// not be. Pods that have failed go after a time that grows.
func (s seen) manage(p *plan, at *place) {
	if at.fit == never {
		p.remove = slices.Concat(p.remove, at.live, at.spent)
		return
	}
	for _, pod := range at.spent {
		in := time.Duration(0)
		if pod.Status.Phase == corev1.PodFailed {
			in = s.failed[at.node].in(s.now)
		}
		if in > 0 {
			at.waits = true
			p.again = sooner(p.again, in)
			continue
		}
		p.remove = append(p.remove, pod)
	}
	s.prune(p, at)
	empty := len(at.live) == 0 && len(at.spent) == 0
	if at.fit == runs && empty && (len(at.ending) == 0 || s.surges()) {
		p.create = append(p.create, at.node)
	}
}

// prune has all pods go from a node but one, and with a surge one of the new revision
// and one of another. Those that are up stay, and then the oldest.
func (s seen) prune(p *plan, at *place) {
	slices.SortStableFunc(at.live, func(a, b *corev1.Pod) int {
		switch x, y := s.available(a), s.available(b); {
		case x == y:
			return 0
		case x:
			return -1
		}
		return 1
	})
	var keep []*corev1.Pod
	for _, pod := range at.live {
		if len(keep) == 0 || s.surges() && len(keep) == 1 && s.updated(keep[0]) != s.updated(pod) {
			keep = append(keep, pod)
		} else {
			p.remove = append(p.remove, pod)
		}
	}
	at.live = keep
}

// roll has pods of other revisions go, as long as not too many nodes are without a pod
// that is up. Pods that are down already do not count.
func (s seen) roll(p *plan, places []*place) {
	down, most := 0, s.maxUnavailable(places)
	for _, at := range places {
		if at.fit == runs && !s.up(at) {
			down++
		}
	}
	for _, at := range places {
		if at.fit != runs || len(at.live) == 0 || s.updated(at.live[0]) {
			continue
		}
		switch {
		case !s.up(at):
			p.remove = append(p.remove, at.live[0])
		case down < most:
			p.remove = append(p.remove, at.live[0])
			down++
		}
	}
}

// surge has pods of the new revision be made beside the old, on a number of nodes at
// once, and the old go when the new are up, or they themselves are down.
func (s seen) surge(p *plan, places []*place, most int) {
	surging := 0
	for _, at := range places {
		if at.fit == never || len(at.live) < 2 {
			continue
		}
		old, now := at.live[0], at.live[1]
		if s.updated(old) {
			old, now = now, old
		}
		if !pods.Ready(old) || s.available(now) {
			p.remove = append(p.remove, old)
		} else {
			surging++
		}
	}
	for _, at := range places {
		if at.fit != runs || len(at.live) != 1 || s.updated(at.live[0]) || at.waits {
			continue
		}
		switch {
		case !s.available(at.live[0]):
			p.create = append(p.create, at.node)
		case surging < most:
			p.create = append(p.create, at.node)
			surging++
		}
	}
}

func (s seen) updated(p *corev1.Pod) bool {
	return s.hash != "" && p.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] == s.hash
}

func (s seen) available(p *corev1.Pod) bool {
	return pods.Available(p, s.set.Spec.MinReadySeconds, s.now)
}

// up reports whether a node has a pod that is available and to stay.
func (s seen) up(at *place) bool { return slices.ContainsFunc(at.live, s.available) }

// maxUnavailable is how many nodes may be without a pod that is up for an update: at
// least one.
func (s seen) maxUnavailable(places []*place) int {
	u := s.set.Spec.UpdateStrategy.RollingUpdate
	if u == nil {
		return 1
	}
	return max(share(u.MaxUnavailable, places), 1)
}

// surges reports whether two pods may be on a node for an update.
func (s seen) surges() bool {
	u := s.set.Spec.UpdateStrategy
	return u.Type == appsv1.RollingUpdateDaemonSetStrategyType && u.RollingUpdate != nil && u.RollingUpdate.MaxSurge != nil &&
		*u.RollingUpdate.MaxSurge != intstr.FromInt32(0) && *u.RollingUpdate.MaxSurge != intstr.FromString("0%")
}

func (s seen) maxSurge(places []*place) int {
	if !s.surges() {
		return 0
	}
	return share(s.set.Spec.UpdateStrategy.RollingUpdate.MaxSurge, places)
}

// share is a number, or a percentage of the nodes that should have a pod.
func share(of *intstr.IntOrString, places []*place) int {
	desired := 0
	for _, at := range places {
		if at.fit == runs {
			desired++
		}
	}
	if of == nil {
		return 0
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(of, desired, true)
	if err != nil {
		return 0
	}
	return n
}

// sooner is the smaller of two times that are not 0.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
