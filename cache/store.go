package cache

import (
	"iter"
	"sync"
	"sync/atomic"
)

// Options say how a store keeps its objects. The zero Options are what most
// want: no managed fields, equal parts shared, every object decoded.
type Options[T Object] struct {
	// Indexes are secondary indexes by name; more can be added later.
	Indexes map[string]func(T) []string
	// Transform changes an object before it is stored, or returns another one.
	Transform func(T) T
	// KeepManagedFields leaves metadata.managedFields in place.
	KeepManagedFields bool
	// AsIs leaves objects as they are, managed fields and all, since others read
	// them already: those of another store, say. Nothing is shared.
	AsIs bool
	// Interner shares equal strings and parts with the other stores that have
	// it. By default a store has its own.
	Interner *Interner
	// Compact keeps objects encoded by this codec, and decodes them when read.
	Compact *Codec[T]
	// DetectMutations keeps a copy of every object, so that Verify finds those
	// that a reader changed. It costs time and twice the memory; for tests.
	DetectMutations bool
	// Group is read at one point in time with the others in it.
	Group *Group
}

// Store holds the objects of one kind. Any number of readers read its latest
// snapshot and take no lock; writers wait for each other.
type Store[T Object] struct {
	opts   Options[T]
	bodies *compactor[T] // nil unless compact
	member member
	// writers are those in Apply, before whom long reads give way.
	writers writers
	group   atomic.Pointer[Group]

	turn    sync.Mutex  // of the one writer that may publish
	mutated []*Mutation // found in objects that left the store
}

// New returns an empty store.
func New[T Object](opts Options[T]) *Store[T] {
	s := &Store[T]{opts: opts}
	if s.opts.Interner == nil {
		s.opts.Interner = NewInterner()
	}
	if opts.Compact != nil {
		s.bodies = &compactor[T]{codec: opts.Compact}
	}
	group := opts.Group
	if group == nil {
		group = &Group{}
	}
	first := &root{writers: &s.writers}
	for name, values := range opts.Indexes {
		first.indexes = append(first.indexes, indexOf(name, values))
	}
	group.publish(&s.member, first)
	s.group.Store(group)
	return s
}

// Snapshot returns the present state, which never changes.
func (s *Store[T]) Snapshot() Snapshot[T] { return Snapshot[T]{s.current(), s.opts.Compact} }

// current returns the latest root. A store is always in some group: one that
// leaves has joined the next before it is out of the last.
func (s *Store[T]) current() *root {
	for {
		if r := s.group.Load().View().root(&s.member); r != nil {
			return r
		}
	}
}

// At returns the state that the store had in a view of its group. It is empty
// if the store was not in the group then.
func (s *Store[T]) At(v *View) Snapshot[T] {
	r := v.root(&s.member)
	if r == nil {
		r = &root{}
	}
	return Snapshot[T]{r, s.opts.Compact}
}

// Leave takes the store out of its group, whose views no longer hold its objects
// from then on. The store stays as it is.
func (s *Store[T]) Leave() {
	s.turn.Lock()
	defer s.turn.Unlock()
	old, own := s.group.Load(), &Group{}
	own.publish(&s.member, s.current())
	s.group.Store(own)
	old.remove(&s.member)
}

// Get returns the present object of a name. It is shared and read-only.
func (s *Store[T]) Get(namespace, name string) (T, bool) {
	return s.Snapshot().Get(namespace, name)
}

// List yields the present objects that fit all queries, ordered by key. The
// objects are shared and read-only; what is written meanwhile is not seen.
func (s *Store[T]) List(queries ...Query) iter.Seq[T] { return s.Snapshot().List(queries...) }

// Count returns how many objects fit all queries at present.
func (s *Store[T]) Count(queries ...Query) int { return s.Snapshot().Count(queries...) }

// Set stores objects, all at once.
func (s *Store[T]) Set(objs ...T) {
	var b Batch[T]
	for _, obj := range objs {
		b.Set(obj)
	}
	s.Apply(&b)
}

// Delete takes out the objects of these keys, all at once.
func (s *Store[T]) Delete(keys ...Key) {
	var b Batch[T]
	for _, k := range keys {
		b.Delete(k)
	}
	s.Apply(&b)
}

// Replace makes these objects the whole state, complete up to a revision.
func (s *Store[T]) Replace(r Revision, objs []T) {
	var b Batch[T]
	b.Replace(objs)
	b.Complete(r)
	s.Apply(&b)
}
