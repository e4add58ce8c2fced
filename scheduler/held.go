package scheduler

// role is what a pod on a node wants of pods that come later.
type role uint8

const (
	requiresApart role = iota // not to be in its domain
	requiresNear              // to be in its domain, which counts a little
	prefers                   // either, by weight
)

type heldKey struct {
	role     role
	topology string
	text     string // of the selection
}

// heldTerm is a term of one pod.
type heldTerm struct {
	key    heldKey
	sel    *selection
	weight int64
}

// held is a term that pods on nodes have, each with a weight.
type held struct {
	heldKey
	sel     *selection
	weights []int64 // by slot
	holders int
}

// heldTerms are the terms of all pods on nodes.
type heldTerms struct {
	byKey   map[heldKey]*held
	byLabel map[pair][]*held // as in tallies
}

func newHeldTerms() heldTerms {
	return heldTerms{byKey: map[heldKey]*held{}, byLabel: map[pair][]*held{}}
}

// add adds a pod's terms to a node, or takes them away.
func (h *heldTerms) add(slot int32, p *podInfo, n int) {
	for i := range p.held {
		t := &p.held[i]
		at := h.byKey[t.key]
		if at == nil {
			at = &held{heldKey: t.key, sel: t.sel}
			h.byKey[t.key] = at
			h.byLabel[t.sel.label] = append(h.byLabel[t.sel.label], at)
		}
		at.weights = grown(at.weights, slot)
		at.weights[slot] += int64(n) * t.weight
		if at.holders += n; at.holders == 0 {
			h.forget(at)
		}
	}
}

func (h *heldTerms) forget(gone *held) {
	delete(h.byKey, gone.heldKey)
	list := h.byLabel[gone.sel.label]
	for i, t := range list {
		if t == gone {
			list[i] = list[len(list)-1]
			list = list[:len(list)-1]
			break
		}
	}
	if len(list) == 0 {
		delete(h.byLabel, gone.sel.label)
		return
	}
	h.byLabel[gone.sel.label] = list
}

// about calls a function with the terms that mean a pod.
func (h *heldTerms) about(s *Snapshot, p *podInfo, do func(*held)) {
	if len(h.byKey) == 0 {
		return
	}
	filed(h.byLabel, p, func(t *held) {
		if t.sel.selects(s, p) {
			do(t)
		}
	})
}
