package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/tidwall/btree"

	"github.com/even-keel/evenkeel/storage"
)

// Hub follows a store. Make one with [New], load it, and run it.
type Hub struct {
	store  storage.Store
	follow storage.Watcher
	// compacted is a revision, see Compacted.
	compacted atomic.Uint64

	mu        sync.RWMutex
	through   storage.Revision
	start     storage.Revision
	resources map[string]*Resource
	// moved is closed and replaced when through grows.
	moved chan struct{}
	// ended says why the hub no longer follows; stopped is closed with it.
	ended   error
	stopped chan struct{}
}

// New returns a hub that knows nothing yet.
func New(store storage.Store) *Hub {
	return &Hub{store: store, resources: map[string]*Resource{}, moved: make(chan struct{}), stopped: make(chan struct{})}
}

// loadPage is how many objects are read at once when the hub is loaded.
const loadPage = 2000

// Load reads the state of the store. It must be called before Run, which calls it
// again if the store has forgotten what it has not told yet.
func (h *Hub) Load(ctx context.Context) error {
	states, rev, err := h.scan(ctx)
	if err != nil {
		return fmt.Errorf("load the state: %w", err)
	}
	h.mu.Lock()
	h.start = rev
	for name := range h.resources {
		if states[name] == nil {
			states[name] = &btree.Map[string, *Object]{}
		}
	}
	h.mu.Unlock()
	for name, state := range states { // before how far the hub is, as in apply
		h.Resource(name).reset(state, rev)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.follow = h.store.Watch("", rev)
	h.through = max(h.through, rev)
	close(h.moved)
	h.moved = make(chan struct{})
	return nil
}

// scan reads all objects of the store, as they stood at one revision.
func (h *Hub) scan(ctx context.Context) (map[string]*btree.Map[string, *Object], storage.Revision, error) {
	states := map[string]*btree.Map[string, *Object]{}
	r := storage.Range{Limit: loadPage}
	for {
		page, err := h.store.Scan(ctx, r)
		if err != nil {
			return nil, 0, err
		}
		r.Revision = cmp.Or(r.Revision, page.Revision)
		for _, e := range page.Entries {
			o, err := NewObject(e.Key, e.Value, e.Revision)
			if err != nil {
				return nil, 0, err
			}
			name, _, _, _ := splitKey(e.Key)
			if states[name] == nil {
				states[name] = &btree.Map[string, *Object]{}
			}
			states[name].Set(treeKey(o.Namespace, o.Name), o)
		}
		if !page.More {
			return states, r.Revision, nil
		}
		r.Start = page.Next
	}
}

// Resource returns a resource by the name its keys begin with. One without
// objects is made.
func (h *Hub) Resource(name string) *Resource {
	h.mu.RLock()
	r, ok := h.resources[name]
	h.mu.RUnlock()
	if ok {
		return r
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if r, ok := h.resources[name]; ok {
		return r
	}
	r = newResource(h, name, h.start)
	h.resources[name] = r
	return r
}

// Run follows the store until ctx ends, which is no error.
func (h *Hub) Run(ctx context.Context) error {
	defer func() { h.follow.Close() }()
	for {
		batch, err := h.follow.Next(ctx)
		if ctx.Err() != nil {
			h.end(fmt.Errorf("the server is stopping: %w", context.Canceled))
			return nil
		}
		switch {
		case err == nil:
			err = h.apply(batch)
		case errors.Is(err, storage.ErrCompacted):
			h.follow.Close()
			err = h.Load(ctx)
		}
		if err != nil {
			err = fmt.Errorf("follow the store: %w", err)
			h.end(err)
			return err
		}
	}
}

func (h *Hub) end(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = err
	close(h.stopped)
}

// apply takes a batch in: first the resources, then how far the hub is.
func (h *Hub) apply(batch storage.Batch) error {
	byResource := map[string][]*Event{}
	for _, e := range batch.Events {
		name, _, _, ok := splitKey(e.Key)
		if !ok {
			continue
		}
		event, err := h.event(name, e, byResource[name])
		if err != nil {
			return err
		}
		byResource[name] = append(byResource[name], event)
	}
	for name, events := range byResource {
		h.Resource(name).apply(events)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.through = max(h.through, batch.Through)
	close(h.moved)
	h.moved = make(chan struct{})
	return nil
}

// event turns a change of the store into one of an object. The object before it
// is the one that readers already share, if it can be found.
func (h *Hub) event(resource string, e storage.Event, pending []*Event) (*Event, error) {
	out := &Event{Revision: e.Revision}
	if e.Previous.Exists() {
		out.Previous = h.known(resource, e.Previous, pending)
	}
	return fillEvent(out, e)
}

func (h *Hub) known(resource string, e storage.Entry, pending []*Event) *Object {
	for i := len(pending) - 1; i >= 0; i-- {
		if o := pending[i].Object; o != nil && o.Revision == e.Revision {
			return o
		}
	}
	_, namespace, name, _ := splitKey(e.Key)
	if o := h.Resource(resource).Get(namespace, name); o != nil && o.Revision == e.Revision {
		return o
	}
	return nil
}

func fillEvent(out *Event, e storage.Event) (*Event, error) {
	var err error
	if e.Previous.Exists() && out.Previous == nil {
		if out.Previous, err = NewObject(e.Key, e.Previous.Value, e.Previous.Revision); err != nil {
			return nil, err
		}
	}
	if !e.Deleted {
		out.Object, err = NewObject(e.Key, e.Value, e.Revision)
	}
	return out, err
}

// Compact has the store forget what is older than a revision. Nobody can watch
// or list from before it from then on; who watches already goes on.
func (h *Hub) Compact(ctx context.Context, rev storage.Revision) error {
	if err := h.store.Compact(ctx, rev); err != nil {
		return err
	}
	for {
		was := h.compacted.Load()
		if was >= uint64(rev) || h.compacted.CompareAndSwap(was, uint64(rev)) {
			return nil
		}
	}
}

// Compacted is the revision that was last compacted by this hub.
func (h *Hub) Compacted() storage.Revision { return storage.Revision(h.compacted.Load()) }

// Through is the revision up to which the hub has seen everything.
func (h *Hub) Through() storage.Revision {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.through
}

// Wait blocks until the hub has seen everything up to rev.
func (h *Hub) Wait(ctx context.Context, rev storage.Revision) error {
	asked := false
	for {
		h.mu.RLock()
		through, moved, ended, follow := h.through, h.moved, h.ended, h.follow
		h.mu.RUnlock()
		switch {
		case through >= rev:
			return nil
		case ended != nil:
			return ended
		case !asked:
			follow.RequestProgress()
			asked = true
		}
		select {
		case <-moved:
		case <-h.stopped:
		case <-ctx.Done():
			return fmt.Errorf("wait for revision %d: %w", rev, ctx.Err())
		}
	}
}

// Sync blocks until the hub has seen every write that was answered before the
// call, whoever made it.
func (h *Hub) Sync(ctx context.Context) error {
	head, err := h.store.Head(ctx)
	if err != nil {
		return err
	}
	return h.Wait(ctx, head)
}
