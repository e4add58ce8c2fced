package cache

import (
	"cmp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Object is what a store holds: pointers to generated types,
// *unstructured.Unstructured and *metav1.PartialObjectMetadata alike.
type Object interface {
	metav1.Object
	runtime.Object
}

// Key names an object of one kind. Objects outside of namespaces have none.
type Key = types.NamespacedName

// KeyOf returns the key of an object.
func KeyOf(obj metav1.Object) Key {
	return Key{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

func compareKeys(a, b Key) int {
	if a.Namespace != b.Namespace {
		return strings.Compare(a.Namespace, b.Namespace)
	}
	return strings.Compare(a.Name, b.Name)
}

// Revision is a resourceVersion: of an object, or of the point up to which a
// snapshot is complete. The empty revision is before all others.
type Revision string

// Includes reports whether a state at r has seen what was written at other. It
// is false if the two cannot be compared, as with servers whose revisions are
// not numbers.
func (r Revision) Includes(other Revision) bool {
	if other == "" || r == other {
		return true
	}
	c, err := resourceversion.CompareResourceVersion(string(r), string(other))
	return err == nil && c >= 0
}

// Entry is one object of a snapshot. What it tells by itself is in memory; the
// object of a compact store is decoded by each call of Object.
type Entry[T Object] struct {
	e     *entry
	codec *Codec[T]
}

// Exists is false for the zero Entry, which stands for no object.
func (e Entry[T]) Exists() bool { return e.e != nil }

// Key returns the name of the object.
func (e Entry[T]) Key() Key { return e.e.key }

// Revision returns the resourceVersion of the object.
func (e Entry[T]) Revision() Revision { return Revision(e.e.revision()) }

// UID tells an object from another one that had its name before.
func (e Entry[T]) UID() types.UID { return e.e.uid() }

// Labels returns the labels of the object, as they were when it was stored.
func (e Entry[T]) Labels() labels.Labels { return labelView(e.e.terms) }

// Object returns the object, which is shared and read-only: DeepCopy is the
// road to change. Without an object it returns the zero value.
func (e Entry[T]) Object() (obj T) {
	switch {
	case e.e == nil:
		return obj
	case e.e.cold != nil:
		return thaw(e.codec, e.e)
	case e.e.watch != nil:
		e.e.watch.handOut()
	}
	return e.e.obj.(T)
}

// entry is an object as the trees hold it. It never changes, so it is shared by
// all snapshots since it was stored.
type entry struct {
	*ident
	obj   Object // nil if cold
	cold  *cold
	watch *watched // with the mutation detector
	bytes int
}

// ident is what an object is found by. It never changes, and goes from revision
// to revision while all of it stays the same: most updates change no index.
type ident struct {
	key   Key
	terms []*term // in order
}

// keyed is an entry or an ident.
type keyed interface{ id() *ident }

func (i *ident) id() *ident { return i }

func (e *entry) revision() string {
	if e.cold != nil {
		return e.cold.revision
	}
	return e.obj.GetResourceVersion()
}

func (e *entry) uid() types.UID {
	if e.cold != nil {
		return types.UID(e.cold.uid)
	}
	return e.obj.GetUID()
}

func keyProbe[I keyed](k Key) probe[I] {
	return func(i I) int { return compareKeys(i.id().key, k) }
}

// term is a value that objects are found by: a label, or a value that an index
// function returned. Equal terms of one snapshot are mostly one pointer.
type term struct {
	kind  termKind
	field string // the key of a label, or the name of an index
	value string
}

type termKind uint8

const (
	labelTerm termKind = iota
	indexTerm
)

func (t *term) compare(o *term) int {
	switch {
	case t == o:
		return 0
	case t.kind != o.kind:
		return cmp.Compare(t.kind, o.kind)
	case t.field != o.field:
		return strings.Compare(t.field, o.field)
	}
	return strings.Compare(t.value, o.value)
}

// labelView reads labels from the terms of an entry.
type labelView []*term

func (v labelView) Lookup(label string) (string, bool) {
	for _, t := range v {
		if t.kind == labelTerm && t.field == label {
			return t.value, true
		}
	}
	return "", false
}

func (v labelView) Has(label string) bool {
	_, ok := v.Lookup(label)
	return ok
}

func (v labelView) Get(label string) string {
	value, _ := v.Lookup(label)
	return value
}
