package patch

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// filler fills Go values at random. Few different texts and numbers are used,
// so that keys collide, and some that JSON has to escape.
type filler struct {
	*rand.Rand
	// full is how likely a pointer, list or map is not left out.
	full float64
	// odd allows what no client sends: empty but not null lists, missing keys.
	odd bool
}

var texts = []string{"a", "b", "c", "TCP", "UDP", "name", "app.kubernetes.io/name", "/data", "é", `q"uote`, "<tag>", "new\nline", "a&b", `back\slash`, "\u2028"}

func (f *filler) text() string {
	if f.odd && f.IntN(8) == 0 {
		return ""
	}
	if f.IntN(4) > 0 {
		return texts[f.IntN(9)]
	}
	return texts[f.IntN(len(texts))]
}

func (f *filler) fill(v reflect.Value, depth int) {
	if v.CanAddr() && f.special(v.Addr().Interface()) {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(f.text())
	case reflect.Bool:
		v.SetBool(f.IntN(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(f.IntN(4)))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(f.IntN(4)) / 2)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(f.IntN(4)))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				f.fill(v.Field(i), depth+1)
			}
		}
	default:
		f.optional(v, depth)
	}
}

// optional fills what can be left out, the less likely the deeper it is.
func (f *filler) optional(v reflect.Value, depth int) {
	if f.Float64() > f.full/float64(1+depth/4) || depth > 14 {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem(), depth+1)
	case reflect.Slice:
		n := 1 + f.IntN(3)
		if f.odd {
			n = f.IntN(4)
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			f.fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range f.IntN(4) {
			key, elem := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			f.fill(key, depth+1)
			f.fill(elem, depth+1)
			v.SetMapIndex(key, elem)
		}
	}
}

// special fills the types that have a JSON form of their own.
func (f *filler) special(p any) bool {
	switch p := p.(type) {
	case *metav1.Time:
		if f.IntN(2) == 0 {
			*p = metav1.Time{Time: time.Unix(int64(f.IntN(1e9)), 0).UTC()}
		}
	case *metav1.MicroTime:
		if f.IntN(2) == 0 {
			*p = metav1.MicroTime{Time: time.Unix(int64(f.IntN(1e9)), 0).UTC()}
		}
	case *resource.Quantity:
		*p = resource.MustParse(fmt.Sprint(f.IntN(3)))
	case *intstr.IntOrString:
		*p = intstr.FromInt32(int32(f.IntN(3)))
		if f.IntN(2) == 0 {
			*p = intstr.FromString(f.text())
		}
	case *runtime.RawExtension:
		p.Raw = [][]byte{[]byte(`{"a":{"b":1}}`), []byte(`{}`), []byte(`["x"]`), []byte(`"s"`), []byte(`null`)}[f.IntN(5)]
	case *metav1.FieldsV1:
		p.SetRawString(`{}`)
	case *metav1.TypeMeta, *[]metav1.ManagedFieldsEntry:
	default:
		return false
	}
	return true
}
