package openapi

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	openapiv2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
)

// writeV2Proto writes what writeV2 does as a gnostic Document in protobuf.
func writeV2Proto(to *jsonWriter, d *document) {
	w := protoWriter{common: commonParams(d)}
	body, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend(to.b, w.document(d))
	if err != nil {
		panic("openapi: " + err.Error()) // a string that is not UTF-8; a test makes all documents
	}
	to.b = body
}

type protoWriter struct {
	common map[parameter]string
}

func (w protoWriter) document(d *document) *openapiv2.Document {
	doc := &openapiv2.Document{
		Swagger:     "2.0",
		Info:        &openapiv2.Info{Title: docTitle, Version: docVersion},
		Paths:       &openapiv2.Paths{},
		Definitions: &openapiv2.Definitions{},
		Parameters:  w.commonParameters(),
		Security: []*openapiv2.SecurityRequirement{{
			AdditionalProperties: []*openapiv2.NamedStringArray{{Name: "BearerToken", Value: &openapiv2.StringArray{}}},
		}},
		SecurityDefinitions: &openapiv2.SecurityDefinitions{
			AdditionalProperties: []*openapiv2.NamedSecurityDefinitionsItem{{Name: "BearerToken", Value: protoBearerToken()}},
		},
	}
	for _, name := range d.names() {
		s := protoModel(d.models.byName[name])
		if gvks := d.gvks(name); gvks != "" {
			s.VendorExtension = slices.Insert(s.VendorExtension, 0, protoExtension(extGVK, gvks))
		}
		doc.Definitions.AdditionalProperties = append(doc.Definitions.AdditionalProperties, &openapiv2.NamedSchema{Name: name, Value: s})
	}
	for i := range d.paths {
		doc.Paths.Path = append(doc.Paths.Path, &openapiv2.NamedPathItem{Name: d.paths[i].path, Value: w.path(&d.paths[i])})
	}
	return doc
}

func protoBearerToken() *openapiv2.SecurityDefinitionsItem {
	return &openapiv2.SecurityDefinitionsItem{Oneof: &openapiv2.SecurityDefinitionsItem_ApiKeySecurity{
		ApiKeySecurity: &openapiv2.ApiKeySecurity{
			Type: "apiKey", Name: "authorization", In: "header", Description: "Bearer token",
		},
	}}
}

func (w protoWriter) commonParameters() *openapiv2.ParameterDefinitions {
	byName := map[string]parameter{}
	for p, name := range w.common {
		byName[name] = p
	}
	defs := &openapiv2.ParameterDefinitions{}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		defs.AdditionalProperties = append(defs.AdditionalProperties,
			&openapiv2.NamedParameter{Name: name, Value: protoParameter(byName[name])})
	}
	return defs
}

func protoModel(m *model) *openapiv2.Schema {
	s := &openapiv2.Schema{Description: m.description, Format: m.format, Required: m.required}
	if m.ref != "" {
		s.XRef = "#/definitions/" + m.ref
	}
	if m.kind != "" {
		s.Type = &openapiv2.TypeItem{Value: []string{m.kind}}
	}
	for _, v := range m.enum {
		s.Enum = append(s.Enum, protoAny(string(appendQuoted(nil, v))))
	}
	if m.items != nil {
		s.Items = &openapiv2.ItemsItem{Schema: []*openapiv2.Schema{protoModel(m.items)}}
	}
	if m.values != nil {
		s.AdditionalProperties = &openapiv2.AdditionalPropertiesItem{
			Oneof: &openapiv2.AdditionalPropertiesItem_Schema{Schema: protoModel(m.values)},
		}
	}
	if m.properties != nil {
		s.Properties = &openapiv2.Properties{}
		for _, p := range m.properties {
			s.Properties.AdditionalProperties = append(s.Properties.AdditionalProperties,
				&openapiv2.NamedSchema{Name: p.name, Value: protoModel(p.model)})
		}
	}
	for _, e := range m.extensions {
		s.VendorExtension = append(s.VendorExtension, protoExtension(e.name, e.json))
	}
	for _, k := range m.keywords {
		protoKeyword(s, k.name, k.json)
	}
	return s
}

// protoKeyword sets what a keyword says. As in the real server, a bound of zero
// is none: the format cannot tell.
func protoKeyword(s *openapiv2.Schema, name, text string) {
	number := func() float64 { n, _ := strconv.ParseFloat(text, 64); return n }
	count := func() int64 { n, _ := strconv.ParseInt(text, 10, 64); return n }
	switch name {
	case "additionalProperties":
		s.AdditionalProperties = &openapiv2.AdditionalPropertiesItem{
			Oneof: &openapiv2.AdditionalPropertiesItem_Boolean{Boolean: text == "true"},
		}
	case "enum":
		var values []json.RawMessage
		json.Unmarshal([]byte(text), &values) // what it cannot read is left out
		for _, v := range values {
			s.Enum = append(s.Enum, protoAny(string(v)))
		}
	case "example":
		s.Example = protoAny(text)
	case "exclusiveMaximum":
		s.ExclusiveMaximum = true
	case "exclusiveMinimum":
		s.ExclusiveMinimum = true
	case "externalDocs":
		s.ExternalDocs = &openapiv2.ExternalDocs{}
		json.Unmarshal([]byte(text), s.ExternalDocs)
	case "maxItems":
		s.MaxItems = count()
	case "maxLength":
		s.MaxLength = count()
	case "maxProperties":
		s.MaxProperties = count()
	case "maximum":
		s.Maximum = number()
	case "minItems":
		s.MinItems = count()
	case "minLength":
		s.MinLength = count()
	case "minProperties":
		s.MinProperties = count()
	case "minimum":
		s.Minimum = number()
	case "multipleOf":
		s.MultipleOf = number()
	case "pattern":
		json.Unmarshal([]byte(text), &s.Pattern)
	case "title":
		json.Unmarshal([]byte(text), &s.Title)
	case "uniqueItems":
		s.UniqueItems = true
	}
}

