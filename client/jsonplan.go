package client

import (
	"encoding"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"sync"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
)

// A plan decodes JSON into the memory of one Go type. It is made once for a type,
// so that decoding looks at no tags and makes no reflect.Values but for slices and
// unusual maps; several times as fast as encoding/json.
//
// It reads what sigs.k8s.io/json reads, in the same way: names match in case,
// unknown fields are skipped, null leaves a value as it is, repeated fields merge.
// It is laxer about the syntax of what it skips. Types with parts that it does not
// know (arrays, embedded pointers, the option "string") have no plan, and are left
// to that library as a whole. Tests and fuzzing compare the two.
//
// Every write goes through a pointer of the memory's own type, or of one that is
// laid out alike: a named string and a string, maps of these.
type plan func(p *parser, at unsafe.Pointer) error

// plans holds a plan for each type that was asked for; nil if there can be none.
var plans sync.Map // of reflect.Type to plan

// decodeJSON decodes one value and refuses what follows it; into is a pointer.
func decodeJSON(data []byte, into any) error {
	v := reflect.ValueOf(into)
	do := planFor(v.Type().Elem())
	if do == nil {
		return kjson.UnmarshalCaseSensitivePreserveInts(data, into)
	}
	p := parsers.Get().(*parser)
	defer parsers.Put(p)
	p.data, p.at, p.depth = data, 0, 0
	err := do(p, v.UnsafePointer())
	if err == nil && p.peek() != 0 {
		err = p.fail("more after the end")
	}
	p.data = nil
	return err
}

func planFor(t reflect.Type) plan {
	if known, ok := plans.Load(t); ok {
		return known.(plan)
	}
	b := planner{made: map[reflect.Type]*plan{}}
	do := *b.of(t)
	if b.unknown {
		do = nil
	}
	plans.Store(t, do)
	return do
}

// planner makes the plan of a type and of all types within.
type planner struct {
	made    map[reflect.Type]*plan // also while being made: types may hold themselves
	unknown bool
}

var (
	timeType        = reflect.TypeFor[metav1.Time]()
	unmarshalerType = reflect.TypeFor[json.Unmarshaler]()
	textType        = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func (b *planner) of(t reflect.Type) *plan {
	if p := b.made[t]; p != nil {
		return p
	}
	p := new(plan)
	b.made[t] = p
	*p = b.make(t)
	return p
}

func (b *planner) make(t reflect.Type) plan {
	switch {
	case t == timeType:
		return decodeTime
	case t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(unmarshalerType):
		return customPlan(t)
	case t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(textType):
		return b.none()
	}
	switch t.Kind() {
	case reflect.Bool:
		return decodeBool
	case reflect.String:
		return decodeString
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return intPlan(t)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return uintPlan(t)
	case reflect.Float32, reflect.Float64:
		return floatPlan(t)
	case reflect.Struct:
		return b.structPlan(t)
	case reflect.Pointer:
		return b.pointerPlan(t)
	case reflect.Slice:
		return b.slicePlan(t)
	case reflect.Map:
		return b.mapPlan(t)
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return decodeAny
		}
	}
	return b.none()
}

func (b *planner) none() plan {
	b.unknown = true
	return nil
}

func (b *planner) pointerPlan(t reflect.Type) plan {
	elem := t.Elem()
	do := b.of(elem)
	return func(p *parser, at unsafe.Pointer) error {
		to := (*unsafe.Pointer)(at)
		if is, err := p.null(); is || err != nil {
			*to = nil
			return err
		}
		if *to == nil {
			*to = reflect.New(elem).UnsafePointer()
		}
		return (*do)(p, *to)
	}
}

func (b *planner) slicePlan(t reflect.Type) plan {
	elem := t.Elem()
	if elem.Kind() == reflect.Uint8 {
		if elem != reflect.TypeFor[byte]() {
			return b.none()
		}
		return decodeBytes
	}
	do, size := b.of(elem), elem.Size()
	return func(p *parser, at unsafe.Pointer) error {
		s := reflect.NewAt(t, at).Elem()
		if is, err := p.null(); is || err != nil {
			s.SetZero()
			return err
		}
		n := 0
		err := p.each('[', ']', func() error {
			if n >= s.Cap() {
				s.Grow(1)
			}
			if n >= s.Len() {
				s.SetLen(n + 1)
			}
			n++
			return (*do)(p, unsafe.Add(s.UnsafePointer(), uintptr(n-1)*size))
		})
		if n == 0 && err == nil {
			s.Set(reflect.MakeSlice(t, 0, 0))
		} else {
			s.SetLen(n)
		}
		return err
	}
}

