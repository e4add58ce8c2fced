package openapi

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// What types of the API may say of themselves.
type (
	documented interface{ SwaggerDoc() map[string]string }
	simple     interface {
		OpenAPISchemaType() []string
		OpenAPISchemaFormat() string
	}
	several interface{ OpenAPIV3OneOfTypes() []string }
)

var (
	unmarshaler = reflect.TypeFor[json.Unmarshaler]()
	timeType    = reflect.TypeFor[time.Time]()
)

// typeModels are what is made of Go types once and then shared by the documents
// that are made together, which do not change it.
type typeModels struct {
	facts  facts
	byType map[reflect.Type]*model
	params optionParams
	// v3Params are parameters as version 3 writes them, as far as was needed.
	v3Params map[parameter]string
}

func newTypeModels() *typeModels {
	return &typeModels{
		facts:    loadFacts(),
		byType:   map[reflect.Type]*model{},
		params:   newOptionParams(),
		v3Params: map[parameter]string{},
	}
}

// of returns the model of a struct type.
func (m *typeModels) of(t reflect.Type) *model {
	if m.byType[t] == nil {
		m.byType[t] = m.newModel(t)
	}
	return m.byType[t]
}

func (m *typeModels) newModel(t reflect.Type) *model {
	zero := reflect.New(t).Interface()
	def := &model{description: typeDoc(t, m.docOf(t))}
	def.object, _ = zero.(runtime.Object)
	if s, ok := zero.(simple); ok {
		def.kind, def.format = first(s.OpenAPISchemaType()), s.OpenAPISchemaFormat()
		if s, ok := zero.(several); ok {
			def.oneOf = s.OpenAPIV3OneOfTypes()
		}
		return def
	}
	def.kind = "object"
	known := m.facts.ofType(typeKey(t))
	m.addFields(def, t, known)
	slices.SortFunc(def.properties, func(a, b property) int { return strings.Compare(a.name, b.name) })
	def.extend(extMapType, quoted(known.mapType))
	if known.union {
		def.extend(extUnions, unionOf(t, known))
	}
	return def
}

// addFields adds the fields of a struct to a model, those of inlined structs
// with them.
func (m *typeModels) addFields(def *model, t reflect.Type, known typeFacts) {
	doc := m.docOf(t)
	for i := range t.NumField() {
		f := t.Field(i)
		tag, tagged := f.Tag.Lookup("json")
		name, options, _ := strings.Cut(tag, ",")
		switch {
		case f.Anonymous && tagged && name == "":
			inner := deref(f.Type)
			m.addFields(def, inner, m.facts.ofType(typeKey(inner)))
			continue
		case name == "-" || !f.IsExported():
			continue
		case name == "":
			name = f.Name
		}
		omitEmpty := slices.Contains(strings.Split(options, ","), "omitempty")
		of := known.fields[name]
		if of.required || !omitEmpty && !of.optional {
			def.required = append(def.required, name)
		}
		p := m.field(def, f, omitEmpty, of)
		p.description = doc[name]
		def.properties = append(def.properties, property{name, p})
	}
}

// field returns the model of one field, but for its description.
func (m *typeModels) field(def *model, f reflect.StructField, omitEmpty bool, known fieldFacts) *model {
	p := m.value(def, f.Type)
	if p.def = known.defaultJSON; p.def == "" {
		p.def = zeroDefault(f.Type, omitEmpty)
	}
	p.extend(extListKeys, quotedList(known.listKeys))
	p.extend(extListType, quoted(known.listType))
	p.extend(extMapType, quoted(known.mapType))
	p.extend(extPatchMergeKey, quoted(f.Tag.Get("patchMergeKey")))
	p.extend(extPatchStrategy, quoted(f.Tag.Get("patchStrategy")))
	return p
}

