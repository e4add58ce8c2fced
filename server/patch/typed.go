package patch

import (
	"errors"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// errSorting: an object has too many fields in one place.
var errSorting = errors.New("too many items in a list or map")

// checkedTypes is the [Types] of one endpoint. It validates Go values by shape,
// in a tenth of the time that the library takes; where it is not sure that the
// library would find nothing wrong, it lets the library validate. Objects whose
// field sets would take the library seconds are refused.
type checkedTypes struct {
	*Types
	kind   *kind
	shape  *shape
	custom bool
}

// TypedToObject returns a value as an unstructured object. That of a custom
// resource is a copy, since nothing converts it before defaults are set in it.
func (c checkedTypes) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	obj, err := c.Types.TypedToObject(value)
	if err != nil || !c.custom {
		return obj, err
	}
	return obj.DeepCopyObject(), nil
}

func (c checkedTypes) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	work, sound := c.check(obj)
	switch {
	case work > maxSorted:
		return nil, errSorting
	case !sound || !slices.Contains(opts, typed.AllowDuplicates):
		return c.Types.ObjectToTyped(obj, opts...)
	}
	val, err := value.NewValueReflect(obj)
	if err != nil {
		return nil, err
	}
	//lint:ignore SA1019 It says that validating is no longer slow; it is half of an update.
	return typed.AsTypedUnvalidated(val, c.kind.Schema, c.kind.TypeRef), nil
}

// check returns the work of an object's field set, and whether the library is
// sure to accept the object, duplicates allowed.
func (c checkedTypes) check(obj runtime.Object) (work int, sound bool) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return sortingOf(u.Object), false
	}
	v := reflect.ValueOf(obj)
	if c.shape == nil || v.Kind() != reflect.Pointer || v.Type().Elem() != c.shape.goType {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			return 0, false
		}
		return sortingOf(content), false
	}
	w := writers.Get().(*setWriter)
	defer w.release()
	err := w.check(v.Elem(), c.shape)
	return w.work, err == nil
}
