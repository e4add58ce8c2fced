package openapi

import (
	"slices"
	"strings"
)

// pathBuilder makes the paths of the resources of one document and adds the
// models that they need.
type pathBuilder struct {
	models *models
	params optionParams
}

func newPathBuilder(m *models) *pathBuilder {
	return &pathBuilder{models: m, params: m.types.params}
}

// resourcePaths are the paths of one resource while they are made.
type resourcePaths struct {
	*pathBuilder
	r           *Resource
	object      string // names of models
	list        string
	root, scope string // "/apis/apps/v1", "Namespaced" or ""
	found       []path
}

// paths returns all paths of a resource.
func (b *pathBuilder) paths(r *Resource) []path {
	p := &resourcePaths{pathBuilder: b, r: r, root: groupRoot(r.GVK.Group, r.GVK.Version)}
	p.object = r.Object.define(b.models)
	if r.Namespaced {
		p.scope = "Namespaced"
	}
	if p.has("list") {
		p.list = r.List.define(b.models)
	}
	p.add(p.within(), p.collectionOps()...)
	if p.has("list") && r.Namespaced {
		p.add(p.root+"/"+r.Plural, p.listOp("list"+p.id("", "", "")+"ForAllNamespaces", []parameter{prettyParam}))
	}
	p.add(p.within()+"/{name}", p.singleOps()...)
	for i := range r.Subresources {
		at, s := p.within()+"/{name}/"+r.Subresources[i].Name, &r.Subresources[i]
		p.add(at, p.subresourceOps(s)...)
		if s.Connect && s.Name == "proxy" {
			p.add(at+"/{path}", p.proxiedOps(s)...)
		}
	}
	return p.found
}

// add adds a path if it has operations.
func (p *resourcePaths) add(at string, operations ...operation) {
	if len(operations) > 0 {
		p.found = append(p.found, newPath(at, operations...))
	}
}

func (p *resourcePaths) has(verb string) bool { return slices.Contains(p.r.Verbs, verb) }

// within is the path of the collection of one namespace, or of the only one.
func (p *resourcePaths) within() string {
	if p.r.Namespaced {
		return p.root + "/namespaces/{namespace}/" + p.r.Plural
	}
	return p.root + "/" + p.r.Plural
}

// collectionOps returns the operations without a name.
func (p *resourcePaths) collectionOps() []operation {
	var ops []operation
	if p.has("list") {
		ops = append(ops, p.listOp("list"+p.id("", p.scope, ""), p.pathParams("")))
	}
	if p.has("create") {
		ops = append(ops, p.createOp())
	}
	if p.has("deletecollection") {
		ops = append(ops, p.deleteCollectionOp())
	}
	return ops
}

// singleOps returns the operations on one object.
func (p *resourcePaths) singleOps() []operation {
	t := target{kind: p.r.GVK.Kind, model: p.object, gvk: p.r.GVK}
	var ops []operation
	if p.has("get") {
		ops = append(ops, p.getOp(t))
	}
	if p.has("update") {
		ops = append(ops, p.updateOp(t))
	}
	if p.has("patch") {
		ops = append(ops, p.patchOp(t))
	}
	if p.has("delete") {
		ops = append(ops, p.deleteOp())
	}
	return ops
}

// id is the id of an operation after its verb: AppsV1, then infix, then
// Namespaced, the kind, and the subresource.
func (p *resourcePaths) id(infix, scope, sub string) string {
	return groupTitle(p.r.GVK.GroupVersion()) + infix + scope + p.r.GVK.Kind + title(sub)
}

// pathParams returns the parameters that stand in a path, and pretty, which all
// operations on objects have. kind is "" for a collection.
func (p *resourcePaths) pathParams(kind string) []parameter {
	params := []parameter{prettyParam}
	if p.r.Namespaced {
		params = append(params, inNamespace)
	}
	if kind != "" {
		params = append(params, nameParam(kind))
	}
	return params
}

func (p *resourcePaths) media(all []string) []string {
	if p.r.JSONOnly {
		return jsonOnly(all)
	}
	return all
}

// bodyMedia are the media types of objects that clients send.
func (p *resourcePaths) bodyMedia() []string {
	if p.r.JSONOnly {
		return jsonOnly(objectMedia)
	}
	return []string{anyMedia}
}

// operation returns an operation of the resource, without body and answers.
func (p *resourcePaths) operation(method, action, id, description string, params ...[]parameter) operation {
	return operation{
		method: method, action: action, id: id, description: description,
		tag:      groupTag(p.r.GVK.Group, p.r.GVK.Version),
		gvk:      p.r.GVK,
		params:   sortParams(slices.Concat(params...)),
		produces: p.media(objectMedia),
	}
}

// groupRoot is the path of a group-version.
func groupRoot(group, version string) string {
	if group == "" {
		return "/api/" + version
	}
	return strings.TrimSuffix("/apis/"+group+"/"+version, "/")
}
