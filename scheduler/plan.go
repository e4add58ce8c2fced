package scheduler

import "slices"

// plan is what has to be known of a snapshot to place one pod. It is made for one
// decision. Decisions that suppose other pods on a node change it with shift, and
// change it back.
type plan struct {
	s   *Snapshot
	pod *podInfo
	// tolerance is what the pod makes of the sets of taints, by their numbers.
	tolerance []tolerance
	wanted    []int8 // see memo
	spread    []spreading
	near      *nearness
	apart     []domains // of the pod's own terms
	kept      []domains // of those of others
}

// tolerance is which hard taint is not tolerated, and how many soft ones.
type tolerance struct {
	known bool
	hard  int8 // -1 is none
	soft  int32
}

func newPlan(s *Snapshot, p *podInfo) *plan {
	pl := &plan{s: s, pod: p, tolerance: make([]tolerance, s.taints.size)}
	if p.picky {
		pl.wanted = remembered(s.memo.wanted, p.wantsText, len(s.nodes))
	}
	pl.planAffinity()
	pl.spread = pl.planSpread(p.hard)
	return pl
}

// tolerates returns what the pod makes of a node's taints.
func (pl *plan) tolerates(n *nodeState) tolerance {
	t := &pl.tolerance[n.taints.number]
	if t.known {
		return *t
	}
	*t = tolerance{known: true, hard: -1}
	tolerations := pl.pod.pod.Spec.Tolerations
	for i := range n.taints.hard {
		if !tolerates(tolerations, &n.taints.hard[i]) {
			t.hard = int8(min(i, 127))
			break
		}
	}
	for i := range n.taints.soft {
		if !tolerates(tolerations, &n.taints.soft[i]) {
			t.soft++
		}
	}
	return *t
}

// wants reports whether the pod's node selector and affinity allow a node.
func (pl *plan) wants(n *nodeState) bool {
	if !pl.pod.picky {
		return true
	}
	if pl.wanted[n.slot] == 0 {
		pl.wanted[n.slot] = -1
		// Terms that cannot be read match nothing; the server refuses such pods.
		if match, err := pl.pod.node.Match(n.obj); match && err == nil {
			pl.wanted[n.slot] = 1
		}
	}
	return pl.wanted[n.slot] > 0
}

// fits says what is wrong with a node: with the pods for which room is kept there, and
// as it is. The node that is returned is the one that was looked at.
func (pl *plan) fits(n *nodeState) judged {
	if len(pl.s.nominated) > 0 {
		if kept := pl.nominated(n); len(kept) > 0 {
			if j := pl.fitsBeside(n, kept); j.reason != fits {
				return j
			}
		}
	}
	return judged{n, pl.check(n)}
}

// judged is a node, and what is wrong with it.
type judged struct {
	node *nodeState
	verdict
}

// nominated returns the other pods for which room is kept on a node.
func (pl *plan) nominated(n *nodeState) []*podInfo {
	var out []*podInfo
	for _, p := range pl.s.nominated[n.obj.Name] {
		if p.priority >= pl.pod.priority && p.pod.UID != pl.pod.pod.UID {
			out = append(out, p)
		}
	}
	return out
}

func (pl *plan) fitsBeside(n *nodeState, others []*podInfo) judged {
	n = n.clone()
	for _, p := range others {
		n.add(p)
		pl.shift(n, p, 1)
	}
	v := pl.check(n)
	for _, p := range others {
		pl.shift(n, p, -1)
	}
	return judged{n, v}
}

// check says what is wrong with a node, in kube-scheduler's order.
func (pl *plan) check(n *nodeState) verdict {
	p := pl.pod
	if n.obj.Spec.Unschedulable && !tolerates(p.pod.Spec.Tolerations, &unschedulableTaint) {
		return verdict{reason: unschedulable, hopeless: true}
	}
	if name := p.pod.Spec.NodeName; name != "" && name != n.obj.Name {
		return verdict{reason: otherName, hopeless: true}
	}
	if t := pl.tolerates(n); t.hard >= 0 {
		return verdict{reason: untolerated, hopeless: true, taint: t.hard}
	}
	if !pl.wants(n) {
		return verdict{reason: otherNode, hopeless: true}
	}
	if len(p.ports) > 0 && portsConflict(p.ports, n.ports) {
		return verdict{reason: portsTaken}
	}
	if v := checkResources(p, n); v.reason != fits {
		return v
	}
	if v := pl.checkSpread(n); v.reason != fits {
		return v
	}
	return pl.checkAffinity(n)
}

func portsConflict(wanted, taken []hostPort) bool {
	return slices.ContainsFunc(wanted, func(w hostPort) bool { return slices.ContainsFunc(taken, w.conflicts) })
}

func checkResources(p *podInfo, n *nodeState) verdict {
	v := verdict{}
	if int64(len(n.pods))+1 > n.maxPods {
		v.reason = insufficient
	}
	for _, a := range p.needs {
		if a.value > n.free(a.resource) {
			v.reason = insufficient
			v.hopeless = v.hopeless || a.value > at(n.alloc, a.resource)
		}
	}
	return v
}

// shift supposes a pod to be on a node, or not to be.
func (pl *plan) shift(n *nodeState, p *podInfo, by int32) {
	pl.shiftSpread(n, p, by)
	pl.shiftAffinity(n, p, by)
}
