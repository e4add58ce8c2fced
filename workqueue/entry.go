package workqueue

import (
	"cmp"
	"slices"
	"time"
)

// pending is whether and how a key waits to be handed out.
type pending uint8

const (
	idle  pending = iota // nobody asked for the key
	held                 // it is in the heap, until its time comes
	ready                // it is to be handed out, if running then after Done
)

// entry is all that the queue knows of a key. Running and pending are apart:
// a key that is being worked on may wait for its next turn at the same time.
//
// With keys of two strings it is two lines of the processor's cache, which it
// shares with no other, and what most keys never need is elsewhere: a queue of
// 50,000 keys does not fit into the cache, and is as fast as its memory.
type entry[K comparable] struct {
	key   K
	hash  uint64
	chain *entry[K] // the next in its bucket of the table
	age   link[K]   // of the list of all ready entries

	// The turn that the key waits for, if it does.
	queued   time.Duration
	priority int

	// The turn that a worker has, if one does.
	started time.Duration
	run     uint64
	ranAt   int // the priority of that turn

	more    *more[K] // nil until it is needed; kept to use again
	retries int32
	slot    int32 // in the list of those that run
	pending pending
	running bool
}

// more is what is known of keys that were added with causes, with a delay, or
// where there are groups and priorities.
type more[K comparable] struct {
	group string
	flow  *flow[K] // while ready and not running, in an order that is not plain
	link  link[K]  // of the list of the ready entries of that flow
	delay delay    // while held

	// Why the key waits for its turn.
	causes []Cause
	lost   int32
}

// extra makes room for more.
func (e *entry[K]) extra() *more[K] {
	if e.more == nil {
		e.more = new(more[K])
	}
	return e.more
}

func (e *entry[K]) group() string {
	if e.more == nil {
		return ""
	}
	return e.more.group
}

// takeCauses returns why the key waited for its turn, and forgets it.
func (e *entry[K]) takeCauses() ([]Cause, int) {
	m := e.more
	if m == nil || m.causes == nil {
		return nil, 0
	}
	causes, lost := m.causes, int(m.lost)
	m.causes, m.lost = nil, 0
	return causes, lost
}

type link[K comparable] struct{ prev, next *entry[K] }

// The two lists that an entry can be in at once.
type listKind uint8

const (
	byAge listKind = iota
	byFlow
)

// list is a queue of entries.
type list[K comparable] struct {
	by          listKind
	front, back *entry[K]
	n           int
}

func (l *list[K]) link(e *entry[K]) *link[K] {
	if l.by == byAge {
		return &e.age
	}
	return &e.more.link
}

func (l *list[K]) push(e *entry[K]) {
	*l.link(e) = link[K]{prev: l.back}
	if l.back == nil {
		l.front = e
	} else {
		l.link(l.back).next = e
	}
	l.back = e
	l.n++
}

// remove takes an entry out. That of the front writes to no other entry, which
// may be in the cache of another processor: the prev of a front means nothing.
func (l *list[K]) remove(e *entry[K]) {
	at := l.link(e)
	switch {
	case e == l.front && e == l.back:
		l.front, l.back = nil, nil
	case e == l.front:
		l.front = at.next
	case e == l.back:
		l.back = at.prev
		l.link(l.back).next = nil
	default:
		l.link(at.prev).next, l.link(at.next).prev = at.next, at.prev
	}
	*at = link[K]{}
	l.n--
}

// runners are the entries that workers have, in no order. To come and to go
// touches no other entry.
type runners[K comparable] struct {
	slots []*entry[K] // nil where one has gone
	free  []int32     // those slots
}

func (r *runners[K]) len() int { return len(r.slots) - len(r.free) }

func (r *runners[K]) add(e *entry[K]) {
	if i := len(r.free) - 1; i >= 0 {
		e.slot, r.free = r.free[i], r.free[:i]
		r.slots[e.slot] = e
		return
	}
	e.slot = int32(len(r.slots))
	r.slots = append(r.slots, e)
}

func (r *runners[K]) remove(e *entry[K]) {
	r.slots[e.slot] = nil
	r.free = append(r.free, e.slot)
}

// oldest is the entry that has run for longest, or nil.
func (r *runners[K]) oldest() *entry[K] {
	var first *entry[K]
	for _, e := range r.slots {
		if e != nil && (first == nil || e.run < first.run) {
			first = e
		}
	}
	return first
}

// byAge returns the entries, the one that has run for longest first.
func (r *runners[K]) byAge() []*entry[K] {
	all := make([]*entry[K], 0, r.len())
	for _, e := range r.slots {
		if e != nil {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b *entry[K]) int { return cmp.Compare(a.run, b.run) })
	return all
}

// spares are entries to use again. New ones are made a slab at a time.
type spares[K comparable] struct {
	first *entry[K] // a chain
	n     int
	slab  []entry[K]
}

const (
	// maxSpares bounds what a queue keeps of its busiest time: some 8 MB with
	// keys of two strings. Fewer, and the next burst is spent allocating.
	maxSpares = 1 << 16
	slabSize  = 32
)

func (s *spares[K]) take() *entry[K] {
	if e := s.first; e != nil {
		s.first, e.chain = e.chain, nil
		s.n--
		return e
	}
	if len(s.slab) == 0 {
		s.slab = make([]entry[K], slabSize)
	}
	e := &s.slab[0]
	s.slab = s.slab[1:]
	return e
}

// put keeps an entry that is in no list, idle, not running and not retried. The
// number of its last run stays, by which a second Done is known.
func (s *spares[K]) put(e *entry[K]) {
	var none K
	e.key = none
	if e.more != nil {
		e.more.group = ""
	}
	if s.n < maxSpares {
		s.first, e.chain = e, s.first
		s.n++
	}
}
