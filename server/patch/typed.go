package patch

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// checkedTypes is the [Types] of one endpoint. It validates Go values by shape,
// in a tenth of the time that the library takes; where it is not sure that the
// library would find nothing wrong, it lets the library validate.
type checkedTypes struct {
	managedfields.TypeConverter
	kind  *typed.ParseableType
	shape *shape
}

func (c checkedTypes) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer || v.Type().Elem() != c.shape.goType ||
		!slices.Contains(opts, typed.AllowDuplicates) || !c.shape.isSound(v.Elem()) {
		return c.TypeConverter.ObjectToTyped(obj, opts...)
	}
	val, err := value.NewValueReflect(obj)
	if err != nil {
		return nil, err
	}
	//lint:ignore SA1019 The object is validated; that it was slow is over is not so.
	return typed.AsTypedUnvalidated(val, c.kind.Schema, c.kind.TypeRef), nil
}

// isSound reports whether the library is sure to accept an object, duplicates
// allowed.
func (s *shape) isSound(obj reflect.Value) bool {
	w := writers.Get().(*setWriter)
	err := w.check(obj, s)
	w.release()
	return err == nil
}