// protoAny is a value of any type: YAML, which JSON is.
func protoAny(json string) *openapiv2.Any { return &openapiv2.Any{Yaml: json + "\n"} }

func protoExtension(name, json string) *openapiv2.NamedAny {
	return &openapiv2.NamedAny{Name: name, Value: protoAny(json)}
}

func (w protoWriter) path(p *path) *openapiv2.PathItem {
	item := &openapiv2.PathItem{Parameters: w.parameters(nil, p.params)}
	for i := range p.operations {
		op := w.operation(&p.operations[i])
		switch p.operations[i].method {
		case "get":
			item.Get = op
		case "put":
			item.Put = op
		case "post":
			item.Post = op
		case "patch":
			item.Patch = op
		case "delete":
			item.Delete = op
		case "head":
			item.Head = op
		case "options":
			item.Options = op
		}
	}
	return item
}

func (w protoWriter) operation(op *operation) *openapiv2.Operation {
	made := &openapiv2.Operation{
		Tags: []string{op.tag}, Description: op.description, OperationId: op.id,
		Produces: op.produces, Consumes: op.consumes(), Schemes: []string{"https"},
		Parameters: w.parameters(op.body, op.params),
		Responses:  &openapiv2.Responses{},
	}
	for _, r := range op.responses {
		made.Responses.ResponseCode = append(made.Responses.ResponseCode,
			&openapiv2.NamedResponseValue{Name: r.code, Value: protoResponse(r)})
	}
	if op.action != "" {
		var gvk jsonWriter
		gvk.gvk(op.gvk)
		made.VendorExtension = []*openapiv2.NamedAny{
			protoExtension(extAction, quoted(op.action)), protoExtension(extGVK, string(gvk.b)),
		}
	}
	return made
}

func protoResponse(r response) *openapiv2.ResponseValue {
	made := &openapiv2.Response{Description: r.description()}
	if !r.empty {
		s := &openapiv2.Schema{XRef: "#/definitions/" + r.model}
		if r.model == "" {
			s = &openapiv2.Schema{Type: &openapiv2.TypeItem{Value: []string{"string"}}}
		}
		made.Schema = &openapiv2.SchemaItem{Oneof: &openapiv2.SchemaItem_Schema{Schema: s}}
	}
	return &openapiv2.ResponseValue{Oneof: &openapiv2.ResponseValue_Response{Response: made}}
}

func (w protoWriter) parameters(b *body, params []parameter) []*openapiv2.ParametersItem {
	var items []*openapiv2.ParametersItem
	if b != nil {
		items = append(items, protoItem(protoBody(b)))
	}
	for _, p := range params {
		if name, common := w.common[p]; common {
			items = append(items, &openapiv2.ParametersItem{Oneof: &openapiv2.ParametersItem_JsonReference{
				JsonReference: &openapiv2.JsonReference{XRef: "#/parameters/" + name},
			}})
			continue
		}
		items = append(items, protoItem(protoParameter(p)))
	}
	return items
}

func protoItem(p *openapiv2.Parameter) *openapiv2.ParametersItem {
	return &openapiv2.ParametersItem{Oneof: &openapiv2.ParametersItem_Parameter{Parameter: p}}
}

func protoBody(b *body) *openapiv2.Parameter {
	return &openapiv2.Parameter{Oneof: &openapiv2.Parameter_BodyParameter{BodyParameter: &openapiv2.BodyParameter{
		Name: "body", In: "body", Required: b.required,
		Schema: &openapiv2.Schema{XRef: "#/definitions/" + b.model},
	}}}
}

func protoParameter(p parameter) *openapiv2.Parameter {
	var non openapiv2.NonBodyParameter
	if p.in == "path" {
		non.Oneof = &openapiv2.NonBodyParameter_PathParameterSubSchema{PathParameterSubSchema: &openapiv2.PathParameterSubSchema{
			Required: true, In: p.in, Description: p.description, Name: p.name, Type: p.kind, UniqueItems: true,
		}}
	} else {
		non.Oneof = &openapiv2.NonBodyParameter_QueryParameterSubSchema{QueryParameterSubSchema: &openapiv2.QueryParameterSubSchema{
			In: p.in, Description: p.description, Name: p.name, Type: p.kind, UniqueItems: true,
		}}
	}
	return &openapiv2.Parameter{Oneof: &openapiv2.Parameter_NonBodyParameter{NonBodyParameter: &non}}
}
