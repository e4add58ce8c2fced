package scheduler

import "math"

// spreading is a constraint of topology spread, counted.
type spreading struct {
	*constraint
	topology *topology
	counts   []int32 // by domain
	counted  []bool  // which domains have a node that counts
	domains  int32
	least    int32
	stale    bool // least is to be found anew
}

// planSpread counts the pods that constraints are about, on nodes that have the
// labels of all of them.
func (pl *plan) planSpread(constraints []constraint) []spreading {
	if len(constraints) == 0 {
		return nil
	}
	out := make([]spreading, len(constraints))
	for i := range constraints {
		t := pl.s.topology(constraints[i].topology)
		out[i] = spreading{constraint: &constraints[i], topology: t, counts: make([]int32, t.count), counted: make([]bool, t.count), stale: true}
	}
	tallies := make([]*tally, len(out))
	for i := range out {
		tallies[i] = pl.s.count(out[i].sel)
	}
	for _, n := range pl.s.nodes {
		if n == nil || !hasTopologies(out, n) {
			continue
		}
		for i := range out {
			if c := &out[i]; pl.counts(c.constraint, n) {
				c.count(n.slot, tallies[i].live[n.slot])
			}
		}
	}
	return out
}

func hasTopologies(all []spreading, n *nodeState) bool {
	for i := range all {
		if all[i].topology.domains[n.slot] < 0 {
			return false
		}
	}
	return true
}

// counts reports whether pods on a node count for a constraint.
func (pl *plan) counts(c *constraint, n *nodeState) bool {
	return (!c.honorsNode || pl.wants(n)) && (!c.honorTaint || pl.tolerates(n).hard < 0)
}

func (c *spreading) count(slot, pods int32) {
	d := c.topology.domains[slot]
	c.counts[d] += pods
	if !c.counted[d] {
		c.counted[d] = true
		c.domains++
	}
}

// minimum is the count of the domain that has least: none, while there are not
// enough domains.
func (c *spreading) minimum() int32 {
	if c.stale {
		c.stale, c.least = false, math.MaxInt32
		for d, n := range c.counts {
			if c.counted[d] {
				c.least = min(c.least, n)
			}
		}
	}
	if c.domains < c.minDomains {
		return 0
	}
	return c.least
}

func (pl *plan) checkSpread(n *nodeState) verdict {
	for i := range pl.spread {
		c := &pl.spread[i]
		d := c.topology.domains[n.slot]
		if d < 0 {
			return verdict{reason: spreadLabel, hopeless: true}
		}
		if c.counts[d]+c.self-c.minimum() > c.maxSkew {
			return verdict{reason: spreadSkew}
		}
	}
	return verdict{}
}

func (pl *plan) shiftSpread(n *nodeState, p *podInfo, by int32) {
	if len(pl.spread) == 0 || p.terminating || !hasTopologies(pl.spread, n) {
		return
	}
	for i := range pl.spread {
		c := &pl.spread[i]
		if c.sel.selects(pl.s, p) && pl.counts(c.constraint, n) {
			c.counts[c.topology.domains[n.slot]] += by
			c.stale = true
		}
	}
}
