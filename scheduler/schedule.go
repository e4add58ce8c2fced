package scheduler

import (
	corev1 "k8s.io/api/core/v1"
)

var unschedulableTaint = corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}

// Decision is what is to become of a pod.
type Decision struct {
	// Node is where it is to be; "" if no node will do.
	Node string
	// Nodes is how many there are.
	Nodes int
	// Reasons counts the nodes that will not do by reason; one node may have several.
	// It is nil if a node was found.
	Reasons map[string]int
	// Nominated is a node that will do once Victims have gone, which are less
	// important than the pod; "" if there is none.
	Nominated string
	Victims   []*corev1.Pod

	note     string  // why nobody is to go
	rejected reasons // all that some node has
}

// reasons is a set of them.
type reasons uint32

func (r reasons) has(any reasons) bool { return r&any != 0 }

func set(all ...reason) (out reasons) {
	for _, r := range all {
		out |= 1 << r
	}
	return out
}

// Message says why no node was found, in kube-scheduler's words; "" if one was.
func (d Decision) Message() string {
	switch {
	case d.Node != "":
		return ""
	case d.Nodes == 0:
		return noNodes
	case d.note != "":
		return counted(d.Nodes, d.Reasons) + " preemption: " + d.note
	}
	return counted(d.Nodes, d.Reasons)
}

// Schedule decides on which node a pod is to be. It is a function of its arguments:
// the same snapshot and pod have the same answer, and neither is changed.
func Schedule(s *Snapshot, pod *corev1.Pod) Decision { return s.decide(s.inspect(pod)) }

func (s *Snapshot) decide(p *podInfo) Decision {
	d := Decision{Nodes: len(s.slots)}
	pl := newPlan(s, p)
	good := make([]*nodeState, 0, len(s.slots))
	bad := make([]judged, 0, 16)
	for _, n := range s.nodes {
		if n == nil {
			continue
		}
		if j := pl.fits(n); j.reason == fits {
			good = append(good, n)
		} else {
			bad = append(bad, j)
		}
	}
	if len(good) > 0 {
		d.Node = pl.best(good).obj.Name
		return d
	}
	var counts tallied
	for _, j := range bad {
		counts.add(p, j)
		d.rejected |= set(j.reason)
	}
	d.Reasons = counts.texts(&s.resources)
	pl.preempt(&d, bad)
	return d
}

// best returns the node with the highest score, one of them if there are several.
func (pl *plan) best(nodes []*nodeState) *nodeState {
	if len(nodes) == 1 {
		return nodes[0]
	}
	r := pl.s.dice(pl.pod.pod)
	total := pl.score(nodes)
	best, equal := 0, uint64(1)
	for i := 1; i < len(nodes); i++ {
		switch {
		case total[i] > total[best]:
			best, equal = i, 1
		case total[i] == total[best]:
			if equal++; r.next()%equal == 0 {
				best = i
			}
		}
	}
	return nodes[best]
}

// dice are numbers that a pod and a seed give.
type dice uint64

func (s *Snapshot) dice(pod *corev1.Pod) *dice {
	d := dice(s.seed)
	for _, text := range []string{pod.Namespace, pod.Name, string(pod.UID)} {
		for i := range len(text) {
			d = (d ^ dice(text[i])) * 1099511628211
		}
		d.next()
	}
	return &d
}

// next is a step of splitmix64.
func (d *dice) next() uint64 {
	*d += 0x9e3779b97f4a7c15
	z := uint64(*d)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
