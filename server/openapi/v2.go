package openapi

import (
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"slices"
)

// v2Writer writes documents of OpenAPI 2.0, "Swagger". Parameters that come
// often stand in a part of their own and are referred to.
type v2Writer struct {
	*jsonWriter
	common map[parameter]string // the names of parameters that are referred to
}

// writeV2 writes a document as OpenAPI 2.0, in JSON. Keys are sorted, but for
// keywords.
func writeV2(to *jsonWriter, d *document) {
	w := &v2Writer{jsonWriter: to, common: commonParams(d)}
	w.open('{')
	w.key("definitions")
	w.open('{')
	for _, name := range d.names() {
		w.key(name)
		w.model(d.models.byName[name], d.gvks(name))
	}
	w.close('}')
	w.info()
	w.key("parameters")
	w.commonParameters()
	w.key("paths")
	w.open('{')
	for i := range d.paths {
		w.key(d.paths[i].path)
		w.path(&d.paths[i])
	}
	w.close('}')
	w.rawField("security", `[{"BearerToken":[]}]`)
	w.key("securityDefinitions")
	w.bearerToken()
	w.field("swagger", "2.0")
	w.close('}')
}

// commonParams gives names to the parameters of a document that are referred
// to. A name ends in a hash, since parameters of one name may differ.
func commonParams(d *document) map[parameter]string {
	common := map[parameter]string{}
	add := func(params []parameter) {
		for _, p := range params {
			if _, known := common[p]; !known && !p.inline() {
				sum := sha256.Sum256([]byte(p.in + "\x00" + p.kind + "\x00" + p.description))
				common[p] = p.name + "-" + base64.RawURLEncoding.EncodeToString(sum[:6])
			}
		}
	}
	for i := range d.paths {
		add(d.paths[i].params)
		for j := range d.paths[i].operations {
			add(d.paths[i].operations[j].params)
		}
	}
	return common
}

func (w *v2Writer) commonParameters() {
	byName := map[string]parameter{}
	for p, name := range w.common {
		byName[name] = p
	}
	w.open('{')
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		w.key(name)
		w.parameter(byName[name])
	}
	w.close('}')
}

// model writes a model. Version 2 lets a description stand beside a reference.
// Defaults are left out, as clients of version 2 would send them.
func (w *v2Writer) model(m *model, gvks string) {
	w.open('{')
	w.keywords(m)
	if m.ref != "" {
		w.ref("definitions", m.ref)
	}
	if m.values != nil {
		w.key("additionalProperties")
		w.model(m.values, "")
	}
	w.optional("description", m.description)
	if m.enum != nil {
		w.key("enum")
		w.strings(m.enum)
	}
	w.optional("format", m.format)
	if m.items != nil {
		w.key("items")
		w.model(m.items, "")
	}
	w.properties(m)
	w.optional("type", m.kind)
	w.rawField(extGVK, gvks)
	for _, e := range m.extensions {
		w.rawField(e.name, e.json)
	}
	w.close('}')
}

func (w *v2Writer) properties(m *model) {
	if m.properties != nil {
		w.key("properties")
		w.open('{')
		for _, p := range m.properties {
			w.key(p.name)
			w.model(p.model, "")
		}
		w.close('}')
	}
	if m.required != nil {
		w.key("required")
		w.strings(m.required)
	}
}

// ref writes the key and value of a reference.
func (w *v2Writer) ref(part, name string) {
	w.key("$ref")
	w.b = append(w.b, `"#/`...)
	w.b = append(w.b, part...)
	w.b = append(w.b, '/')
	w.b = append(w.b, name...)
	w.b = append(w.b, '"')
}

func (w *v2Writer) path(p *path) {
	w.open('{')
	written := p.params == nil
	for i := range p.operations {
		op := &p.operations[i]
		if !written && op.method > "parameters" {
			w.parameters(nil, p.params)
			written = true
		}
		w.key(op.method)
		w.operation(op)
	}
	if !written {
		w.parameters(nil, p.params)
	}
	w.close('}')
}

func (w *v2Writer) operation(op *operation) {
	w.open('{')
	w.key("consumes")
	w.strings(op.consumes())
	w.field("description", op.description)
	w.field("operationId", op.id)
	if op.body != nil || len(op.params) > 0 {
		w.parameters(op.body, op.params)
	}
	w.key("produces")
	w.strings(op.produces)
	w.responses(op)
	w.rawField("schemes", `["https"]`)
	w.tags(op)
	w.close('}')
}

// consumes returns the media types of the body; version 2 wants some always.
func (op *operation) consumes() []string {
	if op.body == nil {
		return []string{anyMedia}
	}
	return op.body.consumes
}

func (w *v2Writer) responses(op *operation) {
	w.key("responses")
	w.open('{')
	for _, r := range op.responses {
		w.key(r.code)
		w.open('{')
		w.field("description", r.description())
		if !r.empty {
			w.key("schema")
			w.open('{')
			if r.model == "" {
				w.field("type", "string")
			} else {
				w.ref("definitions", r.model)
			}
			w.close('}')
		}
		w.close('}')
	}
	w.close('}')
}

func (w *v2Writer) parameters(b *body, params []parameter) {
	w.key("parameters")
	w.open('[')
	w.body(b)
	for _, p := range params {
		name, common := w.common[p]
		if !common {
			w.parameter(p)
			continue
		}
		w.open('{')
		w.ref("parameters", name)
		w.close('}')
	}
	w.close(']')
}

// body writes a body, which version 2 has as a parameter.
func (w *v2Writer) body(b *body) {
	if b == nil {
		return
	}
	w.open('{')
	w.field("in", "body")
	w.field("name", "body")
	if b.required {
		w.rawField("required", "true")
	}
	w.key("schema")
	w.open('{')
	w.ref("definitions", b.model)
	w.close('}')
	w.close('}')
}

func (w *v2Writer) parameter(p parameter) {
	w.open('{')
	w.optional("description", p.description)
	w.field("in", p.in)
	w.field("name", p.name)
	if p.required() {
		w.rawField("required", "true")
	}
	w.field("type", p.kind)
	w.rawField("uniqueItems", "true")
	w.close('}')
}
