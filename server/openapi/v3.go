package openapi

// The API that the documents describe.
const (
	docTitle   = "Kubernetes"
	docVersion = "unversioned"
)

// v3Writer writes documents of OpenAPI 3.0. A parameter or a reference that
// comes often is written once and then copied.
type v3Writer struct {
	*jsonWriter
	params map[parameter]string
}

// writeV3 writes a document as OpenAPI 3.0. Keys are sorted, but for keywords.
func writeV3(to *jsonWriter, d *document) {
	w := &v3Writer{jsonWriter: to, params: d.models.types.v3Params}
	w.open('{')
	w.key("components")
	w.components(d)
	w.info()
	w.field("openapi", "3.0.0")
	w.key("paths")
	w.open('{')
	for i := range d.paths {
		w.key(d.paths[i].path)
		w.path(&d.paths[i])
	}
	w.close('}')
	w.close('}')
}

func (w *jsonWriter) info() {
	w.key("info")
	w.open('{')
	w.field("title", docTitle)
	w.field("version", docVersion)
	w.close('}')
}

func (w *v3Writer) components(d *document) {
	w.open('{')
	w.key("schemas")
	w.open('{')
	for _, name := range d.names() {
		w.key(name)
		w.namedModel(d.models.byName[name], d.gvks(name))
	}
	w.close('}')
	w.key("securitySchemes")
	w.bearerToken()
	w.close('}')
}

func (w *jsonWriter) bearerToken() {
	w.open('{')
	w.key("BearerToken")
	w.open('{')
	w.field("description", "Bearer token")
	w.field("in", "header")
	w.field("name", "authorization")
	w.field("type", "apiKey")
	w.close('}')
	w.close('}')
}

func (w *v3Writer) ref(name string) {
	w.open('{')
	w.key("$ref")
	w.b = append(w.b, `"#/components/schemas/`...)
	w.b = append(w.b, name...)
	w.b = append(w.b, `"}`...)
}

// model writes a model. A reference may have nothing beside it, so that one
// with a description stands in an allOf of its own.
func (w *v3Writer) model(m *model) {
	if m.ref != "" && m.bare() {
		w.ref(m.ref)
		return
	}
	w.namedModel(m, "")
}

// namedModel writes a model with the kinds that it is of.
func (w *v3Writer) namedModel(m *model, gvks string) {
	w.open('{')
	w.keywords(m)
	if m.values != nil {
		w.key("additionalProperties")
		w.model(m.values)
	}
	if m.ref != "" {
		w.key("allOf")
		w.open('[')
		w.ref(m.ref)
		w.close(']')
	}
	w.rawField("default", m.def)
	w.optional("description", m.description)
	if m.enum != nil {
		w.key("enum")
		w.strings(m.enum)
	}
	w.optional("format", m.format)
	if m.items != nil {
		w.key("items")
		w.model(m.items)
	}
	w.oneOf(m.oneOf)
	w.properties(m)
	if m.oneOf == nil {
		w.optional("type", m.kind)
	}
	w.rawField(extGVK, gvks) // sorts before what a named model may have besides
	for _, e := range m.extensions {
		w.rawField(e.name, e.json)
	}
	w.close('}')
}

func (w *jsonWriter) keywords(m *model) {
	for _, k := range m.keywords {
		w.rawField(k.name, k.json)
	}
}

// bare tells whether a model is a reference and nothing else.
func (m *model) bare() bool {
	return m.description == "" && m.def == "" && m.extensions == nil
}

func (w *v3Writer) oneOf(types []string) {
	if types == nil {
		return
	}
	w.key("oneOf")
	w.open('[')
	for _, t := range types {
		w.open('{')
		w.field("type", t)
		w.close('}')
	}
	w.close(']')
}

func (w *v3Writer) properties(m *model) {
	if m.properties != nil {
		w.key("properties")
		w.open('{')
		for _, p := range m.properties {
			w.key(p.name)
			w.model(p.model)
		}
		w.close('}')
	}
	if m.required != nil {
		w.key("required")
		w.strings(m.required)
	}
}

func (w *v3Writer) path(p *path) {
	w.open('{')
	written := p.params == nil
	for i := range p.operations {
		op := &p.operations[i]
		if !written && op.method > "parameters" {
			w.parameters(p.params)
			written = true
		}
		w.key(op.method)
		w.operation(op)
	}
	if !written {
		w.parameters(p.params)
	}
	w.close('}')
}

func (w *v3Writer) operation(op *operation) {
	w.open('{')
	w.field("description", op.description)
	w.field("operationId", op.id)
	if len(op.params) > 0 {
		w.parameters(op.params)
	}
	w.body(op.body)
	w.responses(op)
	w.tags(op)
	w.close('}')
}

// tags writes the tag and the extensions of an operation.
func (w *jsonWriter) tags(op *operation) {
	w.key("tags")
	w.open('[')
	w.string(op.tag)
	w.close(']')
	if op.action != "" {
		w.field(extAction, op.action)
		w.key(extGVK)
		w.gvk(op.gvk)
	}
}

func (w *v3Writer) body(b *body) {
	if b == nil {
		return
	}
	w.key("requestBody")
	w.open('{')
	w.content(b.consumes, b.model)
	if b.required {
		w.rawField("required", "true")
	}
	w.close('}')
}

func (w *v3Writer) responses(op *operation) {
	w.key("responses")
	w.open('{')
	for _, r := range op.responses {
		w.key(r.code)
		w.open('{')
		if !r.empty {
			w.content(op.produces, r.model)
		}
		w.field("description", r.description())
		w.close('}')
	}
	w.close('}')
}

// content writes a model in several media types; no model is a string.
func (w *v3Writer) content(media []string, model string) {
	w.key("content")
	w.open('{')
	for _, m := range media {
		w.key(m)
		w.open('{')
		w.key("schema")
		if model == "" {
			w.raw(`{"type":"string"}`)
		} else {
			w.ref(model)
		}
		w.close('}')
	}
	w.close('}')
}

func (w *v3Writer) parameters(params []parameter) {
	w.key("parameters")
	w.open('[')
	for _, p := range params {
		if w.params[p] == "" {
			w.params[p] = v3Parameter(p)
		}
		w.raw(w.params[p])
	}
	w.close(']')
}

func v3Parameter(p parameter) string {
	var w jsonWriter
	w.open('{')
	w.optional("description", p.description)
	w.field("in", p.in)
	w.field("name", p.name)
	if p.required() {
		w.rawField("required", "true")
	}
	w.key("schema")
	w.open('{')
	w.field("type", p.kind)
	w.rawField("uniqueItems", "true")
	w.close('}')
	w.close('}')
	return string(w.b)
}
