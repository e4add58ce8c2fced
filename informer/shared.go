package informer

import (
	"context"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

	"github.com/even-keel/evenkeel/cache"
	"github.com/even-keel/evenkeel/client"
)

// shared is what informers have in common that watch the same: a store, the parts
// that fill it, and the handlers that hear of it.
//
// All writes to the store go through apply, in turns. Within a turn, the store is
// written and every handler's list of pending changes is brought up to date, so
// that what a handler knows, with what is pending for it, is the store's state
// whenever nobody has the turn. That is why a handler can join at any time. No
// function of a handler is called within a turn, but those of indexes are.
type shared[T client.Object] struct {
	set       *Set
	id        identity
	about     string
	client    *client.Client[T]
	store     *cache.Store[T]
	transform func(T) T
	strips    bool // managed fields, before they are decoded
	sharers   sync.Pool
	indexes   sync.Map // the functions of the store's indexes, by their names
	selected  atomic.Pointer[[]Selection]
	config    *config
	whole     chan struct{} // closed when it is synced
	err       error         // of the options: then it has no parts
	users     int           // guarded by the set

	turn     sync.Mutex
	parts    []*part[T]
	handlers map[*handler[T]]struct{}
	ends     ends
	running  bool
	stopped  bool
	scoped   bool // the parts are known
	synced   bool
	// advanced is closed when the store changes, if somebody waits for that.
	advanced chan struct{}
}

// event is what a part says of an object.
type event[T client.Object] struct {
	key client.Key
	obj T
	// ready is obj as the store has prepared it, if it has.
	ready cache.Prepared[T]
	// deleted says that obj is its last state, missing that it is gone unseen and
	// there is no obj.
	deleted, missing bool
}

func (e event[T]) revision() cache.Revision { return cache.Revision(e.obj.GetResourceVersion()) }

// write is what a reflector has for the store.
type write[T client.Object] struct {
	events []event[T]
	// revision is up to where the part is complete with it, if that is known.
	revision string
	// replaced says that it was found by listing again, fresh that the store is
	// known to have none of it.
	replaced, fresh bool
}

// apply makes a write visible at once, to readers and handlers.
func (s *shared[T]) apply(p *part[T], w write[T]) {
	for _, h := range s.applied(p, w) {
		h.now()
	}
}

// applied applies a write, and returns the handlers that are to be called.
func (s *shared[T]) applied(p *part[T], w write[T]) []*handler[T] {
	s.turn.Lock()
	defer s.turn.Unlock()
	if p.left {
		return nil
	}
	return s.changeLocked(p, w)
}

// applyLocked is apply for who has the turn.
func (s *shared[T]) applyLocked(p *part[T], w write[T]) {
	for _, h := range s.changeLocked(p, w) {
		h.ring()
	}
}

// changeLocked applies a write, and returns the prompt handlers that nobody has told
// that there is something for them.
func (s *shared[T]) changeLocked(p *part[T], w write[T]) []*handler[T] {
	initial := !p.synced()
	now := s.store.Snapshot()
	var b cache.Batch[T]
	finals := map[types.UID]T{}
	touched := map[client.Key]bool{} // by this batch, which now does not show
	for _, e := range w.events {
		if !e.deleted && !e.missing {
			p.hold(e.key)
			if w.fresh || touched[e.key] && !s.ends.after(e.key, e.revision()) || !s.knownLocked(p, now, e) {
				if e.ready.Ready() {
					b.SetPrepared(e.ready)
				} else {
					b.Set(e.obj)
				}
				if !w.fresh {
					touched[e.key] = true
				}
			}
			continue
		}
		p.drop(e.key)
		s.endLocked(p, now, e)
		if s.heldElsewhereLocked(p, e.key) {
			continue
		}
		b.Delete(e.key)
		touched[e.key] = true
		if e.deleted && !s.outdatedLocked(p, now, e) {
			finals[e.obj.GetUID()] = e.obj
		}
	}
	if r := cache.Revision(w.revision); r != "" {
		if !r.Includes(p.revision) {
			s.ends.forget()
		}
		p.revision = r
	}
	complete := s.completeLocked()
	s.ends.passed(complete)
	b.Complete(complete)
	prompt := s.tellLocked(s.store.Apply(&b), finals, initial, w.replaced)
	if s.advanced != nil {
		close(s.advanced)
		s.advanced = nil
	}
	return prompt
}

// knownLocked reports whether an event tells nothing new: the store has this
// revision or, as another part has been faster, has or had a later one.
func (s *shared[T]) knownLocked(p *part[T], now cache.Snapshot[T], e event[T]) bool {
	if s.ends.after(e.key, e.revision()) {
		return true
	}
	has := now.Entry(e.key.Namespace, e.key.Name)
	if !has.Exists() {
		return false
	}
	revision := e.revision()
	if has.Revision() == revision && has.UID() == e.obj.GetUID() {
		return revision != ""
	}
	return has.Revision().Includes(revision) && s.heldElsewhereLocked(p, e.key)
}

// outdatedLocked reports whether an event is older than what the store has, by
// another part that has been faster.
func (s *shared[T]) outdatedLocked(p *part[T], now cache.Snapshot[T], e event[T]) bool {
	has := now.Entry(e.key.Namespace, e.key.Name)
	return p.held != nil && has.Exists() && !e.revision().Includes(has.Revision())
}

