package openapi

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// customSchemas makes models of the schemas of custom resources.
//
// Version 3 has the whole schema. Version 2 is for old kubectl, which takes what
// it says of a value for all that is allowed. So there, as in the real server:
//   - what is composed (allOf, anyOf, oneOf, not) and defaults are left out;
//   - a value that may be null has no type and no parts, and is not required;
//   - a value that may have any field has no type and no parts.
type customSchemas struct {
	models *models
}

// model returns the model of a schema.
func (c customSchemas) model(s *apiextensionsv1.JSONSchemaProps) *model {
	m := &model{kind: s.Type, description: s.Description, format: s.Format, required: s.Required}
	c.addParts(m, s)
	c.addKeywords(m, s)
	addExtensions(m, s)
	if s.XEmbeddedResource && !(c.models.v2 && preserves(s)) {
		c.addObjectFields(m, embeddedAPIVersion, embeddedKind)
		m.require("kind", "apiVersion")
	}
	return m
}

func preserves(s *apiextensionsv1.JSONSchemaProps) bool {
	return s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields
}

// addParts adds fields, items and values.
func (c customSchemas) addParts(m *model, s *apiextensionsv1.JSONSchemaProps) {
	whole := !c.models.v2 || !s.Nullable && !preserves(s)
	if s.Items != nil && s.Items.Schema != nil && whole {
		m.items = c.model(s.Items.Schema)
	}
	if len(s.Properties) > 0 && whole {
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			field := s.Properties[name]
			m.properties = append(m.properties, property{name, c.model(&field)})
		}
	}
	if values := s.AdditionalProperties; values != nil && values.Schema != nil {
		m.values = c.model(values.Schema)
	}
	if !c.models.v2 {
		return
	}
	if !whole && (s.Nullable || s.Type == "object") || m.items == nil && s.Type == "array" {
		m.kind = "" // kubectl cannot take a list without items
	}
	m.required = requiredInV2(s, m)
}

// requiredInV2 leaves out fields that may be null.
func requiredInV2(s *apiextensionsv1.JSONSchemaProps, m *model) []string {
	if values := s.AdditionalProperties; values != nil && values.Schema != nil && values.Schema.Nullable {
		return nil
	}
	if m.properties == nil {
		return s.Required
	}
	var kept []string
	for _, name := range s.Required {
		if field, ok := s.Properties[name]; !ok || !field.Nullable {
			kept = append(kept, name)
		}
	}
	return kept
}

// addObjectFields adds the fields that all objects have, instead of what the
// schema says of them. A description that is "" is that of all objects.
func (c customSchemas) addObjectFields(m *model, apiVersion, kind string) {
	m.set("apiVersion", typeMetaField("apiVersion", apiVersion))
	m.set("kind", typeMetaField("kind", kind))
	m.set("metadata", &model{
		ref:         defined[metav1.ObjectMeta](c.models),
		description: docOf(metav1.PartialObjectMetadata{})["metadata"],
	})
}

const (
	embeddedAPIVersion = "The group and version of the object that this field holds, as its apiVersion says."
	embeddedKind       = "The kind of the object that this field holds, in CamelCase."
)

// require adds names of fields that must be there.
func (d *model) require(names ...string) {
	d.required = slices.Clone(d.required)
	for _, name := range names {
		if !slices.Contains(d.required, name) {
			d.required = append(d.required, name)
		}
	}
}

// addKeywords adds what there is no other place for.
func (c customSchemas) addKeywords(m *model, s *apiextensionsv1.JSONSchemaProps) {
	if values := s.AdditionalProperties; values != nil && values.Schema == nil {
		m.keyword("additionalProperties", strconv.FormatBool(values.Allows))
	}
	if !c.models.v2 {
		c.addComposed(m, s)
		m.def = notNull(s.Default)
		m.flag("nullable", s.Nullable)
	}
	m.keyword("enum", anyList(s.Enum))
	m.keyword("example", notNull(s.Example))
	m.flag("exclusiveMaximum", s.ExclusiveMaximum)
	m.flag("exclusiveMinimum", s.ExclusiveMinimum)
	if s.ExternalDocs != nil {
		m.keyword("externalDocs", asJSON(s.ExternalDocs))
	}
	m.keyword("maxItems", count(s.MaxItems))
	m.keyword("maxLength", count(s.MaxLength))
	m.keyword("maxProperties", count(s.MaxProperties))
	m.keyword("maximum", number(s.Maximum))
	m.keyword("minItems", count(s.MinItems))
	m.keyword("minLength", count(s.MinLength))
	m.keyword("minProperties", count(s.MinProperties))
	m.keyword("minimum", number(s.Minimum))
	m.keyword("multipleOf", number(s.MultipleOf))
	m.keyword("pattern", quoted(s.Pattern))
	m.keyword("title", quoted(s.Title))
	m.flag("uniqueItems", s.UniqueItems)
}

