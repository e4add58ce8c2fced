package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Reading a quantity takes time that grows with its value, not its length:
// "1e-9999999" takes seconds. These bound it, far beyond what is of use.
const (
	quantityDigits   = 128 // longest number
	quantityExponent = 4   // digits of the exponent
)

// checkQuantities refuses a body with a quantity that would take long to read,
// before it is decoded into obj. Few bodies need more than a scan of their bytes.
func checkQuantities(media string, body []byte, obj runtime.Object) error {
	if !holdsQuantity(reflect.TypeOf(obj)) || !hasLongNumber(body) {
		return nil
	}
	switch media {
	case mediaProto:
		return checkProtoQuantities(body, obj)
	case mediaJSON:
	default:
		converted, err := yaml.YAMLToJSON(body)
		if err != nil {
			return nil // the decoder will say what is wrong
		}
		body = converted
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var doc any
	if err := decoder.Decode(&doc); err != nil {
		return nil
	}
	return walkQuantities(doc, reflect.TypeOf(obj))
}

func errLongQuantity(value string) error {
	if len(value) > 40 {
		value = value[:40] + "..."
	}
	return apierrors.NewBadRequest(fmt.Sprintf("quantity %q is out of range: at most %d digits, and %d of an exponent", value, quantityDigits, quantityExponent))
}

// hasLongNumber reports whether a number in some text is longer than quantities
// may be.
func hasLongNumber(text []byte) bool {
	digits, exponent := 0, 0
	inExponent := false
	for i, c := range text {
		switch {
		case c >= '0' && c <= '9':
			digits++
			if inExponent && (c != '0' || exponent > 0) {
				exponent++
			}
			if digits > quantityDigits || exponent > quantityExponent {
				return true
			}
		case c == '.' && digits > 0 && !inExponent:
		case (c == 'e' || c == 'E') && digits > 0 && !inExponent:
			inExponent, exponent = true, 0
		case (c == '+' || c == '-') && inExponent && (text[i-1] == 'e' || text[i-1] == 'E'):
		default:
			digits, exponent, inExponent = 0, 0, false
		}
	}
	return false
}

var quantityType = reflect.TypeFor[apiresource.Quantity]()

// walkQuantities looks for long quantities where a type has quantities.
func walkQuantities(doc any, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == quantityType {
		if text := fmt.Sprint(doc); hasLongNumber([]byte(text)) {
			return errLongQuantity(text)
		}
		return nil
	}
	switch doc := doc.(type) {
	case map[string]any:
		for key, value := range doc {
			inner := memberType(t, key)
			if inner == nil || !holdsQuantity(inner) {
				continue
			}
			if err := walkQuantities(value, inner); err != nil {
				return err
			}
		}
	case []any:
		if t.Kind() != reflect.Slice {
			return nil
		}
		for _, value := range doc {
			if err := walkQuantities(value, t.Elem()); err != nil {
				return err
			}
		}
	}
	return nil
}

// memberType is the type of a member of a JSON object, or nil.
func memberType(t reflect.Type, key string) reflect.Type {
	switch t.Kind() {
	case reflect.Map:
		return t.Elem()
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == key {
				return f.Type
			}
			if f.Anonymous && name == "" {
				if inner := memberType(f.Type, key); inner != nil {
					return inner
				}
			}
		}
	}
	return nil
}

var quantityTypes sync.Map // reflect.Type -> bool

// holdsQuantity reports whether values of a type can have quantities in them.
func holdsQuantity(t reflect.Type) bool {
	if known, ok := quantityTypes.Load(t); ok {
		return known.(bool)
	}
	holds := findQuantity(t, map[reflect.Type]bool{})
	quantityTypes.Store(t, holds)
	return holds
}

func findQuantity(t reflect.Type, seen map[reflect.Type]bool) bool {
	if t == quantityType {
		return true
	}
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return findQuantity(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if findQuantity(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}
