package informer

import (
	"context"

	"github.com/even-keel/evenkeel/cache"
	"github.com/even-keel/evenkeel/client"
)

// part is one selection of an informer, which one reflector watches. All of it
// but the board is guarded by the informer's turn.
type part[T client.Object] struct {
	selection Selection
	board     board
	cancel    context.CancelFunc // nil until it is started

	// held are the keys that the server has shown for this selection. It is nil
	// while the part is the only one: then they are the store's.
	held map[client.Key]struct{}
	// revision is up to where the part is complete; "" until it has synced.
	revision cache.Revision
	// leaving says that the part is not wanted any more, but keeps its objects
	// until other parts show what they have of them. A part that has left is
	// ignored.
	leaving, left bool
}

func (p *part[T]) synced() bool { return p.revision != "" }

// holds is for parts that are not the only one.
func (p *part[T]) holds(k client.Key) bool {
	_, ok := p.held[k]
	return ok
}

func (p *part[T]) hold(k client.Key) {
	if p.held != nil {
		p.held[k] = struct{}{}
	}
}

func (p *part[T]) drop(k client.Key) {
	if p.held != nil {
		delete(p.held, k)
	}
}

// stop ends the part's reflector, which nobody waits for here.
func (p *part[T]) stop() {
	p.left = true
	if p.cancel != nil {
		p.cancel()
	}
}

// addPartLocked begins to watch one more selection.
func (s *shared[T]) addPartLocked(selection Selection) {
	p := &part[T]{selection: selection}
	p.board.status = PartStatus{Selection: selection, Phase: Starting}
	switch len(s.parts) {
	case 0:
	case 1:
		s.shareLocked(s.parts[0])
		fallthrough
	default:
		p.held = map[client.Key]struct{}{}
	}
	s.parts = append(s.parts, p)
	if s.running {
		s.startPartLocked(p)
	}
}

// shareLocked makes the only part remember what is its own.
func (s *shared[T]) shareLocked(p *part[T]) {
	p.held = map[client.Key]struct{}{}
	for e := range s.store.Snapshot().Entries() {
		p.held[e.Key()] = struct{}{}
	}
}

// keysLocked yields the keys that a part holds.
func (s *shared[T]) keysLocked(p *part[T], yield func(client.Key)) {
	if p.held != nil {
		for k := range p.held {
			yield(k)
		}
		return
	}
	for e := range s.store.Snapshot().Entries() {
		yield(e.Key())
	}
}

// heldElsewhereLocked reports whether another part holds a key too.
func (s *shared[T]) heldElsewhereLocked(p *part[T], k client.Key) bool {
	for _, o := range s.parts {
		if o != p && o.holds(k) {
			return true
		}
	}
	return false
}

// rescope makes these the selections of the informer: parts that are among them
// stay, others come and go. A part goes at once unless parts that come may have
// objects of it; then it waits until these are synced, so that what stays
// selected stays in the store.
func (s *shared[T]) rescope(selections []Selection) {
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.stopped {
		return
	}
	s.selected.Store(&selections)
	wanted := map[Selection]bool{}
	for _, selection := range selections {
		wanted[selection] = true
	}
	for _, p := range s.parts {
		p.leaving = !wanted[p.selection]
		delete(wanted, p.selection)
	}
	for _, selection := range selections {
		if wanted[selection] {
			s.addPartLocked(selection)
		}
	}
	s.scoped = true
	s.settleLocked()
}

// settleLocked drops the parts that can go, and tells if all that are left are
// synced for the first time.
func (s *shared[T]) settleLocked() {
	for _, p := range append([]*part[T](nil), s.parts...) {
		if p.leaving && !s.awaitedLocked(p) {
			s.dropPartLocked(p)
		}
	}
	if s.synced || !s.scoped {
		return
	}
	for _, p := range s.parts {
		if !p.leaving && !p.synced() {
			return
		}
	}
	s.synced = true
	close(s.whole)
	for h := range s.handlers {
		h.mark()
	}
}

// awaitedLocked reports whether a part that comes may have objects of p.
func (s *shared[T]) awaitedLocked(p *part[T]) bool {
	for _, o := range s.parts {
		if !o.leaving && !o.synced() && o.selection.meets(p.selection) {
			return true
		}
	}
	return false
}

// dropPartLocked takes a part out, with the objects that no other part holds.
func (s *shared[T]) dropPartLocked(p *part[T]) {
	s.emptyLocked(p)
	p.stop()
	for i, o := range s.parts {
		if o == p {
			s.parts = append(s.parts[:i:i], s.parts[i+1:]...)
			break
		}
	}
	if len(s.parts) == 1 {
		s.parts[0].held = nil
		s.ends.forget()
	}
}
