package openapi

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// target is what an operation with a name is about: the object itself or a
// subresource of it.
type target struct {
	sub   string // "" for the object
	kind  string // the kind that is read and written
	model string
	gvk   schema.GroupVersionKind
}

// of says what is done to what: "the specified Pod", "status of the specified Pod".
func (p *resourcePaths) of(t target) string {
	return prefixed(t.sub, " of ", "the specified "+p.r.GVK.Kind)
}

func prefixed(prefix, between, s string) string {
	if prefix == "" {
		return s
	}
	return prefix + between + s
}

// withArticle is "a Pod", "an Ingress", and for a plural "Endpoints".
func withArticle(kind string) string {
	switch {
	case strings.HasSuffix(kind, "s") && !strings.HasSuffix(kind, "ss"):
		return kind
	case strings.ContainsAny(kind[:1], "AEIOU"):
		return "an " + kind
	}
	return "a " + kind
}

func (p *resourcePaths) listOp(id string, params []parameter) operation {
	op := p.operation("get", "list", id, "list or watch objects of kind "+p.r.GVK.Kind, params, p.params.list)
	if !p.r.JSONOnly {
		op.produces = listMedia
	}
	op.responses = answers(p.list, "200")
	return op
}

func (p *resourcePaths) createOp() operation {
	op := p.operation("post", "post", "create"+p.id("", p.scope, ""), "create "+withArticle(p.r.GVK.Kind),
		p.pathParams(""), p.params.create)
	op.body = &body{model: p.object, required: true, consumes: p.bodyMedia()}
	op.responses = answers(p.object, "200", "201", "202")
	return op
}

func (p *resourcePaths) deleteCollectionOp() operation {
	op := p.operation("delete", "deletecollection", "delete"+p.id("Collection", p.scope, ""),
		"delete collection of "+p.r.GVK.Kind, p.pathParams(""), p.params.deleteCollection)
	op.body = &body{model: defined[metav1.DeleteOptions](p.models), consumes: p.bodyMedia()}
	op.responses = answers(defined[metav1.Status](p.models), "200")
	return op
}

func (p *resourcePaths) getOp(t target) operation {
	op := p.operation("get", "get", "read"+p.id("", p.scope, t.sub), "read "+p.of(t), p.pathParams(t.kind))
	op.gvk = t.gvk
	op.responses = answers(t.model, "200")
	return op
}

func (p *resourcePaths) updateOp(t target) operation {
	op := p.operation("put", "put", "replace"+p.id("", p.scope, t.sub), "replace "+p.of(t),
		p.pathParams(t.kind), p.params.update)
	op.gvk = t.gvk
	op.body = &body{model: t.model, required: true, consumes: p.bodyMedia()}
	op.responses = answers(t.model, "200", "201")
	return op
}

func (p *resourcePaths) patchOp(t target) operation {
	op := p.operation("patch", "patch", "patch"+p.id("", p.scope, t.sub), "partially update "+p.of(t),
		p.pathParams(t.kind), p.params.patch)
	op.gvk = t.gvk
	op.body = &body{model: defined[metav1.Patch](p.models), required: true, consumes: p.media(patchMedia)}
	op.responses = answers(t.model, "200", "201")
	return op
}

func (p *resourcePaths) deleteOp() operation {
	op := p.operation("delete", "delete", "delete"+p.id("", p.scope, ""), "delete "+withArticle(p.r.GVK.Kind),
		p.pathParams(p.r.GVK.Kind), p.params.delete)
	op.body = &body{model: defined[metav1.DeleteOptions](p.models), consumes: p.bodyMedia()}
	returned := p.object
	if !p.r.DeleteReturnsObject {
		returned = defined[metav1.Status](p.models)
	}
	op.responses = answers(returned, "200", "202")
	return op
}

// subresourceOps returns the operations of a subresource.
func (p *resourcePaths) subresourceOps(s *Subresource) []operation {
	switch {
	case s.Connect:
		return p.connectOps(s)
	case s.Text:
		return []operation{p.textOp(s)}
	}
	t := target{sub: s.Name, kind: s.GVK.Kind, model: s.Object.define(p.models), gvk: s.GVK}
	if p.r.JSONOnly { // as in the real server, all operations of a custom resource are of its kind
		t.kind, t.gvk = p.r.GVK.Kind, p.r.GVK
	}
	var ops []operation
	for _, verb := range s.Verbs {
		switch verb {
		case "get":
			ops = append(ops, p.getOp(t))
		case "update":
			ops = append(ops, p.updateOp(t))
		case "patch":
			ops = append(ops, p.patchOp(t))
		case "create":
			ops = append(ops, p.createBelowOp(t))
		}
	}
	return ops
}

func (p *resourcePaths) createBelowOp(t target) operation {
	op := p.operation("post", "post", "create"+p.id("", p.scope, t.sub),
		"create "+t.sub+" of "+withArticle(p.r.GVK.Kind), p.pathParams(t.kind), p.params.create)
	op.gvk = t.gvk
	op.body = &body{model: t.model, required: true, consumes: p.bodyMedia()}
	op.responses = answers(t.model, "200", "201", "202")
	return op
}

// connectOps are the starts of a stream: the answer has no model.
func (p *resourcePaths) connectOps(s *Subresource) []operation {
	var methods []string
	for _, verb := range s.Verbs {
		methods = append(methods, methodOf(verb))
	}
	if s.Name == "proxy" {
		methods = append(methods, "head", "options")
	}
	var ops []operation
	for _, method := range methods {
		op := p.operation(method, "connect", "connect"+p.id(title(method), p.scope, s.Name),
			"connect "+strings.ToUpper(method)+" requests to "+s.Name+" of "+p.r.GVK.Kind,
			p.pathParams(s.GVK.Kind)[1:], optionsOf(s.Object))
		op.gvk = s.GVK
		op.produces = []string{anyMedia}
		op.responses = answers("", "200")
		ops = append(ops, op)
	}
	return ops
}

// proxiedOps are those of a proxy for a path behind it.
func (p *resourcePaths) proxiedOps(s *Subresource) []operation {
	ops := p.connectOps(s)
	for i := range ops {
		ops[i].id += "WithPath"
		ops[i].params = sortParams(append(ops[i].params, proxiedPath))
	}
	return ops
}

func methodOf(verb string) string {
	switch verb {
	case "create":
		return "post"
	case "update":
		return "put"
	}
	return verb
}

func (p *resourcePaths) textOp(s *Subresource) operation {
	t := target{sub: s.Name, kind: s.GVK.Kind, gvk: s.GVK}
	op := p.getOp(t)
	op.params = sortParams(append(op.params, optionsOf(s.Object)...))
	op.produces = []string{jsonMedia, protobufMedia, yamlMedia, "text/plain"}
	return op
}

// optionsOf returns the fields of an object as query parameters.
func optionsOf(s Schema) []parameter {
	if g, ok := s.(goType); ok {
		return queryParams(g.typ())
	}
	return nil
}
