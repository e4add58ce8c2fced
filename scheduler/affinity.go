package scheduler

// domains counts pods by the domains of a topology.
type domains struct {
	term     *term // nil if it is several
	key      string
	topology *topology
	counts   []int32
}

// has reports how many there are in a node's domain.
func (d *domains) at(n *nodeState) int32 {
	if i := d.topology.domains[n.slot]; i >= 0 {
		return d.counts[i]
	}
	return 0
}

func (d *domains) add(n *nodeState, by int32) {
	if i := d.topology.domains[n.slot]; i >= 0 {
		d.counts[i] += by
	}
}

// sum adds what is counted by node.
func sum[T int32 | int64](d *domains, bySlot []T) {
	for slot, n := range bySlot {
		if n != 0 && d.topology.domains[slot] >= 0 {
			d.counts[d.topology.domains[slot]] += int32(n)
		}
	}
}

func (pl *plan) newDomains(key string) domains {
	t := pl.s.topology(key)
	return domains{key: key, topology: t, counts: make([]int32, t.count)}
}

// nearness is where the pods are that the pod has to be near to.
type nearness struct {
	by []domains // each of its topologies
	// total is how many there are anywhere in these topologies.
	total int32
	self  bool
}

// planAffinity counts who has to be near or apart.
func (pl *plan) planAffinity() {
	p := pl.pod
	if p.near != nil {
		pl.near = &nearness{self: p.near.selects(pl.s, p)}
		who := pl.s.count(p.near)
		for _, key := range p.nearTo {
			d := pl.newDomains(key)
			sum(&d, who.all)
			for _, n := range d.counts {
				pl.near.total += n
			}
			pl.near.by = append(pl.near.by, d)
		}
	}
	for i := range p.apart {
		d := pl.newDomains(p.apart[i].topology)
		d.term = &p.apart[i]
		sum(&d, pl.s.count(p.apart[i].sel).all)
		pl.apart = append(pl.apart, d)
	}
	pl.s.held.about(pl.s, p, func(h *held) {
		if h.role == requiresApart {
			sum(pl.keptIn(h.topology), h.weights)
		}
	})
}

// keptIn returns where pods want the pod not to be, in a topology.
func (pl *plan) keptIn(key string) *domains {
	for i := range pl.kept {
		if pl.kept[i].key == key {
			return &pl.kept[i]
		}
	}
	pl.kept = append(pl.kept, pl.newDomains(key))
	return &pl.kept[len(pl.kept)-1]
}

func (pl *plan) checkAffinity(n *nodeState) verdict {
	if pl.near != nil && !pl.near.allows(n) {
		return verdict{reason: notNear, hopeless: true}
	}
	for i := range pl.apart {
		if pl.apart[i].at(n) > 0 {
			return verdict{reason: notApart}
		}
	}
	for i := range pl.kept {
		if pl.kept[i].at(n) > 0 {
			return verdict{reason: keptApart}
		}
	}
	return verdict{}
}

// allows reports whether they are in all domains of a node. The first of pods that
// are to be near to each other may go to any that has the domains.
func (r *nearness) allows(n *nodeState) bool {
	there := true
	for i := range r.by {
		d := r.by[i].topology.domains[n.slot]
		if d < 0 {
			return false
		}
		there = there && r.by[i].counts[d] > 0
	}
	return there || r.total == 0 && r.self
}

func (pl *plan) shiftAffinity(n *nodeState, p *podInfo, by int32) {
	if pl.near != nil && pl.pod.near.selects(pl.s, p) {
		for i := range pl.near.by {
			d := &pl.near.by[i]
			d.add(n, by)
			if d.topology.domains[n.slot] >= 0 {
				pl.near.total += by
			}
		}
	}
	for i := range pl.apart {
		if pl.apart[i].term.sel.selects(pl.s, p) {
			pl.apart[i].add(n, by)
		}
	}
	for i := range p.held {
		if t := &p.held[i]; t.key.role == requiresApart && t.sel.selects(pl.s, pl.pod) {
			pl.keptIn(t.key.topology).add(n, by)
		}
	}
}
