package openapi

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/even-keel/evenkeel/server/kinds"
)

var deleteOptionsType = reflect.TypeFor[metav1.DeleteOptions]()

// document is the content of a document before it is written in one of the
// formats.
type document struct {
	models *models
	kinds  map[string][]schema.GroupVersionKind // by the name of a model
	paths  []path                               // sorted
}

// names returns the names of the models, sorted.
func (d *document) names() []string {
	return slices.Sorted(maps.Keys(d.models.byName))
}

// documentBuilder collects what a document says of resources and of the paths
// that list them.
type documentBuilder struct {
	document
	paths *pathBuilder
}

func newDocumentBuilder(types *typeModels) *documentBuilder {
	return &documentBuilder{document: document{
		models: newModels(types),
		kinds:  map[string][]schema.GroupVersionKind{},
	}}
}

// addResources adds all paths of a group-version.
func (b *documentBuilder) addResources(gv schema.GroupVersion, resources []Resource) {
	if b.paths == nil {
		b.paths = newPathBuilder(b.models)
	}
	for i := range resources {
		r := &resources[i]
		b.document.paths = append(b.document.paths, b.paths.paths(r)...)
		b.addKinds(r)
	}
	b.addOptions(gv)
	b.addListing(groupRoot(gv.Group, gv.Version)+"/", "get"+groupTitle(gv)+"APIResources", groupTag(gv.Group, gv.Version),
		"get available resources", reflect.TypeFor[metav1.APIResourceList]())
}

// addOptions says that the options of deletes are of each group-version, as
// their senders name them.
func (b *documentBuilder) addOptions(gv schema.GroupVersion) {
	if name := modelName(deleteOptionsType); b.models.byName[name] != nil {
		b.is(name, metav1.Unversioned.WithKind("DeleteOptions"))
		b.is(name, gv.WithKind("DeleteOptions"))
	}
}

// addKinds says which models are objects of which kind.
func (b *documentBuilder) addKinds(r *Resource) {
	b.is(r.Object.define(b.models), r.GVK)
	if slices.Contains(r.Verbs, "list") {
		b.is(r.List.define(b.models), r.listKind())
	}
	for _, s := range r.Subresources {
		if !s.Connect && !s.Text {
			b.is(s.Object.define(b.models), s.GVK)
		}
	}
}

func (b *documentBuilder) is(name string, gvk schema.GroupVersionKind) {
	if !slices.Contains(b.kinds[name], gvk) {
		b.kinds[name] = append(b.kinds[name], gvk)
	}
}

// addGroup adds the path of a group.
func (b *documentBuilder) addGroup(group string) {
	b.addListing(groupRoot(group, "")+"/", "get"+groupName(group)+"APIGroup", groupTag(group, ""),
		"get information of a group", reflect.TypeFor[metav1.APIGroup]())
}

// addCore adds the path of the versions of the group without a name.
func (b *documentBuilder) addCore() {
	b.addListing("/api/", "getCoreAPIVersions", "core", "get available API versions", reflect.TypeFor[metav1.APIVersions]())
}

// addGroups adds the path of all groups.
func (b *documentBuilder) addGroups() {
	b.addListing("/apis/", "getAPIVersions", "apis", "get available API versions", reflect.TypeFor[metav1.APIGroupList]())
}

// addVersion adds the path of the server's version.
func (b *documentBuilder) addVersion() {
	model := b.models.defineType(reflect.TypeFor[version.Info]())
	b.document.paths = append(b.document.paths, newPath("/version/", operation{
		method: "get", id: "getCodeVersion", tag: "version", description: "get the version of this server",
		produces: []string{jsonMedia}, responses: answers(model, "200"),
	}))
}

// addListing adds a path that tells what is served.
func (b *documentBuilder) addListing(at, id, tag, description string, t reflect.Type) {
	model := b.models.defineType(t)
	b.document.paths = append(b.document.paths, newPath(at, operation{
		method: "get", id: id, tag: tag, description: description,
		produces: objectMedia, responses: answers(model, "200"),
	}))
}

// done returns the document.
func (b *documentBuilder) done() *document {
	for name, m := range b.models.byName {
		if b.kinds[name] == nil && m.object != nil {
			b.addRegistered(name, m.object)
		}
	}
	slices.SortFunc(b.document.paths, func(a, c path) int { return strings.Compare(a.path, c.path) })
	return &b.document
}

// addRegistered says of which kinds a model is that is part of others, as claims
// are of stateful sets.
func (b *documentBuilder) addRegistered(name string, obj runtime.Object) {
	gvks, _, err := kinds.Scheme().ObjectKinds(obj)
	if err != nil {
		return // it is of no kind
	}
	for _, gvk := range gvks {
		b.is(name, gvk)
	}
}

// gvks returns the value of the extension that says of which kinds a model is,
// "" if of none.
func (d *document) gvks(name string) string {
	if d.kinds[name] == nil {
		return ""
	}
	var w jsonWriter
	w.open('[')
	for _, gvk := range d.kinds[name] {
		w.gvk(gvk)
	}
	w.close(']')
	return string(w.b)
}

// gvk writes a kind as an object.
func (w *jsonWriter) gvk(gvk schema.GroupVersionKind) {
	w.open('{')
	w.field("group", gvk.Group)
	w.field("kind", gvk.Kind)
	w.field("version", gvk.Version)
	w.close('}')
}
