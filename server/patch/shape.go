package patch

import (
	"reflect"
	"slices"
	"sync"

	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// shape says how the fields of values of one Go type under one schema type are
// counted. Shapes of what a type contains are made when first met.
type shape struct {
	form form
	// convert is set for Go types with a JSON form of their own.
	convert *value.TypeReflectCacheEntry
	// inside is what a leaf would be were it not atomic, if structured-merge-diff
	// may refuse something in it; else opaque.
	inside form

	shapes *shapes
	goType reflect.Type // without pointer
	atom   smd.Atom

	once   sync.Once
	fields []fieldShape // of a record, and of a leaf that is a struct
	elem   *shape       // of a table, a keyed list or a set
	keys   []keyShape   // of a keyed list
}

// form is what a shape's values are to a field set.
type form int

const (
	opaque form = iota // not understood here: the library decides
	leaf               // counts as one: a scalar, or something atomic
	record             // a struct of fields
	table              // a map by string
	keyed              // a list of records that some of their fields tell apart
	set                // a list of scalars
	array              // any other list, inside a leaf
)

// fieldShape is a field of a record.
type fieldShape struct {
	*value.FieldCacheEntry
	shape *shape // nil: the schema does not have the field
	key   string // as written in a field set, with quotes: "f:name"
	// zero is how the field appears in a record that is all zero.
	zero before
}

// keyShape is a field that is part of a keyed list's key.
type keyShape struct {
	name     string
	entry    *value.FieldCacheEntry
	fallback any
}

// shapes makes the shapes of one kind, each once.
type shapes struct {
	schema *smd.Schema
	mu     sync.Mutex
	made   map[shapeKey]*shape
}

type shapeKey struct {
	goType reflect.Type
	atom   smd.Atom
}

func newShapes(s *smd.Schema) *shapes {
	return &shapes{schema: s, made: map[shapeKey]*shape{}}
}

// of returns the shape of a Go type under a schema type, or nil if the schema
// does not have that type.
func (s *shapes) of(t reflect.Type, ref smd.TypeRef) *shape {
	atom, ok := s.schema.Resolve(ref)
	if !ok || atom == (smd.Atom{}) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := shapeKey{t, atom}
	if made, ok := s.made[key]; ok {
		return made
	}
	made := s.make(t, atom)
	s.made[key] = made
	return made
}

func (s *shapes) make(t reflect.Type, atom smd.Atom) *shape {
	made := &shape{shapes: s, goType: t, atom: atom}
	if entry := value.TypeReflectEntryOf(t); entry.CanConvertToUnstructured() {
		made.convert = entry
	}
	if t.Kind() == reflect.Pointer {
		made.goType = t.Elem()
	}
	made.form = made.formOf()
	if made.form == leaf && s.fragile(atom, nil) {
		made.inside = made.insideForm()
	}
	return made
}

// formOf finds the form; what it is not sure of is opaque.
func (s *shape) formOf() form {
	switch {
	case isLeaf(s.atom):
		return s.leafForm()
	case s.convert != nil || s.atom.Scalar != nil:
		return opaque
	case s.atom.Map != nil && s.atom.List == nil:
		return s.mapForm()
	case s.atom.List != nil && s.atom.Map == nil && s.goType.Kind() == reflect.Slice:
		return s.listForm()
	}
	return opaque
}

// leafForm is opaque for a Go type that the library would refuse as that leaf.
func (s *shape) leafForm() form {
	if s.convert != nil {
		return leaf
	}
	fits := false
	switch s.goType.Kind() {
	case reflect.String:
		fits = s.isScalar(smd.String)
	case reflect.Bool:
		fits = s.isScalar(smd.Boolean)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Float32, reflect.Float64:
		fits = s.isScalar(smd.Numeric)
	case reflect.Slice:
		isBytes := s.goType.Elem().Kind() == reflect.Uint8
		fits = isBytes && s.isScalar(smd.String) || !isBytes && s.atom.List != nil
	case reflect.Map, reflect.Struct:
		fits = s.atom.Map != nil
	}
	if !fits {
		return opaque
	}
	return leaf
}

// insideForm is the form of a leaf that has something fragile in it.
func (s *shape) insideForm() form {
	switch s.goType.Kind() {
	case reflect.Struct:
		return record
	case reflect.Map:
		return table
	}
	return array
}

func (s *shape) isScalar(want smd.Scalar) bool {
	return s.atom.Scalar != nil && (*s.atom.Scalar == want || *s.atom.Scalar == smd.Untyped)
}

func (s *shape) mapForm() form {
	switch s.goType.Kind() {
	case reflect.Struct:
		return record
	case reflect.Map:
		if s.goType.Key().Kind() == reflect.String && len(s.atom.Map.Fields) == 0 {
			return table
		}
	}
	return opaque
}

func (s *shape) listForm() form {
	switch item := s.goType.Elem(); {
	case s.atom.List.ElementRelationship != smd.Associative:
		return opaque
	case len(s.atom.List.Keys) > 0 && item.Kind() == reflect.Struct:
		return keyed
	case len(s.atom.List.Keys) == 0 && item.Kind() == reflect.String:
		return set
	}
	return opaque
}

// isLeaf reports whether whatever fits the atom counts as one field.
func isLeaf(a smd.Atom) bool {
	return (a.List == nil || a.List.ElementRelationship == smd.Atomic) &&
		(a.Map == nil || a.Map.ElementRelationship == smd.Atomic)
}

// fragile reports whether the atom contains a list with keys, or a set: the
// library refuses items that have no key or are null.
func (s *shapes) fragile(a smd.Atom, above []smd.Atom) bool {
	if slices.Contains(above, a) {
		return false
	}
	above = append(above, a)
	inside := func(ref smd.TypeRef) bool {
		atom, ok := s.schema.Resolve(ref)
		return ok && s.fragile(atom, above)
	}
	if a.List != nil && (a.List.ElementRelationship == smd.Associative || inside(a.List.ElementType)) {
		return true
	}
	return a.Map != nil && (inside(a.Map.ElementType) ||
		slices.ContainsFunc(a.Map.Fields, func(f smd.StructField) bool { return inside(f.Type) }))
}

// fill makes the shapes of what s contains.
func (s *shape) fill() {
	s.once.Do(func() {
		switch s.form {
		case leaf:
			s.fillLeaf()
		case record:
			s.fillFields()
		case table:
			s.elem = s.shapes.of(s.goType.Elem(), s.atom.Map.ElementType)
		case keyed, set:
			s.elem = s.shapes.of(s.goType.Elem(), s.atom.List.ElementType)
			s.fillKeys()
		}
	})
}

func (s *shape) fillLeaf() {
	switch kind := s.goType.Kind(); {
	case s.convert != nil:
	case kind == reflect.Struct:
		s.fillFields()
	case s.inside == table:
		s.elem = s.shapes.of(s.goType.Elem(), s.atom.Map.ElementType)
	case s.inside == array:
		s.elem = s.shapes.of(s.goType.Elem(), s.atom.List.ElementType)
	}
}

func (s *shape) fillFields() {
	zero := reflect.Zero(s.goType)
	for _, entry := range value.TypeReflectEntryOf(s.goType).OrderedFields() {
		field := entry.GetFrom(zero)
		f := fieldShape{FieldCacheEntry: entry, key: string(appendField(nil, entry.JsonName))}
		ref := s.atom.Map.ElementType
		if declared, ok := s.atom.Map.FindField(entry.JsonName); ok {
			ref = declared.Type
		}
		f.shape = s.shapes.of(field.Type(), ref)
		if !entry.CanOmit(field) {
			f.zero = zeroed
			if f.shape != nil && f.shape.isNull(field) {
				f.zero = null
			}
		}
		s.fields = append(s.fields, f)
	}
}

func (s *shape) fillKeys() {
	entries := value.TypeReflectEntryOf(s.goType.Elem()).Fields()
	for _, name := range slices.Sorted(slices.Values(s.atom.List.Keys)) {
		k := keyShape{name: name, entry: entries[name]}
		if s.elem != nil && s.elem.atom.Map != nil {
			field, _ := s.elem.atom.Map.FindField(name)
			k.fallback = field.Default
		}
		s.keys = append(s.keys, k)
	}
}

// isNull reports whether JSON has null for the value.
func (s *shape) isNull(v reflect.Value) bool {
	if s.convert != nil {
		u, err := s.convert.ToUnstructured(v)
		return err == nil && u == nil
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface:
		return v.IsNil()
	}
	return false
}
