package plain

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
)

// reader reads the next value into v, which can be set. It returns false if the
// value is not plain.
type reader func(d *decoder, v reflect.Value) bool

var readers sync.Map // reflect.Type -> reader

// readerOf returns the reader of a type.
func readerOf(t reflect.Type) reader {
	if r, ok := readers.Load(t); ok {
		return r.(reader)
	}
	r, _ := readers.LoadOrStore(t, makeReader(t))
	return r.(reader)
}

var (
	unmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func makeReader(t reflect.Type) reader {
	if p := reflect.PointerTo(t); t.Kind() != reflect.Pointer {
		switch {
		case p.Implements(unmarshaler):
			return (*decoder).unmarshaled
		case p.Implements(textUnmarshaler):
			return notPlain
		}
	}
	switch t.Kind() {
	case reflect.String:
		return (*decoder).str
	case reflect.Bool:
		return (*decoder).boolean
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return (*decoder).integer
	case reflect.Pointer:
		return pointerReader(t)
	case reflect.Slice:
		return sliceReader(t)
	case reflect.Map:
		return mapReader(t)
	case reflect.Struct:
		return structReader(t)
	}
	return notPlain
}

func notPlain(*decoder, reflect.Value) bool { return false }

// lazily finds a reader when it is first used: types can contain themselves.
func lazily(t reflect.Type) reader {
	find := sync.OnceValue(func() reader { return readerOf(t) })
	return func(d *decoder, v reflect.Value) bool { return find()(d, v) }
}

func pointerReader(t reflect.Type) reader {
	elem, read := t.Elem(), lazily(t.Elem())
	return func(d *decoder, v reflect.Value) bool {
		if d.null() {
			return true
		}
		p := reflect.New(elem)
		if !read(d, p.Elem()) {
			return false
		}
		v.Set(p)
		return true
	}
}

func sliceReader(t reflect.Type) reader {
	if t.Elem().Kind() == reflect.Uint8 {
		return (*decoder).base64
	}
	read := lazily(t.Elem())
	return func(d *decoder, v reflect.Value) bool {
		if d.null() {
			return true
		}
		if !d.take('[') {
			return false
		}
		if d.take(']') {
			v.Set(reflect.MakeSlice(t, 0, 0))
			return true
		}
		for n := 0; ; n++ {
			v.Grow(1)
			v.SetLen(n + 1)
			if !read(d, v.Index(n)) {
				return false
			}
			if !d.take(',') {
				return d.take(']')
			}
		}
	}
}

func mapReader(t reflect.Type) reader {
	key, elem := t.Key(), t.Elem()
	if key.Kind() != reflect.String || reflect.PointerTo(key).Implements(textUnmarshaler) {
		return notPlain
	}
	if t == reflect.TypeFor[map[string]string]() {
		return (*decoder).stringMap
	}
	read := lazily(elem)
	return func(d *decoder, v reflect.Value) bool {
		if d.null() {
			return true
		}
		m := reflect.MakeMap(t)
		v.Set(m)
		return d.members(func(name []byte) bool {
			k := reflect.ValueOf(string(name)).Convert(key)
			if m.MapIndex(k).IsValid() {
				return false
			}
			value := reflect.New(elem).Elem()
			if !read(d, value) {
				return false
			}
			m.SetMapIndex(k, value)
			return true
		})
	}
}

// field is a member of a struct, or of one embedded in it.
type field struct {
	name  string
	index []int
	read  reader
}

func structReader(t reflect.Type) reader {
	fields, ok := fieldsOf(t, nil, nil)
	byName := map[string]int{}
	for i, f := range fields {
		byName[f.name] = i
	}
	if !ok || len(byName) != len(fields) || len(fields) > 64 {
		return notPlain
	}
	return func(d *decoder, v reflect.Value) bool {
		if d.null() {
			return true
		}
		var seen uint64
		next := 0 // most come in the order of the type
		return d.members(func(name []byte) bool {
			for next < len(fields) && fields[next].name != string(name) {
				next++
			}
			if next == len(fields) {
				i, known := byName[string(name)]
				if !known {
					return false
				}
				next = i
			}
			bit := uint64(1) << next
			if seen&bit != 0 {
				return false
			}
			seen |= bit
			f := &fields[next]
			next++
			to := v
			for _, i := range f.index {
				to = to.Field(i)
			}
			return f.read(d, to)
		})
	}
}

// fieldsOf appends the members that a struct has in JSON; it returns false if that
// takes more rules than these.
func fieldsOf(t reflect.Type, at []int, fields []field) ([]field, bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		index := append(at[:len(at):len(at)], i)
		switch {
		case tag == "-":
		case f.Anonymous && name == "":
			if f.Type.Kind() != reflect.Struct {
				return nil, false
			}
			var ok bool
			if fields, ok = fieldsOf(f.Type, index, fields); !ok {
				return nil, false
			}
		case !f.IsExported():
		case strings.Contains(options, "string"):
			return nil, false
		default:
			if name == "" {
				name = f.Name
			}
			fields = append(fields, field{name: name, index: index, read: lazily(f.Type)})
		}
	}
	return fields, true
}
