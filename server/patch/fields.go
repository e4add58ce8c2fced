package patch

import (
	"bytes"
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Endpoint is where objects of a kind are written.
type Endpoint struct {
	// Kind is the version that the endpoint speaks; all objects are of it.
	Kind schema.GroupVersionKind
	// Subresource is the path below the object ("status"), if any.
	Subresource string
	// Reset are the dotted paths of fields that a write through the endpoint
	// does not change, so that nobody comes to own them by it: "status" for an
	// object's own endpoint, "spec" for its status.
	Reset []string

	// Custom: the kind is a custom resource. Its objects are unstructured, in all
	// versions, and the types are those of [NewCustomTypes]. Nothing asks the
	// scheme, which may be nil.
	Custom bool

	// New returns an empty object; nil asks the scheme.
	New func() runtime.Object
	// Default fills in what an applied object left out; nil does nothing.
	Default func(runtime.Object)
	// Convert turns an object of this kind into another version of it, or back,
	// and does not change it; the result has its type set. With nil, what is owned
	// under other versions is forgotten; so is what is owned under a version for
	// which it returns an error that [runtime.IsNotRegisteredError] knows.
	Convert func(obj runtime.Object, to schema.GroupVersion) (runtime.Object, error)
	// Now is the time that managed fields get; nil is the clock.
	Now func() time.Time
}

// Fields keeps the managed fields of the objects of one endpoint: who owns which
// field. Making one does no work; what it needs is built by the first write.
// Safe for concurrent use.
type Fields struct {
	endpoint Endpoint
	scheme   *runtime.Scheme
	types    *Types

	once    sync.Once
	library *managedfields.FieldManager
	mask    *mask
	shape   *shape // of an object that is a Go struct; nil: there is none
}

// NewFields returns the managed fields of an endpoint. The scheme makes the
// objects for which the endpoint has no New.
func NewFields(types *Types, scheme *runtime.Scheme, endpoint Endpoint) *Fields {
	return &Fields{endpoint: endpoint, scheme: scheme, types: types}
}

func (f *Fields) init() {
	f.once.Do(func() {
		f.mask = newMask(f.endpoint.Reset)
		f.shape = f.newShape()
		f.library = f.newLibrary()
	})
}

func (f *Fields) newLibrary() *managedfields.FieldManager {
	create := managedfields.NewDefaultFieldManager
	if f.endpoint.Custom {
		create = managedfields.NewDefaultCRDFieldManager
	}
	v := versions{f}
	library, err := create(f.checked(), v, v, v,
		f.endpoint.Kind, f.endpoint.Kind.GroupVersion(), f.endpoint.Subresource, f.resetFilters())
	if err != nil { // only if there were no types
		panic("patch: " + err.Error())
	}
	return library
}

// resetFilters leave out, by version, what the endpoint does not change. As in
// the real server, the status of a custom resource has one for each version, and
// all other endpoints for their own.
func (f *Fields) resetFilters() map[fieldpath.APIVersion]fieldpath.Filter {
	filters := map[fieldpath.APIVersion]fieldpath.Filter{}
	if len(f.endpoint.Reset) == 0 {
		return filters
	}
	fields := fieldpath.NewSet()
	for _, path := range f.endpoint.Reset {
		fields.Insert(pathOf(path))
	}
	filter := fieldpath.NewExcludeSetFilter(fields)
	filters[fieldpath.APIVersion(f.endpoint.Kind.GroupVersion().String())] = filter
	for gvk := range f.types.custom {
		if f.endpoint.Custom && f.endpoint.Subresource == "status" && gvk.GroupKind() == f.endpoint.Kind.GroupKind() {
			filters[fieldpath.APIVersion(gvk.GroupVersion().String())] = filter
		}
	}
	return filters
}

func (f *Fields) checked() checkedTypes {
	return checkedTypes{f.types, f.types.kind(f.endpoint.Kind), f.shape, f.endpoint.Custom}
}

func pathOf(dotted string) fieldpath.Path {
	var path fieldpath.Path
	for name := range strings.SplitSeq(dotted, ".") {
		path = append(path, fieldpath.FieldNameElement(name))
	}
	return path
}

// newShape returns the shape by which fields of new objects are counted, or nil
// if they are no Go structs or their type is deduced.
func (f *Fields) newShape() *shape {
	kind := f.types.kind(f.endpoint.Kind)
	empty, err := f.empty()
	if kind == nil || err != nil {
		return nil
	}
	t := reflect.TypeOf(empty)
	if _, ok := empty.(runtime.Unstructured); ok || t.Kind() != reflect.Pointer {
		return nil
	}
	if s := kind.shapes.of(t.Elem(), kind.TypeRef); s != nil && s.form == record {
		return s
	}
	return nil
}

func (f *Fields) empty() (runtime.Object, error) {
	return versions{f}.New(f.endpoint.Kind)
}

// Update records in obj's managed fields what the manager changed from live to
// obj; a nil live means that obj is new. It changes and returns obj, whose
// fields are else left alone, and does not change live.
//
// It always returns obj, ready to be stored. If there is an error, the managed
// fields are those of live: a write does not fail for them, so that the error
// is for the log.
func (f *Fields) Update(live, obj runtime.Object, manager string) (runtime.Object, error) {
	err := f.update(live, obj, manager)
	if err != nil {
		keepManagedFields(live, obj)
		err = fmt.Errorf("update managed fields of %v: %w", f.endpoint.Kind, err)
	}
	return obj, err
}

func (f *Fields) update(live, obj runtime.Object, manager string) (err error) {
	defer func() {
		if caught := recover(); caught != nil {
			err = fmt.Errorf("panic: %v", caught)
		}
	}()
	f.init()
	if live == nil {
		if f.create(obj, manager) {
			return nil
		}
		if live, err = f.empty(); err != nil {
			return err
		}
	}
	if f.keep(live, obj, manager) {
		return nil
	}
	dropForeign(live, obj)
	known := times(live, obj)
	if _, err := f.library.Update(live, obj, manager); err != nil {
		return err
	}
	f.stamp(obj, known)
	return nil
}

// create does Update's work for a new object without the library, with the same
// result. It reports false, and changes nothing, if it cannot.
func (f *Fields) create(obj runtime.Object, manager string) bool {
	accessor, err := meta.Accessor(obj)
	if err != nil || f.shape == nil || len(accessor.GetManagedFields()) > 0 {
		return false
	}
	set, ok := f.fieldsOf(obj)
	if !ok {
		return false
	}
	if set == nil {
		accessor.SetManagedFields(nil)
		return true
	}
	now := f.now()
	accessor.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: nameOf(manager), Operation: metav1.ManagedFieldsOperationUpdate,
		APIVersion: f.endpoint.Kind.GroupVersion().String(), Subresource: f.endpoint.Subresource,
		Time: &now, FieldsType: "FieldsV1", FieldsV1: set,
	}})
	return true
}

