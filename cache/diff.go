package cache

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// changedFields names the fields in which two objects of one type differ, as
// they are written in YAML.
func changedFields(before, after runtime.Object) []string {
	d := &differ{}
	if u, ok := before.(*unstructured.Unstructured); ok {
		d.compare("", reflect.ValueOf(u.Object), reflect.ValueOf(after.(*unstructured.Unstructured).Object))
	} else {
		d.compare("", reflect.ValueOf(before), reflect.ValueOf(after))
	}
	return d.fields
}

// differ collects differences, up to maxFields.
type differ struct{ fields []string }

func (d *differ) report(path string, a, b reflect.Value) {
	if len(d.fields) < maxFields {
		d.fields = append(d.fields, fmt.Sprintf("%s: %s -> %s", strings.TrimPrefix(path, "."), show(a), show(b)))
	}
}

// show writes a value shortly.
func show(v reflect.Value) string {
	if !v.IsValid() {
		return "none"
	}
	text := fmt.Sprintf("%+v", v)
	if v.Kind() == reflect.String {
		text = fmt.Sprintf("%q", v.String())
	}
	if len(text) > 80 {
		text = text[:77] + "..."
	}
	return text
}

func (d *differ) compare(path string, a, b reflect.Value) {
	if !a.IsValid() || !b.IsValid() || a.Type() != b.Type() {
		if a.IsValid() || b.IsValid() {
			d.report(path, a, b)
		}
		return
	}
	if same, known := sameValue(a, b); known {
		if !same {
			d.report(path, a, b)
		}
		return
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface:
		if a.IsNil() || b.IsNil() {
			if a.IsNil() != b.IsNil() {
				d.report(path, a, b)
			}
			return
		}
		d.compare(path, a.Elem(), b.Elem())
	case reflect.Struct:
		d.compareStructs(path, a, b)
	case reflect.Map:
		d.compareMaps(path, a, b)
	case reflect.Slice, reflect.Array:
		d.compareLists(path, a, b)
	default:
		if !a.Equal(b) {
			d.report(path, a, b)
		}
	}
}

// sameValue compares types that hide their fields. A quantity remembers how it
// was written when it is read, which is no change.
func sameValue(a, b reflect.Value) (same, known bool) {
	if !a.CanInterface() {
		return false, false
	}
	switch a := a.Interface().(type) {
	case resource.Quantity:
		b := b.Interface().(resource.Quantity)
		return sameQuantity(a, b), true
	case metav1.Time:
		b := b.Interface().(metav1.Time)
		return a.Equal(&b), true
	case metav1.MicroTime:
		b := b.Interface().(metav1.MicroTime)
		return a.Equal(&b), true
	case time.Time:
		return a.Equal(b.Interface().(time.Time)), true
	}
	return false, false
}

func (d *differ) compareStructs(path string, a, b reflect.Value) {
	for i := range a.NumField() {
		f := a.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name != "":
			name = path + "." + name
		case f.Anonymous:
			name = path
		default:
			name = path + "." + f.Name
		}
		d.compare(name, a.Field(i), b.Field(i))
	}
}

func (d *differ) compareMaps(path string, a, b reflect.Value) {
	for _, k := range a.MapKeys() {
		d.compare(fmt.Sprintf("%s.%v", path, k), a.MapIndex(k), b.MapIndex(k))
	}
	for _, k := range b.MapKeys() {
		if !a.MapIndex(k).IsValid() {
			d.report(fmt.Sprintf("%s.%v", path, k), reflect.Value{}, b.MapIndex(k))
		}
	}
}

func (d *differ) compareLists(path string, a, b reflect.Value) {
	for i := range max(a.Len(), b.Len()) {
		var x, y reflect.Value
		if i < a.Len() {
			x = a.Index(i)
		}
		if i < b.Len() {
			y = b.Index(i)
		}
		d.compare(fmt.Sprintf("%s[%d]", path, i), x, y)
	}
}
