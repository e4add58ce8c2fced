package informer

import (
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/even-keel/evenkeel/client"
)

// same reports whether two revisions of an object differ in nothing but that, and
// in managed fields.
func same[T client.Object](a, b T) bool {
	return equality.Semantic.DeepEqual(unversioned(a), unversioned(b))
}

// unversioned returns a copy without what every write changes. It shares the rest.
func unversioned(obj client.Object) client.Object {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		obj = shallow(u)
	} else {
		v := reflect.ValueOf(obj).Elem()
		c := reflect.New(v.Type())
		c.Elem().Set(v)
		obj = c.Interface().(client.Object)
	}
	obj.SetResourceVersion("")
	obj.SetManagedFields(nil)
	return obj
}

// shallow copies what the metadata's setters write to.
func shallow(u *unstructured.Unstructured) *unstructured.Unstructured {
	fields := maps.Clone(u.Object)
	if m, ok := fields["metadata"].(map[string]any); ok {
		fields["metadata"] = maps.Clone(m)
	}
	return &unstructured.Unstructured{Object: fields}
}
