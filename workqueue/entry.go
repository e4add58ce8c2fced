package workqueue

import "time"

// pending is whether and how a key waits to be handed out.
type pending uint8

const (
	idle  pending = iota // nobody asked for the key
	held                 // it is in the heap, until its time comes
	ready                // it is to be handed out, if running then after Done
)

// entry is all that the queue knows of a key. Running and pending are apart:
// a key that is being worked on may wait for its next turn at the same time.
type entry[K comparable] struct {
	key   K
	hash  uint64
	chain *entry[K] // the next in its bucket of the table
	links [2]link[K]

	// The turn that the key waits for, if it does.
	pending  pending
	priority int
	queued   time.Duration
	flow     *flow[K] // while ready and not running
	delay    *delay   // while held; kept to use again
	causes   []Cause
	lost     int32

	// The turn that a worker has, if one does.
	running bool
	run     uint64
	started time.Duration
	ranAt   int // the priority of that turn

	retries int32
	group   string
}

type link[K comparable] struct{ prev, next *entry[K] }

// The two lists that an entry can be in at once.
const (
	byAge  = iota // all ready entries, or all running ones
	byFlow        // the ready entries of one flow
)

// list is a queue of entries, linked through links[by] of each.
type list[K comparable] struct {
	by          int
	front, back *entry[K]
	n           int
}

func (l *list[K]) push(e *entry[K]) {
	e.links[l.by] = link[K]{prev: l.back}
	if l.back == nil {
		l.front = e
	} else {
		l.back.links[l.by].next = e
	}
	l.back = e
	l.n++
}

func (l *list[K]) remove(e *entry[K]) {
	at := e.links[l.by]
	if at.prev == nil {
		l.front = at.next
	} else {
		at.prev.links[l.by].next = at.next
	}
	if at.next == nil {
		l.back = at.prev
	} else {
		at.next.links[l.by].prev = at.prev
	}
	e.links[l.by] = link[K]{}
	l.n--
}

// spares are entries to use again. New ones are made a slab at a time.
type spares[K comparable] struct {
	first *entry[K] // a chain
	n     int
	slab  []entry[K]
}

const (
	// maxSpares bounds what a queue keeps of its busiest time: some 13 MB with
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
	e.key, e.group = none, ""
	if s.n < maxSpares {
		s.first, e.chain = e, s.first
		s.n++
	}
}