// value returns the model of a value of a type, which is part of def.
func (m *typeModels) value(def *model, t reflect.Type) *model {
	t = deref(t)
	if t == timeType {
		return &model{kind: "string", format: "date-time"}
	}
	switch t.Kind() {
	case reflect.Struct:
		if !slices.Contains(def.parts, t) {
			def.parts = append(def.parts, t)
		}
		return &model{ref: modelName(t)}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return &model{kind: "string", format: "byte"}
		}
		return &model{kind: "array", items: m.value(def, t.Elem())}
	case reflect.Map:
		return &model{kind: "object", values: m.value(def, t.Elem())}
	case reflect.Interface:
		return &model{}
	case reflect.String:
		return &model{kind: "string", enum: m.facts.ofEnum(typeKey(t))}
	}
	kind, format := scalar(t.Kind())
	return &model{kind: kind, format: format}
}

func scalar(k reflect.Kind) (kind, format string) {
	switch k {
	case reflect.Bool:
		return "boolean", ""
	case reflect.Int8, reflect.Uint8:
		return "integer", "byte"
	case reflect.Int, reflect.Int16, reflect.Int32, reflect.Uint, reflect.Uint16:
		return "integer", "int32"
	case reflect.Int64, reflect.Uint32, reflect.Uint64:
		return "integer", "int64"
	case reflect.Float32:
		return "number", "float"
	case reflect.Float64:
		return "number", "double"
	}
	return "string", ""
}

// zeroDefault returns the default that follows from the Go type of a field: a
// decoder cannot tell the zero value of a field that is always written from a
// field that is missing.
func zeroDefault(t reflect.Type, omitEmpty bool) string {
	switch t.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Array, reflect.Interface:
		return ""
	case reflect.Struct:
		switch {
		case reflect.PointerTo(t).Implements(unmarshaler):
			return ""
		case t.NumField() == 1 && t.Field(0).Anonymous:
			return zeroDefault(t.Field(0).Type, omitEmpty)
		}
		return "{}"
	case reflect.String:
		return ifNot(omitEmpty, `""`)
	case reflect.Bool:
		return ifNot(omitEmpty, "false")
	}
	return ifNot(omitEmpty, "0")
}

func ifNot(not bool, s string) string {
	if not {
		return ""
	}
	return s
}

// unionOf describes a struct of which one field at most is set.
func unionOf(t reflect.Type, known typeFacts) string {
	var w jsonWriter
	w.open('[')
	w.open('{')
	for i := range t.NumField() {
		if name := jsonName(t.Field(i)); known.fields[name].discriminator {
			w.field("discriminator", name)
		}
	}
	w.key("fields-to-discriminateBy")
	w.open('{')
	for i := range t.NumField() {
		if name := jsonName(t.Field(i)); name != "" && !known.fields[name].discriminator {
			w.field(name, t.Field(i).Name)
		}
	}
	w.close('}')
	w.close('}')
	w.close(']')
	return string(w.b)
}

// extend adds an extension unless its value is empty. Callers add in the order
// of the names.
func (d *model) extend(name, value string) {
	if value != "" {
		d.extensions = append(d.extensions, extension{name, value})
	}
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "-" {
		return ""
	}
	return name
}

func deref(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

func first(s []string) string {
	if len(s) == 0 {
		return ""
	}
	return s[0]
}

// typeKey is the name of a type in facts.txt.
func typeKey(t reflect.Type) string { return t.PkgPath() + "." + t.Name() }

// modelName is the name of a type's model: its full name, the host reversed,
// as in io.k8s.api.core.v1.Pod.
func modelName(t reflect.Type) string {
	host, rest, ok := strings.Cut(t.PkgPath(), "/")
	if !ok {
		return typeKey(t)
	}
	labels := strings.Split(host, ".")
	slices.Reverse(labels)
	return strings.Join(labels, ".") + "." + strings.ReplaceAll(rest, "/", ".") + "." + t.Name()
}

// docOf returns the descriptions of a type and its fields.
func (m *typeModels) docOf(t reflect.Type) map[string]string {
	if doc := docOf(reflect.New(t).Interface()); doc != nil {
		return doc
	}
	return m.facts.ofDoc(typeKey(t))
}

func docOf(zero any) map[string]string {
	if d, ok := zero.(documented); ok {
		return d.SwaggerDoc()
	}
	return nil
}
