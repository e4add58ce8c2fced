package client

import (
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// protoPlan says how the message of a Go type is read into its memory. It is made
// of the type's protobuf tags, and belongs to one Sharer: steps remember what they
// have read.
type protoPlan struct {
	of    reflect.Type
	steps []*protoStep // by field number; nil where there is none
}

// protoStep is one field of a message.
type protoStep struct {
	kind   protoKind
	bit    uint64 // of the fields that a message has had
	offset uintptr
	elem   reflect.Type // of a message, map or slice: what is made
	plan   *protoPlan   // of a message; nil if it is left to its own Unmarshal

	luck   luck
	recent []recentPart // maxRecent at most
	next   int          // of these to be replaced
}

type protoKind uint8

const (
	skipped protoKind = iota
	textField
	textPointer
	textSlice
	boolField
	boolPointer
	int32Field
	int32Pointer
	int64Field
	int64Pointer
	bytesField
	messageField
	messagePointer
	messageSlice
	textMap
	quantityMap
)

// varint reports whether a field of the kind is a number on the wire.
func (k protoKind) varint() bool { return k >= boolField && k <= int64Pointer }

// repeated reports whether a field of the kind is a run of fields on the wire.
func (k protoKind) repeated() bool {
	return k == textSlice || k == messageSlice || k == textMap || k == quantityMap
}

var (
	quantityType = reflect.TypeFor[resource.Quantity]()
	objectMeta   = reflect.TypeFor[metav1.ObjectMeta]()
	unmarshaler  = reflect.TypeFor[interface{ Unmarshal([]byte) error }]()
)

// protoPlans makes plans. A type that it cannot read has none.
type protoPlans struct {
	made map[reflect.Type]*protoPlan
	// strip leaves out managed fields.
	strip bool
}

// of returns the plan of a struct, or nil: then its own Unmarshal has to read it.
func (ps *protoPlans) of(t reflect.Type) *protoPlan {
	if p, ok := ps.made[t]; ok {
		return p
	}
	p := &protoPlan{of: t}
	ps.made[t] = p // before its fields: types may hold themselves
	if !ps.fill(p) {
		ps.made[t] = nil // whoever holds it is of a type that holds itself
		p.steps = nil
		return nil
	}
	return p
}

func (ps *protoPlans) fill(p *protoPlan) bool {
	if !reflect.PointerTo(p.of).Implements(unmarshaler) {
		return false
	}
	n := 0
	for i := range p.of.NumField() {
		f := p.of.Field(i)
		wire, rest, _ := strings.Cut(f.Tag.Get("protobuf"), ",")
		if wire == "" || wire == "-" {
			continue
		}
		digits, _, _ := strings.Cut(rest, ",")
		number, err := strconv.Atoi(digits)
		if err != nil || number < 1 || number > 127 || n == 64 || !f.IsExported() {
			return false
		}
		s := &protoStep{bit: 1 << n, offset: f.Offset}
		n++
		if !ps.step(s, f.Type) {
			return false
		}
		if ps.strip && p.of == objectMeta && f.Name == "ManagedFields" {
			s.kind = skipped
		}
		for len(p.steps) <= number {
			p.steps = append(p.steps, nil)
		}
		p.steps[number] = s
	}
	return n > 0
}

// step finds out how a field of type t is read. The tags of some numbers say that
// they are bytes, so it is the type that counts.
func (ps *protoPlans) step(s *protoStep, t reflect.Type) bool {
	return s.number(t) || s.text(t) || ps.message(s, t)
}

func (s *protoStep) number(t reflect.Type) bool {
	pointer := protoKind(0)
	if t.Kind() == reflect.Pointer {
		pointer, t = 1, t.Elem()
	}
	switch t.Kind() {
	case reflect.Bool:
		s.kind = boolField + pointer
	case reflect.Int32:
		s.kind = int32Field + pointer
	case reflect.Int64:
		s.kind = int64Field + pointer
	default:
		return false
	}
	s.elem = t
	return true
}

func (s *protoStep) text(t reflect.Type) bool {
	if reflect.PointerTo(t).Implements(unmarshaler) {
		return false // a message, though it is a slice
	}
	s.elem = t
	switch {
	case t.Kind() == reflect.String:
		s.kind = textField
	case t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.String:
		s.kind, s.elem = textPointer, t.Elem()
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String:
		s.kind = textSlice
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		s.kind = bytesField
	case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String && t.Elem().Kind() == reflect.String:
		s.kind = textMap
	case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String && t.Elem() == quantityType:
		s.kind = quantityMap
	default:
		return false
	}
	return true
}

func (ps *protoPlans) message(s *protoStep, t reflect.Type) bool {
	s.kind = messageField
	switch own := reflect.PointerTo(t).Implements(unmarshaler); {
	case own:
	case t.Kind() == reflect.Pointer:
		s.kind, t = messagePointer, t.Elem()
	case t.Kind() == reflect.Slice:
		s.kind, t = messageSlice, t.Elem()
	}
	if !reflect.PointerTo(t).Implements(unmarshaler) {
		return false
	}
	s.elem = t
	if t.Kind() == reflect.Struct && t != quantityType {
		s.plan = ps.of(t)
	}
	return true
}