// fieldsOf returns all fields of an object, nil if it has none, and false if it
// cannot tell.
func (f *Fields) fieldsOf(obj runtime.Object) (*metav1.FieldsV1, bool) {
	v := reflect.ValueOf(obj)
	if f.shape == nil || v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Type() != f.shape.goType {
		return nil, false
	}
	set, err := f.shape.added(v.Elem(), f.mask)
	return set, err == nil
}

func nameOf(manager string) string { return cmp.Or(manager, "unknown") }

// keep does Update's work without the library, with the same result, where the
// manager is the only one and has just the fields of the changed object: then it
// still has. It reports false, and changes nothing, if that is not so.
func (f *Fields) keep(live, obj runtime.Object, manager string) bool {
	was, err := meta.Accessor(live)
	if err != nil || f.shape == nil || len(was.GetManagedFields()) != 1 {
		return false
	}
	is, err := meta.Accessor(obj)
	if err != nil {
		return false
	}
	entry := was.GetManagedFields()[0]
	if entry.Manager != nameOf(manager) || entry.Operation != metav1.ManagedFieldsOperationUpdate ||
		entry.APIVersion != f.endpoint.Kind.GroupVersion().String() || entry.Subresource != f.endpoint.Subresource || entry.FieldsV1 == nil {
		return false
	}
	if sent := is.GetManagedFields(); len(sent) > 0 && !equality.Semantic.DeepEqual(sent, was.GetManagedFields()) {
		return false
	}
	set, ok := f.fieldsOf(obj)
	if !ok || set == nil || !bytes.Equal(set.Raw, entry.FieldsV1.Raw) {
		return false
	}
	now := f.now()
	entry.Time = &now
	is.SetManagedFields([]metav1.ManagedFieldsEntry{entry})
	return true
}

// Apply merges what a manager wants, in YAML or JSON, into live and returns the
// result; a nil live means that there is no such object yet. It does not change
// live. Fields of other managers with other values are conflicts, unless forced.
//
// Refusals are Status errors: conflicts (409), a document that is not one or
// has managed fields or the wrong type (400). Any other error says that the
// object does not fit its type; the real server answers it with 500.
func (f *Fields) Apply(live runtime.Object, doc []byte, manager string, force bool) (_ runtime.Object, err error) {
	f.init()
	defer func() {
		if caught := recover(); caught != nil {
			err = fmt.Errorf("apply to %v: panic: %v", f.endpoint.Kind, caught)
		}
	}()
	wanted, err := decodeApplied(doc)
	if err != nil {
		return nil, err
	}
	if live == nil {
		if live, err = f.empty(); err != nil {
			return nil, err
		}
	}
	live = withKind(live, f.endpoint.Kind)
	if work, _ := f.checked().check(live); work > maxSorted || sortingOf(wanted) > maxSorted {
		return nil, tooLarge("%v to be tracked", errSorting)
	}
	known := times(live, nil)
	obj, err := f.library.Apply(live, &unstructured.Unstructured{Object: wanted}, manager, force)
	if err != nil {
		return nil, err
	}
	f.stamp(obj, known)
	return obj, nil
}

// dropForeign removes managed fields that a client sent and that would be slow
// to read, so that those of live count: in stored ones, fields are sorted.
func dropForeign(live, obj runtime.Object) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return
	}
	size := 0
	for _, e := range accessor.GetManagedFields() {
		size += int(e.FieldsV1.GetRawReader().Size())
	}
	was, err := meta.Accessor(live)
	if err == nil && size > maxForeign && !sameEntries(accessor.GetManagedFields(), was.GetManagedFields()) {
		accessor.SetManagedFields(nil)
	}
}

func keepManagedFields(live, obj runtime.Object) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return
	}
	var kept []metav1.ManagedFieldsEntry
	if live != nil {
		if from, err := meta.Accessor(live); err == nil {
			kept = from.GetManagedFields()
		}
	}
	accessor.SetManagedFields(kept)
}
