package cache

import (
	"reflect"
	"slices"
	"unsafe"
)

// Batch is a list of changes that a store applies at once. The zero Batch is
// empty and ready; it is the writer's own until it is applied.
type Batch[T Object] struct {
	ops      []op[T]
	replace  bool
	revision Revision
}

// op sets obj, or deletes key. The entry is what the store makes of obj; it is
// there from the beginning if obj was prepared.
type op[T Object] struct {
	set   bool
	obj   T
	key   Key
	entry *entry
	// shared says that others read parts of obj already, and bytes how many it has
	// for itself.
	shared bool
	bytes  int
	// seen is the state that the object was prepared in, and old what was stored
	// then; sameLabels says that its labels were found to be those of old.
	seen       *root
	old        *entry
	sameLabels bool
}

// before returns what is stored in a state under the key of what is set.
func (o *op[T]) before(now *root) *entry {
	if o.seen != now {
		o.seen, o.sameLabels = now, false
		o.old, _ = now.objects.get(keyProbe[*entry](o.key))
	}
	return o.old
}

// Set stores an object under its key. The store owns the object from then on:
// it drops and shares parts of it, and hands it to readers.
func (b *Batch[T]) Set(obj T) {
	b.ops = append(b.ops, op[T]{set: true, obj: obj})
}

// SetPrepared is Set of an object that the store has prepared. It must be in no
// other batch.
func (b *Batch[T]) SetPrepared(p Prepared[T]) { b.ops = append(b.ops, p.op) }

// Delete takes out the object of a key, if there is one.
func (b *Batch[T]) Delete(k Key) {
	b.ops = append(b.ops, op[T]{key: k})
}

// Replace makes these objects the whole state, and forgets the changes that the
// batch had before. Of two objects with one key the later one stays.
func (b *Batch[T]) Replace(objs []T) {
	b.ops, b.replace = make([]op[T], 0, len(objs)), true
	for _, obj := range objs {
		b.Set(obj)
	}
}

// Complete says up to which revision the state is complete once the batch is
// applied: that of the list, of the last event, or of a bookmark.
func (b *Batch[T]) Complete(r Revision) { b.revision = r }

// Change is what became of one object: set, replaced or deleted. Old or New
// does not exist where there was, or is, no object.
type Change[T Object] struct {
	Old, New Entry[T]
}

// Key returns the name of the object that changed.
func (c Change[T]) Key() Key {
	if c.New.Exists() {
		return c.New.Key()
	}
	return c.Old.Key()
}

// Recreated reports whether the object is another one of the same name: a
// delete and a create, of which only the result was seen.
func (c Change[T]) Recreated() bool {
	return c.Old.Exists() && c.New.Exists() && c.Old.UID() != c.New.UID()
}

// Apply makes all changes of a batch visible at once, and returns what they
// changed: in the order of the batch, or of the keys if it replaces the state.
// An object that a replace brings in the revision that is stored already is no
// change. The batch must not be used again.
func (s *Store[T]) Apply(b *Batch[T]) []Change[T] {
	s.writers.n.Add(1)
	defer s.writers.n.Add(-1)
	var near Object
	for i := range b.ops {
		o := &b.ops[i]
		if !o.set {
			continue
		}
		if o.entry == nil {
			s.prepare(o, near)
		}
		near = o.obj
	}
	for !s.tryApply(b) { // an index came in between
	}
	return s.finishApply(b)
}

// tryApply indexes the objects and takes the turn, unless there are other
// indexes by then. Index functions are the user's: none runs in a writer's turn.
func (s *Store[T]) tryApply(b *Batch[T]) bool {
	now := s.current()
	var near *ident
	for i := range b.ops {
		o := &b.ops[i]
		if !o.set {
			continue
		}
		old := o.before(now)
		near = identOf(o.key, o.obj, now.indexes, old, o.sameLabels, near)
		o.entry.ident = near
	}
	s.turn.Lock()
	if len(s.current().indexes) != len(now.indexes) {
		s.turn.Unlock()
		return false
	}
	return true
}

// finishApply ends the turn that tryApply took.
func (s *Store[T]) finishApply(b *Batch[T]) []Change[T] {
	defer s.turn.Unlock()
	d := newDraft(s.current())
	if b.revision != "" {
		d.revision = b.revision
	}
	changes := make([]Change[T], 0, len(b.ops))
	report := func(old, new *entry) {
		changes = append(changes, Change[T]{Entry[T]{old, s.opts.Compact}, Entry[T]{new, s.opts.Compact}})
		s.noteMutationLocked(old)
	}
	if b.replace {
		d.replaceAll(lastOfEach(b.ops), report)
	} else {
		applyOps(d, b.ops, report)
	}
	s.group.Load().publish(&s.member, &d.root)
	return changes
}

// applyOps puts what is set and removes what is deleted, one after the other.
func applyOps[T Object](d *draft, ops []op[T], report func(old, new *entry)) {
	for _, op := range ops {
		if op.set {
			report(d.put(op.entry), op.entry)
		} else if old := d.remove(op.key); old != nil {
			report(old, nil)
		}
	}
}