// endLocked remembers up to where an object is known that a part lets go.
func (s *shared[T]) endLocked(p *part[T], now cache.Snapshot[T], e event[T]) {
	if p.held == nil {
		return
	}
	if has := now.Entry(e.key.Namespace, e.key.Name); has.Exists() {
		s.ends.note(e.key, has.Revision())
	}
	if e.deleted {
		s.ends.note(e.key, e.revision())
	}
}

// completeLocked is up to where all parts are complete.
func (s *shared[T]) completeLocked() cache.Revision {
	var least cache.Revision
	for i, p := range s.parts {
		switch {
		case p.leaving:
		case p.revision == "":
			return ""
		case i == 0 || least == "" || least.Includes(p.revision):
			least = p.revision
		}
	}
	return least
}

// tellLocked tells the handlers what became of the store, but for the prompt ones,
// which it returns.
func (s *shared[T]) tellLocked(changes []cache.Change[T], finals map[types.UID]T, initial, replaced bool) (prompt []*handler[T]) {
	if len(changes) == 0 || len(s.handlers) == 0 {
		return nil
	}
	out := make([]change[T], len(changes))
	for i, c := range changes {
		out[i] = change[T]{old: c.Old, now: c.New, initial: initial, replaced: replaced}
		if c.Old.Exists() && !c.New.Exists() && len(finals) > 0 {
			out[i].final, out[i].hasFinal = finals[c.Old.UID()]
		}
	}
	for h := range s.handlers {
		h.merge(out)
		if h.opts.Prompt {
			prompt = append(prompt, h)
			continue
		}
		h.ring()
	}
	return prompt
}

// next is closed when the store changes.
func (s *shared[T]) next() <-chan struct{} {
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.advanced == nil {
		s.advanced = make(chan struct{})
	}
	return s.advanced
}

// index returns the function of an index.
func (s *shared[T]) index(name string) (values func(T) []string, ok bool) {
	f, ok := s.indexes.Load(name)
	if ok {
		values = f.(func(T) []string)
	}
	return values, ok
}

// vanish empties a part whose kind does not exist any more.
func (s *shared[T]) vanish(p *part[T]) {
	s.turn.Lock()
	defer s.turn.Unlock()
	if !p.left {
		s.emptyLocked(p)
	}
}

// emptyLocked takes a part's objects out that no other part holds.
func (s *shared[T]) emptyLocked(p *part[T]) {
	var gone []event[T]
	s.keysLocked(p, func(k client.Key) { gone = append(gone, event[T]{key: k, missing: true}) })
	if len(gone) > 0 {
		s.applyLocked(p, write[T]{events: gone})
	}
}

// join adds a handler, and has it be told of the present state.
func (s *shared[T]) join(h *handler[T]) {
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.stopped {
		h.end()
		close(h.done)
		return
	}
	s.handlers[h] = struct{}{}
	h.begin(s.store.Snapshot())
	if s.synced {
		h.mark()
	}
	if s.running {
		s.set.work.Go(h.run)
	}
}

func (s *shared[T]) remove(h *handler[T]) {
	s.turn.Lock()
	defer s.turn.Unlock()
	if _, ok := s.handlers[h]; !ok {
		return
	}
	delete(s.handlers, h)
	h.end()
	if !s.running {
		close(h.done)
	}
}

// resync has a handler be told again of all that it knows.
func (s *shared[T]) resync(h *handler[T]) {
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.synced {
		h.repeat(s.store.Snapshot())
	}
}

// start begins to watch and to call handlers.
func (s *shared[T]) start() {
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.running || s.stopped {
		return
	}
	s.running = true
	for _, p := range s.parts {
		s.startPartLocked(p)
	}
	for h := range s.handlers {
		s.set.work.Go(h.run)
	}
}

func (s *shared[T]) startPartLocked(p *part[T]) {
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	r := newReflector(s, p)
	s.set.work.Go(func() {
		defer cancel()
		r.run(ctx)
	})
}

// stop ends all that start began, and does not wait for it.
func (s *shared[T]) stop() {
	if s.config.scope != nil {
		s.config.scope.leave(s)
	}
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.stopped {
		return
	}
	for _, p := range s.parts {
		p.stop()
	}
	for h := range s.handlers {
		h.end()
		if !s.running {
			close(h.done)
		}
	}
	s.handlers = nil
	s.running, s.stopped = false, true
	s.store.Leave()
}

func (s *shared[T]) wholeState() <-chan struct{} { return s.whole }

func (s *shared[T]) failure() error { return s.err }

func (s *shared[T]) status() Status {
	s.turn.Lock()
	defer s.turn.Unlock()
	now := s.store.Snapshot()
	out := Status{Kind: s.about, Synced: s.synced, Revision: now.Revision(), Objects: now.Count(), Bytes: s.store.Stats().Bytes(), Handlers: len(s.handlers), Err: s.err}
	for h := range s.handlers {
		out.Pending = max(out.Pending, h.Pending())
	}
	for _, p := range s.parts {
		ps := p.board.read()
		ps.Synced = p.synced()
		if out.Err == nil {
			out.Err = ps.Err
		}
		out.Parts = append(out.Parts, ps)
	}
	return out
}
