package informer

import (
	"github.com/even-keel/evenkeel/cache"
	"github.com/even-keel/evenkeel/client"
)

// replacement collects a whole state of a part, to take the place of what there
// was. Of what was there it remembers only which keys the new state has.
//
// The state that the store has is not held twice: objects in revisions that are
// known are let go at once. The others are made visible together, at the end. But
// if they are more than a quarter of the store, they go there as they come, as
// they do when there was nothing before: then readers see old and new objects
// side by side until the end, as after any number of events.
type replacement[T client.Object] struct {
	of       *shared[T]
	part     *part[T]
	seen     map[client.Key]struct{} // nil if there was nothing before
	first    bool
	pending  []event[T]
	most     int
	progress bool // of keys not seen before, since it was last looked at
}

// leastPending is how many objects are held back in any case.
const leastPending = 1000

func (s *shared[T]) replace(p *part[T]) *replacement[T] {
	s.turn.Lock()
	defer s.turn.Unlock()
	r := &replacement[T]{of: s, part: p, first: !p.synced()}
	had := s.store.Count()
	if p.held != nil {
		had = len(p.held)
	}
	if had > 0 {
		r.seen = make(map[client.Key]struct{}, had)
	}
	if !r.first {
		r.most = max(leastPending, had/4)
	}
	return r
}

// add takes some of the new state, and changes that came meanwhile.
func (r *replacement[T]) add(events []event[T]) {
	s := r.of
	s.turn.Lock()
	defer s.turn.Unlock()
	now := s.store.Snapshot()
	for _, e := range events {
		r.note(e, now)
		if !e.deleted {
			r.part.hold(e.key)
		}
		if e.deleted || !s.knownLocked(r.part, now, e) {
			r.pending = append(r.pending, e)
		}
	}
	if len(r.pending) > r.most && !r.part.left {
		s.applyLocked(r.part, write[T]{events: r.pending, replaced: !r.first, fresh: r.most == 0})
		r.pending = nil
	}
}

// note remembers the keys of the new state.
func (r *replacement[T]) note(e event[T], now cache.Snapshot[T]) {
	switch {
	case r.seen == nil:
		r.progress = r.progress || !now.Entry(e.key.Namespace, e.key.Name).Exists()
	case e.deleted:
		delete(r.seen, e.key)
	default:
		n := len(r.seen)
		r.seen[e.key] = struct{}{}
		r.progress = r.progress || len(r.seen) > n
	}
}

// finish makes the new state the part's. It is complete up to a revision.
func (r *replacement[T]) finish(revision string) {
	s := r.of
	s.turn.Lock()
	defer s.turn.Unlock()
	if r.part.left {
		return
	}
	if r.seen != nil {
		s.keysLocked(r.part, func(k client.Key) {
			if _, ok := r.seen[k]; !ok {
				r.pending = append(r.pending, event[T]{key: k, missing: true})
			}
		})
	}
	s.applyLocked(r.part, write[T]{events: r.pending, revision: revision, replaced: !r.first})
	r.pending, r.seen = nil, nil
	s.settleLocked()
}
