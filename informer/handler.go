package informer

import (
	"sync"
	"time"

	"github.com/even-keel/evenkeel/cache"
	"github.com/even-keel/evenkeel/client"
)

// Registration is a handler's place in an informer.
type Registration interface {
	// Synced is closed once the handler has returned from the last object of its
	// initial list: of what there was when it joined, or when the informer synced.
	Synced() <-chan struct{}
	HasSynced() bool
	// Pending is how many keys the handler has yet to be told of.
	Pending() int
	// Remove ends the handler. It does not wait, so that handlers can call it: a
	// call that is under way goes on, and none follows.
	Remove()
	// Done is closed once the handler is removed, or the informer has ended, and
	// no call of it is under way.
	Done() <-chan struct{}
}

// HandlerOptions say how a handler is called.
type HandlerOptions[T client.Object] struct {
	// Filter hides objects for which it is false: one that no longer fits is
	// Deleted, with the state that does not fit, and one that fits at last is
	// Added. It must be pure: it is called anew for what the handler has seen.
	Filter func(T) bool
	// Resync is how often every object is repeated to the handler, as a [Sync].
	// Nothing is read from the server. Zero is never.
	Resync time.Duration
	// SkipUnchanged leaves out updates in which nothing but the revision and
	// managed fields differ.
	SkipUnchanged bool
	// Brief has the handler also hear of objects that came and went before it heard of
	// them: as a Deleted of what it never knew. Who creates objects and reads them from
	// a [Layer] may have seen them. Of those that wait, there are 4,096 at most.
	Brief bool
	// AtMost bounds how many keys a batch has; zero is all that are pending.
	AtMost int
	// Prompt lets the goroutine that watches call the function, which saves a
	// handover: for functions that return at once, and never wait for the informer.
	Prompt bool
}

// handler calls a function with what becomes of objects.
//
// Invariant: of each key, the handler knows a state (or that there is none), and
// the pending entry of the key holds that state as old and the store's as now. A
// key has no entry if the two are the same, but for what came and went if the handler
// wants to hear of that. So there are never more entries than
// keys that the handler or the store know, and maxGhosts, however slow the handler is.
type handler[T client.Object] struct {
	of     *shared[T]
	by     *Informer[T]
	handle func([]Delta[T])
	opts   HandlerOptions[T]
	synced chan struct{}
	wake   chan struct{} // holds one
	stop   chan struct{}
	done   chan struct{}
	once   sync.Once // closes stop

	busy  sync.Mutex // held by who takes and delivers
	taken []*pending[T]

	mu      sync.Mutex
	pending map[client.Key]*pending[T]
	ends    pending[T] // before the first and after the last
	ghosts  int        // how many pending entries have one
}

// maxGhosts is how many objects a handler has yet to hear of that are gone already.
const maxGhosts = 4096

func newHandler[T client.Object](by *Informer[T], o HandlerOptions[T], handle func([]Delta[T])) *handler[T] {
	h := &handler[T]{
		of: by.of, by: by, handle: handle, opts: o,
		synced: make(chan struct{}), wake: make(chan struct{}, 1),
		stop: make(chan struct{}), done: make(chan struct{}),
		pending: map[client.Key]*pending[T]{},
	}
	h.ends.before, h.ends.after = &h.ends, &h.ends
	return h
}

func (h *handler[T]) Synced() <-chan struct{} { return h.synced }
func (h *handler[T]) Done() <-chan struct{}   { return h.done }

func (h *handler[T]) Remove() {
	h.of.remove(h)
	h.by.forget(h)
}

func (h *handler[T]) HasSynced() bool { return isClosed(h.synced) }

func (h *handler[T]) Pending() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.pending)
}

// end has run return.
func (h *handler[T]) end() { h.once.Do(func() { close(h.stop) }) }

// run calls the function until end is called.
func (h *handler[T]) run() {
	defer func() {
		h.busy.Lock()
		defer h.busy.Unlock()
		close(h.done)
	}()
	var tick <-chan time.Time
	if h.opts.Resync > 0 {
		t := time.NewTicker(h.opts.Resync)
		defer t.Stop()
		tick = t.C
	}
	for h.round(tick) {
	}
}

// round hands over what there is, or waits for something.
func (h *handler[T]) round(tick <-chan time.Time) (more bool) {
	select {
	case <-h.stop:
		return false
	case <-tick:
		h.of.resync(h)
		return true
	default:
	}
	if h.turn() {
		return true
	}
	select {
	case <-h.stop:
		return false
	case <-tick:
		h.of.resync(h)
	case <-h.wake:
	}
	return true
}

// turn hands over some of what is pending, and reports whether there was any.
func (h *handler[T]) turn() bool {
	h.busy.Lock()
	defer h.busy.Unlock()
	return h.turnLocked()
}