// lastOfEach returns the entries that are left of a list of changes, by key.
func lastOfEach[T Object](ops []op[T]) []*entry {
	slices.SortStableFunc(ops, func(a, b op[T]) int { return compareKeys(a.key, b.key) })
	entries := make([]*entry, 0, len(ops))
	for i, op := range ops {
		last := i+1 == len(ops) || ops[i+1].key != op.key
		if last && op.set {
			entries = append(entries, op.entry)
		}
	}
	return entries
}

// replaceAll makes these entries, which are ordered, the whole state.
func (d *draft) replaceAll(entries []*entry, report func(old, new *entry)) {
	rest := entries
	d.objects.ascend(nil, func(old *entry) bool {
		for len(rest) > 0 && compareKeys(rest[0].key, old.key) < 0 {
			report(nil, rest[0])
			rest = rest[1:]
		}
		switch {
		case len(rest) == 0 || rest[0].key != old.key:
			report(old, nil)
			return true
		case sameRevision(old, rest[0]):
			rest[0] = old
		default:
			report(old, rest[0])
		}
		rest = rest[1:]
		return true
	})
	for _, e := range rest {
		report(nil, e)
	}
	d.rebuild(entries)
}

func sameRevision(a, b *entry) bool {
	return a.revision() != "" && a.revision() == b.revision() && a.uid() == b.uid()
}

// Prepared is an object that a store has made ready to be set.
type Prepared[T Object] struct{ op op[T] }

// Ready is false for the zero Prepared.
func (p Prepared[T]) Ready() bool { return p.op.entry != nil }

// Prepare does for an object what the store would do when it is set, all that
// needs no turn: it owns the object from then on. It is for those who make objects
// on several processors, and is fastest where an object has just been made. An
// object that is likely to have parts in common, such as the one listed before,
// may be given as near, prepared or not.
func (s *Store[T]) Prepare(obj T, near Object) Prepared[T] {
	o := op[T]{set: true, obj: obj}
	s.prepare(&o, near)
	return Prepared[T]{o}
}

// PrepareShared is Prepare for an object whose parts may be those of others, since
// whoever made it has seen to that: nothing of it but its own memory is written to.
// The object adds so many bytes to what others have.
func (s *Store[T]) PrepareShared(obj T, bytes int) Prepared[T] {
	if s.opts.Transform != nil || s.opts.DetectMutations {
		return s.Prepare(obj.DeepCopyObject().(T), nil)
	}
	o := op[T]{set: true, obj: obj, shared: true, bytes: bytes}
	s.prepare(&o, nil)
	return Prepared[T]{o}
}

// prepare makes the entry of an object that is set, all but its terms. What comes
// just before it in a batch, if anything, is near.
func (s *Store[T]) prepare(o *op[T], near Object) {
	if s.opts.Transform != nil {
		o.obj = s.opts.Transform(o.obj)
	}
	if !s.opts.AsIs && !s.opts.KeepManagedFields && len(o.obj.GetManagedFields()) > 0 {
		o.obj.SetManagedFields(nil)
	}
	o.key = KeyOf(o.obj)
	o.entry = &entry{obj: o.obj}
	if s.bodies != nil {
		s.freeze(o)
		return
	}
	s.keepHot(o, near)
	o.key = KeyOf(o.obj) // whose namespace is shared now
}

// keepHot makes an object ready to be shared.
func (s *Store[T]) keepHot(o *op[T], near Object) {
	switch {
	case o.shared:
		o.entry.bytes = o.bytes
	case s.opts.AsIs:
		if sized, ok := Object(o.obj).(interface{ Size() int }); ok {
			o.entry.bytes = sized.Size()
		}
	case s.opts.DetectMutations:
		// Parts that are shared would have no single culprit.
		o.entry.bytes = s.opts.Interner.Strings(o.obj)
	default:
		o.entry.bytes = s.share(o, near)
	}
	if s.opts.DetectMutations {
		o.entry.watch = &watched{copy: o.obj.DeepCopyObject()}
	}
}

// share returns how many bytes an object takes that it has not in common with
// another, once it has them in common.
func (s *Store[T]) share(o *op[T], near Object) int {
	old := o.before(s.current())
	switch {
	case old == nil || old.obj == nil:
		return s.opts.Interner.shareNear(near, o.obj)
	case old.obj == Object(o.obj): // readers have it
		return old.bytes
	}
	labels := labelsAt(o.obj)
	bytes := max(0, old.bytes+s.opts.Interner.shareWith(old.obj, o.obj))
	shared := labelsAt(o.obj)
	o.sameLabels = shared != labels && shared == labelsAt(old.obj)
	return bytes
}

// labelsAt tells one map of labels from another.
func labelsAt(obj Object) unsafe.Pointer { return reflect.ValueOf(obj.GetLabels()).UnsafePointer() }
