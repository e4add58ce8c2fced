package webhook

import (
	"encoding/json"
	"reflect"
	"strings"
)

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// carry copies what a Go type does not know of from into the same place of into, if
// that is free. Types that decode themselves know everything.
func carry(from, into any, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(unmarshaler) {
		return
	}
	switch source := from.(type) {
	case map[string]any:
		if target, ok := into.(map[string]any); ok {
			carryFields(source, target, t)
		}
	case []any:
		target, _ := into.([]any)
		for i := 0; len(target) == len(source) && t.Kind() == reflect.Slice && i < len(source); i++ {
			carry(source[i], target[i], t.Elem())
		}
	}
}

func carryFields(from, into map[string]any, t reflect.Type) {
	for key, value := range from {
		known := fieldType(t, key)
		_, taken := into[key]
		switch {
		case known != nil:
			carry(value, into[key], known)
		case !taken:
			into[key] = value
		}
	}
}

// fieldType is the type of a field by its name in JSON, or nil. Of a map, every field
// is known.
func fieldType(t reflect.Type, key string) reflect.Type {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Struct:
	case reflect.Map:
		return t.Elem()
	default:
		return t
	}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			if found := fieldType(f.Type, key); found != nil {
				return found
			}
		case name == key, name == "" && f.Name == key && f.IsExported():
			return f.Type
		}
	}
	return nil
}
