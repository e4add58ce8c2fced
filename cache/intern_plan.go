package cache

import (
	"reflect"
	"time"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// plan says where in the memory of a type there is something to share.
type plan struct {
	of     reflect.Type
	slice  reflect.Type // of elements of this type
	size   uintptr
	steps  []planStep
	opaque bool // it has a state of its own, so that two must not become one
}

// planStep is one such place. Maps whose keys are some kind of string are read
// as maps of plain strings: named strings are laid out and hashed alike.
type planStep struct {
	kind   stepKind
	offset uintptr
	plan   *plan // of what a pointer or slice points to
	luck   luck  // of looking up what is there
}

// same reports whether there is nothing to do in a place, for it points to the
// very memory that the other one does, or both to none. Most places of an object
// are empty. A quantity has to be made ready to be read in any case.
func (s *planStep) same(at, was unsafe.Pointer) bool {
	if *(*uintptr)(at) != *(*uintptr)(was) {
		return false
	}
	switch s.kind {
	case stringStep, sliceStep: // the second word is the length
		return (*[2]uintptr)(at)[1] == (*[2]uintptr)(was)[1]
	}
	return s.kind != quantityStep
}

// luck is how often looking up what is in one place has found something. Where
// that is seldom, as with addresses and times, most of it is left out.
type luck struct{ tries, found, passed uint32 }

const (
	luckTries = 128  // before it is judged
	luckShare = 16   // one in so many has to be found; else one in so many is tried
	luckTerm  = 1024 // tries after which half of them is forgotten
)

func (l *luck) try() bool {
	if l.tries < luckTries || l.found*luckShare >= l.tries {
		return true
	}
	l.passed++
	return l.passed%luckShare == 0
}

func (l *luck) note(found bool) {
	if l.tries >= luckTerm {
		l.tries, l.found = l.tries/2, l.found/2
	}
	l.tries++
	if found {
		l.found++
	}
}

type stepKind uint8

const (
	stringStep stepKind = iota
	pointerStep
	sliceStep
	stringMapStep
	quantityMapStep
	quantityStep
)

var (
	quantityType = reflect.TypeFor[resource.Quantity]()
	metaType     = reflect.TypeFor[metav1.ObjectMeta]()

	// plainTypes hide their fields, but are plain values all the same.
	plainTypes = map[reflect.Type]bool{
		reflect.TypeFor[metav1.Time]():      true,
		reflect.TypeFor[metav1.MicroTime](): true,
		reflect.TypeFor[time.Time]():        true,
	}
)

// unique are fields of metadata that no two objects have in common: looking them
// up would only push out what can be shared.
var unique = map[string]bool{"Name": true, "UID": true, "ResourceVersion": true}

func (in *interner) planOf(t reflect.Type) *plan {
	if p := in.plans[t]; p != nil {
		return p
	}
	p := &plan{of: t, slice: reflect.SliceOf(t), size: t.Size()}
	in.plans[t] = p // before its fields: types may hold themselves
	in.addSteps(p, t, 0)
	return p
}

// addSteps adds what is to be done for a value of type t at an offset. Types
// that it does not know are left alone.
func (in *interner) addSteps(p *plan, t reflect.Type, offset uintptr) {
	add := func(kind stepKind, to *plan) {
		p.steps = append(p.steps, planStep{kind: kind, offset: offset, plan: to})
	}
	switch {
	case t == quantityType:
		add(quantityStep, nil)
		return
	case plainTypes[t]:
		return
	}
	switch t.Kind() {
	case reflect.String:
		add(stringStep, nil)
	case reflect.Pointer:
		add(pointerStep, in.planOf(t.Elem()))
	case reflect.Slice:
		add(sliceStep, in.planOf(t.Elem()))
	case reflect.Map:
		switch {
		case t.Key().Kind() != reflect.String:
		case t.Elem().Kind() == reflect.String:
			add(stringMapStep, nil)
		case t.Elem() == quantityType:
			add(quantityMapStep, nil)
		}
	case reflect.Chan, reflect.Func, reflect.UnsafePointer:
		p.opaque = true
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			p.opaque = p.opaque || !f.IsExported()
			if t != metaType || !unique[f.Name] {
				in.addSteps(p, f.Type, offset+f.Offset)
			}
		}
	}
}
