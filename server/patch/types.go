package patch

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// Types tells structured-merge-diff the types of objects: which lists are maps,
// which are sets, what is atomic. It is a [managedfields.TypeConverter] that
// does as client-go's for the built-in kinds, and hands others to a fallback.
// A kind's types are decoded when it is first seen. Safe for concurrent use;
// one value serves a whole server, beside one for each definition of custom
// resources.
type Types struct {
	catalog  catalog
	fallback managedfields.TypeConverter

	// Of custom resources, custom has all kinds, and base the others.
	custom map[schema.GroupVersionKind]typed.ParseableType
	base   *Types
}

var _ managedfields.TypeConverter = (*Types)(nil)

// NewTypes returns the types of the built-in kinds; it decodes nothing yet. The
// fallback has the other kinds; nil deduces their types from their values.
func NewTypes(fallback managedfields.TypeConverter) *Types {
	if fallback == nil {
		fallback = managedfields.NewDeducedTypeConverter()
	}
	return &Types{fallback: fallback}
}

// Knows reports whether a kind is one of those built in, or one of those that a
// [NewCustomTypes] was made for.
func (t *Types) Knows(gvk schema.GroupVersionKind) bool {
	_, isCustom := t.custom[gvk]
	return isCustom || t.kind(gvk) != nil
}

// kind returns a built-in kind, or nil if it is not one.
func (t *Types) kind(gvk schema.GroupVersionKind) *kind {
	if _, isCustom := t.custom[gvk]; isCustom {
		return nil
	}
	if t.base != nil {
		return t.base.kind(gvk)
	}
	return t.catalog.kind(gvk)
}

// ObjectToTyped validates an object against the type of its kind.
func (t *Types) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	gvk := obj.GetObjectKind().GroupVersionKind()
	if custom, ok := t.custom[gvk]; ok {
		if u, ok := obj.(*unstructured.Unstructured); ok {
			return custom.FromUnstructured(u.UnstructuredContent(), opts...)
		}
		return custom.FromStructured(obj, opts...)
	}
	if t.base != nil {
		return t.base.ObjectToTyped(obj, opts...)
	}
	kind := t.catalog.kind(gvk)
	if kind == nil {
		return t.fallback.ObjectToTyped(obj, opts...)
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return kind.FromUnstructured(u.UnstructuredContent(), opts...)
	}
	return kind.FromStructured(obj, opts...)
}

// TypedToObject returns a value as an unstructured object.
func (t *Types) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	content, ok := value.AsValue().Unstructured().(map[string]any)
	if !ok {
		return nil, fmt.Errorf("convert to an object: value is no map but %T", value.AsValue().Unstructured())
	}
	return &unstructured.Unstructured{Object: content}, nil
}