func (h *handler[T]) turnLocked() bool {
	if isClosed(h.stop) {
		return false
	}
	if h.take(); len(h.taken) == 0 {
		return false
	}
	h.deliver(h.taken)
	return true
}

// promptly is how much is handed over by who watches; what is more is run's.
const promptly = 16

// now hands over what is pending, by the goroutine that has just added it, if nobody
// else is at it.
func (h *handler[T]) now() {
	if h.Pending() > promptly || !h.busy.TryLock() {
		h.ring()
		return
	}
	defer h.busy.Unlock()
	for h.turnLocked() {
	}
}

func (h *handler[T]) deliver(taken []*pending[T]) {
	if taken[0].mark {
		close(h.synced)
		return
	}
	var out []Delta[T]
	for _, p := range taken {
		out = p.deltas(out, h.wants)
	}
	if h.opts.SkipUnchanged {
		out = dropUnchanged(out)
	}
	if len(out) > 0 {
		h.handle(out)
	}
}

// wants is true of objects that the filter lets through.
func (h *handler[T]) wants(e cache.Entry[T]) bool {
	return h.opts.Filter == nil || h.opts.Filter(e.Object())
}

func dropUnchanged[T client.Object](all []Delta[T]) []Delta[T] {
	kept := all[:0]
	for _, d := range all {
		if (d.Type == Updated || d.Type == Replaced) && same(d.Old(), d.Object()) {
			continue
		}
		kept = append(kept, d)
	}
	return kept
}

// take takes out the first keys, up to a mark, or a mark.
func (h *handler[T]) take() {
	clear(h.taken)
	h.taken = h.taken[:0]
	h.mu.Lock()
	defer h.mu.Unlock()
	for p := h.ends.after; p != &h.ends && (h.opts.AtMost == 0 || len(h.taken) < h.opts.AtMost); p = h.ends.after {
		if p.mark && len(h.taken) > 0 {
			return
		}
		h.unlinkLocked(p)
		h.taken = append(h.taken, p)
		if p.mark {
			return
		}
	}
}

// merge adds changes to what is pending. Somebody has to be told then: by ring, or
// by now.
func (h *handler[T]) merge(changes []change[T]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range changes {
		h.mergeLocked(c)
	}
}

func (h *handler[T]) mergeLocked(c change[T]) {
	key := keyOf(c)
	p := h.pending[key]
	if p == nil {
		p = &pending[T]{key: key, old: c.old}
		h.linkLocked(p)
	}
	if p.add(c); p.moot() && !h.hauntsLocked(p, c) {
		h.unlinkLocked(p)
	}
}

// hauntsLocked keeps what came and went unseen, for a handler that wants to hear of it.
func (h *handler[T]) hauntsLocked(p *pending[T], c change[T]) bool {
	if !h.opts.Brief || h.ghosts == maxGhosts && !p.ghost.Exists() {
		return false
	}
	if !p.ghost.Exists() {
		h.ghosts++
	}
	p.ghost = c.old
	return true
}

func keyOf[T client.Object](c change[T]) client.Key {
	if c.now.Exists() {
		return c.now.Key()
	}
	return c.old.Key()
}

// begin has the handler be told of a whole state: the one that it joins at.
func (h *handler[T]) begin(now cache.Snapshot[T]) {
	h.mu.Lock()
	for e := range now.Entries() {
		h.linkLocked(&pending[T]{key: e.Key(), now: e, initial: true})
	}
	h.mu.Unlock()
	h.ring()
}

// repeat has it be told again of what it knows, where nothing new is pending.
func (h *handler[T]) repeat(now cache.Snapshot[T]) {
	h.mu.Lock()
	for e := range now.Entries() {
		if h.pending[e.Key()] == nil {
			h.linkLocked(&pending[T]{key: e.Key(), old: e, now: e, sync: true})
		}
	}
	h.mu.Unlock()
	h.ring()
}

// mark has the handler be synced once it has been told of what is pending.
func (h *handler[T]) mark() {
	h.mu.Lock()
	h.linkLocked(&pending[T]{mark: true})
	h.mu.Unlock()
	h.ring()
}

func (h *handler[T]) ring() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

func (h *handler[T]) linkLocked(p *pending[T]) {
	if !p.mark {
		h.pending[p.key] = p
	}
	p.before, p.after = h.ends.before, &h.ends
	p.before.after, h.ends.before = p, p
}

func (h *handler[T]) unlinkLocked(p *pending[T]) {
	if !p.mark {
		delete(h.pending, p.key)
	}
	if p.ghost.Exists() {
		h.ghosts--
	}
	p.before.after, p.after.before = p.after, p.before
	p.before, p.after = nil, nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
