package client

import "reflect"

// BuiltinResource is how a type's kind is served, without asking.
func BuiltinResource(t reflect.Type) (Resource, bool) {
	gvk, ok := builtinKind(t.Elem())
	if !ok {
		return Resource{}, false
	}
	return *builtinResource(gvk), true
}