func decodeBytes(p *parser, at unsafe.Pointer) error {
	to := (*[]byte)(at)
	if is, err := p.null(); is || err != nil {
		*to = nil
		return err
	}
	if p.peek() != '"' {
		return p.fail("no string of base64")
	}
	s, err := p.text()
	if err != nil {
		return err
	}
	if *to, err = base64.StdEncoding.DecodeString(s); err != nil {
		return p.fail("no string of base64")
	}
	return nil
}

func (b *planner) mapPlan(t reflect.Type) plan {
	key := t.Key()
	if key.Kind() != reflect.String || key.Implements(textType) || reflect.PointerTo(key).Implements(textType) {
		return b.none()
	}
	elem := t.Elem()
	do := b.of(elem)
	if elem.Kind() == reflect.String && !reflect.PointerTo(elem).Implements(unmarshalerType) {
		return decodeStringMap
	}
	return func(p *parser, at unsafe.Pointer) error {
		m := reflect.NewAt(t, at).Elem()
		if is, err := p.null(); is || err != nil {
			m.SetZero()
			return err
		}
		if m.IsNil() {
			m.Set(reflect.MakeMap(t))
		}
		return p.fields(func(name []byte) error {
			k := reflect.New(key).Elem()
			k.SetString(p.intern(name))
			v := reflect.New(elem)
			err := (*do)(p, v.UnsafePointer())
			m.SetMapIndex(k, v.Elem())
			return err
		})
	}
}

func decodeStringMap(p *parser, at unsafe.Pointer) error {
	m := (*map[string]string)(at)
	if is, err := p.null(); is || err != nil {
		*m = nil
		return err
	}
	if *m == nil {
		*m = map[string]string{}
	}
	return p.fields(func(name []byte) error {
		k := p.intern(name)
		var v string
		err := decodeString(p, unsafe.Pointer(&v))
		(*m)[k] = v
		return err
	})
}

// planField is a field of a struct, or of one that is embedded in it.
type planField struct {
	offset uintptr
	do     *plan
}

func (b *planner) structPlan(t reflect.Type) plan {
	all := map[string]planField{}
	level := []embedded{{t, 0}}
	for len(level) > 0 {
		var next []embedded
		here := map[string]bool{}
		for _, e := range level {
			next = append(next, b.addFields(all, here, e)...)
		}
		level = next
	}
	return func(p *parser, at unsafe.Pointer) error {
		if is, err := p.null(); is || err != nil {
			return err
		}
		return p.fields(func(name []byte) error {
			f, ok := all[string(name)]
			if !ok {
				_, err := p.raw()
				return err
			}
			return (*f.do)(p, unsafe.Add(at, f.offset))
		})
	}
}

// embedded is a struct within another, at an offset.
type embedded struct {
	of     reflect.Type
	offset uintptr
}

// addFields adds the fields of one struct and returns those embedded in it, whose
// fields give way to all that are less deep. Two of one name at one depth are
// for encoding/json's rules.
func (b *planner) addFields(all map[string]planField, here map[string]bool, e embedded) (deeper []embedded) {
	for i := range e.of.NumField() {
		f := e.of.Field(i)
		name, isEmbedded, skip := fieldName(f)
		switch {
		case skip:
			continue
		case isEmbedded && f.Type.Kind() == reflect.Struct:
			deeper = append(deeper, embedded{f.Type, e.offset + f.Offset})
			continue
		case isEmbedded && f.Type.Kind() == reflect.Pointer, name == "":
			b.unknown = true
			continue
		case !f.IsExported():
			continue
		}
		if _, taken := all[name]; taken {
			b.unknown = b.unknown || here[name]
			continue
		}
		here[name] = true
		all[name] = planField{e.offset + f.Offset, b.of(f.Type)}
	}
	return deeper
}
