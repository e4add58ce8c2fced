package openapi

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
)

// model is what the documents say of a value: of an object, of one of its
// fields, or of the elements of a list or a map.
type model struct {
	// ref is the name of another model. With it only description, def and
	// extensions are set besides.
	ref         string
	description string
	// kind is the type as JSON has it: "object", "string", ...; "" is any.
	kind   string
	format string
	// oneOf are the types of a value that has several. Version 2 has no word for
	// that and shows kind; version 3 shows these and not kind.
	oneOf []string
	enum  []string
	// def is the default as JSON, "" for none.
	def        string
	required   []string
	properties []property // sorted by name
	items      *model     // of a list
	values     *model     // of a map
	extensions []extension
	// keywords are what only schemas of custom resources say, such as maximum or
	// anyOf; they are written before all else.
	keywords []extension
	// parts are the types whose models a named model refers to.
	parts []reflect.Type
	// object is an empty object of the type of a named model, if it is one.
	object runtime.Object
}

type property struct {
	name  string
	model *model
}

// extension is a field x-...; extensions are sorted by name.
type extension struct {
	name string
	json string
}

const (
	extAction        = "x-kubernetes-action"
	extGVK           = "x-kubernetes-group-version-kind" // of a named model, see document.kinds
	extListKeys      = "x-kubernetes-list-map-keys"
	extListType      = "x-kubernetes-list-type"
	extMapType       = "x-kubernetes-map-type"
	extEmbedded      = "x-kubernetes-embedded-resource"
	extIntOrString   = "x-kubernetes-int-or-string"
	extPreserve      = "x-kubernetes-preserve-unknown-fields"
	extSelectable    = "x-kubernetes-selectable-fields"
	extValidations   = "x-kubernetes-validations"
	extPatchMergeKey = "x-kubernetes-patch-merge-key"
	extPatchStrategy = "x-kubernetes-patch-strategy"
	extUnions        = "x-kubernetes-unions"
)

// models are the named models of one document.
type models struct {
	types  *typeModels
	byName map[string]*model
	// v2: they are for a document of version 2.
	v2 bool
}

func newModels(types *typeModels) *models {
	return &models{types: types, byName: map[string]*model{}}
}

// defineType adds the model of a struct type and of all types that it is made
// of, and returns its name.
func (m *models) defineType(t reflect.Type) string {
	name := modelName(t)
	if m.byName[name] == nil {
		def := m.types.of(t)
		m.byName[name] = def
		for _, part := range def.parts {
			m.defineType(part)
		}
	}
	return name
}

// defined adds the model of a type and returns its name.
func defined[T any](m *models) string { return m.defineType(reflect.TypeFor[T]()) }
