package patch

import (
	"errors"
	"fmt"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// versions is what the library needs to know of an endpoint's objects. Objects
// come and go in the endpoint's version, so that converting mostly means to set
// the type, or to turn the library's unstructured results into Go values.
type versions struct{ *Fields }

// New returns an empty object with its type set.
func (v versions) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	if gvk == v.endpoint.Kind && v.endpoint.New != nil {
		obj := v.endpoint.New()
		obj.GetObjectKind().SetGroupVersionKind(gvk)
		return obj, nil
	}
	if v.endpoint.Custom {
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(gvk)
		return obj, nil
	}
	obj, err := v.scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	return obj, nil
}

// Default fills in an applied object.
func (v versions) Default(obj runtime.Object) {
	if v.endpoint.Default != nil {
		v.endpoint.Default(obj)
	}
}

// ConvertToVersion returns in as an object of a version. It does not change in.
func (v versions) ConvertToVersion(in runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	version, ok := to.(schema.GroupVersion)
	if !ok {
		return nil, fmt.Errorf("convert to %v: %w", to, errors.ErrUnsupported)
	}
	own := v.endpoint.Kind
	gvk := version.WithKind(own.Kind)
	from := in.GetObjectKind().GroupVersionKind()
	if from.Empty() {
		from = own
	}
	obj, err := v.typed(in, from)
	if err != nil || from == gvk {
		return obj, err
	}
	if v.endpoint.Convert == nil {
		return nil, runtime.NewNotRegisteredErrForKind("patch", gvk)
	}
	return v.endpoint.Convert(obj, version)
}

// typed returns an object as a value of its kind's Go type, its type set.
func (v versions) typed(in runtime.Object, gvk schema.GroupVersionKind) (runtime.Object, error) {
	u, ok := in.(*unstructured.Unstructured)
	if !ok || v.endpoint.Custom {
		return withKind(in, gvk), nil
	}
	obj, err := v.New(gvk)
	if err != nil {
		return nil, err
	}
	if _, ok := obj.(*unstructured.Unstructured); ok {
		return u, nil
	}
	err = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, obj)
	return obj, err
}

// withKind returns an object that has its type set: a shallow copy if it has not.
func withKind(obj runtime.Object, gvk schema.GroupVersionKind) runtime.Object {
	if obj.GetObjectKind().GroupVersionKind() == gvk {
		return obj
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		shallow := &unstructured.Unstructured{Object: maps.Clone(u.Object)}
		shallow.SetGroupVersionKind(gvk)
		return shallow
	}
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer {
		return obj
	}
	shallow := reflect.New(v.Type().Elem())
	shallow.Elem().Set(v.Elem())
	typed := shallow.Interface().(runtime.Object)
	typed.GetObjectKind().SetGroupVersionKind(gvk)
	return typed
}

// Convert is not asked for by the library.
func (versions) Convert(in, out, context any) error {
	return errors.ErrUnsupported
}

// ConvertFieldLabel is not asked for by the library.
func (versions) ConvertFieldLabel(gvk schema.GroupVersionKind, label, value string) (string, string, error) {
	return "", "", errors.ErrUnsupported
}
