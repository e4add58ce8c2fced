package watch

import (
	"sync"
	"sync/atomic"

	"github.com/tidwall/btree"

	"github.com/even-keel/evenkeel/storage"
)

// A ring holds at most this much of a resource's latest events.
const (
	ringEvents = 4096
	ringBytes  = 8 << 20
)

// Event is one change of an object.
type Event struct {
	Revision storage.Revision
	// Object is the object after the change, nil if it was deleted.
	Object *Object
	// Previous is the object before the change, nil if it was created.
	Previous *Object

	// lines is where the event's line is made, nil if it is nobody else's event.
	lines *lines
	line  atomic.Pointer[[]byte]
}

// Resource is all objects of one resource.
type Resource struct {
	hub    *Hub
	name   string
	prefix storage.Key

	mu   sync.RWMutex
	tree btree.Map[string, *Object]
	// rev is the revision of the last event in the tree.
	rev storage.Revision
	// since says that events holds everything after it, up to rev.
	since  storage.Revision
	events []*Event
	bytes  int
	bell   bell
	lines  lines
}

func newResource(h *Hub, name string, since storage.Revision) *Resource {
	return &Resource{hub: h, name: name, prefix: Prefix(name), since: since, rev: since}
}

// reset takes a state over from the store. What led to it is not known: cursors
// that are behind have to ask the store, which has forgotten it.
func (r *Resource) reset(state *btree.Map[string, *Object], rev storage.Revision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tree = *state.Copy()
	r.events, r.bytes = nil, 0
	r.rev, r.since = rev, rev
	r.bell.ring(&r.mu)
}

// treeKey orders objects as storage does: by namespace, then name.
func treeKey(namespace, name string) string { return namespace + "/" + name }

// Get returns an object as it is now, or nil.
func (r *Resource) Get(namespace, name string) *Object {
	r.mu.RLock()
	defer r.mu.RUnlock()
	o, _ := r.tree.Get(treeKey(namespace, name))
	return o
}

// Snapshot returns all objects as they are now.
func (r *Resource) Snapshot() Snapshot {
	through := r.hub.Through() // before the tree: it may only be ahead
	r.mu.Lock()
	defer r.mu.Unlock()
	return Snapshot{tree: r.tree.Copy(), Revision: max(through, r.rev)}
}

// SnapshotAt returns the objects as they were at a revision of the past, if
// they have not changed since.
func (r *Resource) SnapshotAt(rev storage.Revision) (Snapshot, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if rev < r.rev || rev < r.hub.Compacted() {
		return Snapshot{}, false
	}
	return Snapshot{tree: r.tree.Copy(), Revision: rev}, true
}

// Snapshot is the state of a resource at one revision.
type Snapshot struct {
	Revision storage.Revision
	tree     *btree.Map[string, *Object]
}

// Len is the number of objects of all namespaces.
func (s Snapshot) Len() int { return s.tree.Len() }

// Scan calls visit for each object of a namespace, or of all if it is empty, in
// order from a start on, until visit returns false.
func (s Snapshot) Scan(namespace, start string, visit func(*Object) bool) {
	from := ""
	if namespace != "" {
		from = namespace + "/"
	}
	s.tree.Ascend(max(from, start), func(_ string, o *Object) bool {
		if namespace != "" && o.Namespace != namespace {
			return false
		}
		return visit(o)
	})
}

// apply adds events, which follow the resource's revision.
func (r *Resource) apply(events []*Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range events {
		if e.Object != nil {
			r.tree.Set(treeKey(e.Object.Namespace, e.Object.Name), e.Object)
		} else {
			r.tree.Delete(treeKey(e.Previous.Namespace, e.Previous.Name))
		}
		r.bytes += eventBytes(e)
		e.lines = &r.lines
	}
	r.events = append(r.events, events...)
	r.rev = events[len(events)-1].Revision
	r.trim()
	r.bell.ring(&r.mu)
}

// trim drops the oldest events beyond the ring's size. Cursors may still hold
// parts of the slice, so elements are never overwritten.
func (r *Resource) trim() {
	drop := 0
	for len(r.events)-drop > ringEvents || (r.bytes > ringBytes && len(r.events)-drop > 1) {
		r.bytes -= eventBytes(r.events[drop])
		r.since = r.events[drop].Revision
		drop++
	}
	r.events = r.events[drop:]
}

func eventBytes(e *Event) int {
	n := 128
	if e.Object != nil {
		n += e.Object.Len()
	}
	if e.Previous != nil {
		n += e.Previous.Len()
	}
	return n
}

// after returns the events after a revision and a channel that is closed when
// there are more. complete is false if the ring no longer holds them all.
func (r *Resource) after(rev storage.Revision, at *seat) (events []*Event, complete bool, moved <-chan struct{}) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if rev < r.since {
		return nil, false, at.rung
	}
	n := len(r.events)
	lo, hi := 0, n
	for lo < hi {
		if mid := (lo + hi) / 2; r.events[mid].Revision <= rev {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return r.events[lo:n:n], true, at.rung
}
