package scheduler

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// preempt finds out whether the pod would have a place if less important ones went:
// those of one node, as few and as unimportant as possible. If not, the decision says
// why.
func (pl *plan) preempt(d *Decision, bad []judged) {
	if d.Nodes == 0 {
		return
	}
	if d.note = pl.ineligible(); d.note != "" {
		return
	}
	var best *sacrifice
	reasons := map[string]int{}
	var counts tallied
	for _, j := range bad {
		if j.hopeless {
			reasons[notHelpful]++
			continue
		}
		s, why := pl.sacrificeOn(pl.s.nodes[j.node.slot], &counts)
		switch {
		case why != "":
			reasons[why]++
		case s != nil && (best == nil || s.compare(best) < 0):
			best = s
		}
	}
	if best != nil {
		d.Nominated = best.node.obj.Name
		for _, v := range best.victims {
			d.Victims = append(d.Victims, v.pod)
		}
		return
	}
	for text, n := range counts.texts(&pl.s.resources) {
		reasons[text] += n
	}
	d.note = counted(d.Nodes, reasons)
}

// ineligible says why a pod must not have others go.
func (pl *plan) ineligible() string {
	pod := pl.pod.pod
	if policy := pod.Spec.PreemptionPolicy; policy != nil && *policy == corev1.PreemptNever {
		return neverPreempts
	}
	slot, known := pl.s.slots[pod.Status.NominatedNodeName]
	if !known {
		return ""
	}
	leaving := func(p *podInfo) bool { return p.terminating && p.priority < pl.pod.priority }
	if slices.ContainsFunc(pl.s.nodes[slot].pods, leaving) && !pl.fits(pl.s.nodes[slot]).hopeless {
		return waitsForEnd
	}
	return ""
}

// sacrifice is who would have to go from a node, the most important first.
type sacrifice struct {
	node    *nodeState
	victims []*podInfo
}

// sacrificeOn returns who would have to go from a node. If nobody there is less
// important, it says so; if it would not help that all of them went, why is counted.
func (pl *plan) sacrificeOn(n *nodeState, counts *tallied) (*sacrifice, string) {
	var lower []*podInfo
	for _, p := range n.pods {
		if p.priority < pl.pod.priority {
			lower = append(lower, p)
		}
	}
	if len(lower) == 0 {
		return nil, noVictims
	}
	n = n.clone()
	for _, p := range lower {
		n.remove(p)
		pl.shift(n, p, -1)
	}
	j := pl.fits(n)
	victims := lower
	if j.reason == fits {
		victims = pl.reprieve(n, lower)
	} else {
		counts.add(pl.pod, j)
	}
	for _, p := range victims { // nothing has happened
		pl.shift(n, p, 1)
	}
	if j.reason != fits {
		return nil, ""
	}
	return &sacrifice{n, victims}, ""
}

// reprieve has those come back who need not go, the most important first, and returns
// the others.
func (pl *plan) reprieve(n *nodeState, gone []*podInfo) (victims []*podInfo) {
	slices.SortStableFunc(gone, importance)
	for _, p := range gone {
		n.add(p)
		pl.shift(n, p, 1)
		if pl.fits(n).reason != fits {
			n.remove(p)
			pl.shift(n, p, -1)
			victims = append(victims, p)
		}
	}
	return victims
}

// importance orders pods: by priority, and then who has been there for longer.
func importance(a, b *podInfo) int {
	if c := cmp.Compare(b.priority, a.priority); c != 0 {
		return c
	}
	return startOf(a).Compare(startOf(b))
}

func startOf(p *podInfo) time.Time {
	if t := p.pod.Status.StartTime; t != nil {
		return t.Time
	}
	return p.pod.CreationTimestamp.Time
}

// compare orders sacrifices, the least first: by the most important who goes, the
// importance of all, their number, and how late the most important of them began.
func (s *sacrifice) compare(o *sacrifice) int {
	if len(s.victims) == 0 || len(o.victims) == 0 {
		return cmp.Compare(len(s.victims), len(o.victims))
	}
	if c := cmp.Compare(s.victims[0].priority, o.victims[0].priority); c != 0 {
		return c
	}
	if c := cmp.Compare(s.importance(), o.importance()); c != 0 {
		return c
	}
	if c := cmp.Compare(len(s.victims), len(o.victims)); c != 0 {
		return c
	}
	return startOf(o.victims[0]).Compare(startOf(s.victims[0]))
}

// importance adds up priorities, of which the lowest counts 1.
func (s *sacrifice) importance() (sum int64) {
	for _, p := range s.victims {
		sum += int64(p.priority) + 1<<31 + 1
	}
	return sum
}