// addComposed adds the schemas that a value must fit, too.
func (c customSchemas) addComposed(m *model, s *apiextensionsv1.JSONSchemaProps) {
	allOf, anyOf := s.AllOf, s.AnyOf
	if s.XIntOrString && !isIntOrString(anyOf) && !(len(allOf) > 0 && isIntOrString(allOf[0].AnyOf)) {
		if anyOf == nil {
			anyOf = intOrString
		} else {
			allOf = slices.Concat([]apiextensionsv1.JSONSchemaProps{{AnyOf: intOrString}}, allOf)
		}
	}
	m.keyword("allOf", c.composed(allOf))
	m.keyword("anyOf", c.composed(anyOf))
	if s.Not != nil {
		m.keyword("not", c.written(s.Not))
	}
	m.keyword("oneOf", c.composed(s.OneOf))
}

// intOrString is what x-kubernetes-int-or-string means.
var intOrString = []apiextensionsv1.JSONSchemaProps{{Type: "integer"}, {Type: "string"}}

// isIntOrString tells whether a schema says so itself.
func isIntOrString(anyOf []apiextensionsv1.JSONSchemaProps) bool {
	return len(anyOf) == 2 && asJSON(anyOf) == `[{"type":"integer"},{"type":"string"}]`
}

func (c customSchemas) composed(all []apiextensionsv1.JSONSchemaProps) string {
	if len(all) == 0 {
		return ""
	}
	var w jsonWriter
	w.open('[')
	for i := range all {
		w.raw(c.written(&all[i]))
	}
	w.close(']')
	return string(w.b)
}

// written returns a schema inside another as version 3 has it.
func (c customSchemas) written(s *apiextensionsv1.JSONSchemaProps) string {
	w := v3Writer{jsonWriter: &jsonWriter{}}
	w.namedModel(c.model(s), "")
	return string(w.b)
}

func addExtensions(m *model, s *apiextensionsv1.JSONSchemaProps) {
	m.extend(extEmbedded, ifTrue(s.XEmbeddedResource))
	m.extend(extIntOrString, ifTrue(s.XIntOrString))
	m.extend(extListKeys, quotedList(s.XListMapKeys))
	m.extend(extListType, textOf(s.XListType))
	m.extend(extMapType, textOf(s.XMapType))
	m.extend(extPreserve, ifTrue(preserves(s)))
	if len(s.XValidations) > 0 {
		m.extend(extValidations, asJSON(s.XValidations))
	}
}

// keyword adds a keyword unless its value is empty.
func (d *model) keyword(name, value string) {
	if value != "" {
		d.keywords = append(d.keywords, extension{name, value})
	}
}

func (d *model) flag(name string, is bool) { d.keyword(name, ifTrue(is)) }

func ifTrue(is bool) string {
	if !is {
		return ""
	}
	return "true"
}

func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return quoted(*s)
}

func count(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

func number(n *float64) string {
	if n == nil {
		return ""
	}
	return asJSON(*n)
}

// notNull returns a JSON value, "" for none and for null, which says nothing.
func notNull(v *apiextensionsv1.JSON) string {
	if v == nil {
		return ""
	}
	var compact bytes.Buffer
	if json.Compact(&compact, v.Raw) != nil || compact.String() == "null" {
		return ""
	}
	return compact.String()
}

func anyList(values []apiextensionsv1.JSON) string {
	if len(values) == 0 {
		return ""
	}
	return asJSON(values)
}

// asJSON returns a value as JSON; "" if it has none, which a number or a string
// that came as JSON has.
func asJSON(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return ""
	}
	return string(bytes.TrimSpace(b.Bytes()))
}
