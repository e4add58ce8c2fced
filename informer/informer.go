package informer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/even-keel/evenkeel/cache"
	"github.com/even-keel/evenkeel/client"
)

// Informer is a cache of objects that a watch keeps up to date, and tells handlers
// what becomes of them. Make one with [For]; it is safe for concurrent use.
//
// Objects that it hands out are shared and read-only.
type Informer[T client.Object] struct {
	of   *shared[T]
	err  error
	once sync.Once

	mu     sync.Mutex
	mine   map[*handler[T]]struct{}
	closed bool
}

// Get returns the object of a name. Until the informer is synced, it may not be
// there yet.
func (in *Informer[T]) Get(namespace, name string) (T, bool) { return in.of.store.Get(namespace, name) }

// List yields the objects that fit all queries, ordered by key.
func (in *Informer[T]) List(queries ...cache.Query) iter.Seq[T] { return in.of.store.List(queries...) }

// Count returns how many objects fit all queries.
func (in *Informer[T]) Count(queries ...cache.Query) int { return in.of.store.Count(queries...) }

// Snapshot returns the present state, which never changes.
func (in *Informer[T]) Snapshot() cache.Snapshot[T] { return in.of.store.Snapshot() }

// At returns the state in a view of the set's informers; see [Set.View].
func (in *Informer[T]) At(v *cache.View) cache.Snapshot[T] { return in.of.store.At(v) }

// AddIndex adds a secondary index, also while the informer runs.
func (in *Informer[T]) AddIndex(name string, values func(T) []string) error {
	err := in.of.store.AddIndex(name, values)
	if err == nil {
		in.of.indexes.Store(name, values)
	}
	return err
}

// addIndexes adds those indexes that the informer does not have yet.
func (in *Informer[T]) addIndexes(c *config) error {
	indexes, err := indexesOf[T](c)
	if err != nil {
		return err
	}
	for name, values := range indexes {
		if err := in.AddIndex(name, values); err != nil && !errors.Is(err, cache.ErrIndexExists) {
			return err
		}
	}
	return nil
}

// Stats says how much memory the cache takes.
func (in *Informer[T]) Stats() cache.Stats { return in.of.store.Stats() }

// Verify returns an error for every object that a reader changed, if the set
// detects that.
func (in *Informer[T]) Verify() error { return in.of.store.Verify() }

// Status tells how the informer is.
func (in *Informer[T]) Status() Status {
	st := in.of.status()
	if in.err != nil {
		st.Err = in.err
	}
	return st
}

// Synced is closed once the cache has had the whole state.
func (in *Informer[T]) Synced() <-chan struct{} { return in.of.whole }

// HasSynced reports whether the cache has had the whole state.
func (in *Informer[T]) HasSynced() bool { return isClosed(in.of.whole) }

// WaitForSync waits until the cache has the whole state.
func (in *Informer[T]) WaitForSync(ctx context.Context) error {
	if in.err != nil {
		return fmt.Errorf("%s: %w: %w", in.of.about, ErrNotSynced, in.err)
	}
	if in.HasSynced() {
		return nil // as it is before nearly every read of a layer
	}
	err := waitFor(ctx, in.of)
	if err == nil {
		return nil
	}
	if st := in.of.status(); st.Err != nil {
		err = fmt.Errorf("%w: %w", err, st.Err)
	}
	return err
}

// WaitForRevision waits until the cache has seen what was written at a revision,
// which an object of this kind or a list of it told. Who writes through a [Layer]
// need not: it shows what was written.
func (in *Informer[T]) WaitForRevision(ctx context.Context, r cache.Revision) error {
	if err := in.WaitForSync(ctx); err != nil || r == "" || r == "0" {
		return err
	}
	for {
		advanced := in.of.next()
		if now := in.Snapshot(); now.Revision().Includes(r) {
			return nil
		}
		select {
		case <-advanced:
		case <-ctx.Done():
			return fmt.Errorf("%s: wait for revision %s: %w", in.of.about, r, context.Cause(ctx))
		}
	}
}

// Handle calls a function with what becomes of each object, one after the other,
// by a goroutine of its own. It begins with an Added for each object there is. A
// function that is slow holds up nobody; of each key, it hears the latest state.
func (in *Informer[T]) Handle(handle func(Delta[T])) Registration {
	return in.HandleWith(HandlerOptions[T]{}, handle)
}

// HandleWith is Handle with options.
func (in *Informer[T]) HandleWith(o HandlerOptions[T], handle func(Delta[T])) Registration {
	o.AtMost = 1
	return in.HandleBatch(o, func(batch []Delta[T]) {
		for _, d := range batch { // two if the name was taken over
			handle(d)
		}
	})
}

// HandleBatch is HandleWith for a function that takes all that is pending at once.
// The slice is the function's own.
func (in *Informer[T]) HandleBatch(o HandlerOptions[T], handle func([]Delta[T])) Registration {
	h := newHandler(in, o, handle)
	if in.keep(h) {
		in.of.join(h)
	} else {
		close(h.done)
	}
	return h
}

// keep remembers a handler, unless the informer has been given back.
func (in *Informer[T]) keep(h *handler[T]) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return false
	}
	if in.mine == nil {
		in.mine = map[*handler[T]]struct{}{}
	}
	in.mine[h] = struct{}{}
	return true
}

func (in *Informer[T]) forget(h *handler[T]) {
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.mine, h)
}

// Close gives the informer back, and removes the handlers that were added through
// it. It does not wait; [Set.Shutdown] does.
func (in *Informer[T]) Close() {
	in.once.Do(func() {
		in.mu.Lock()
		mine := in.mine
		in.mine, in.closed = nil, true
		in.mu.Unlock()
		for h := range mine {
			in.of.remove(h)
		}
		in.of.release()
	})
}
