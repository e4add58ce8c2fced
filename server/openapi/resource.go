package openapi

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/server/kinds"
)

// Resource is a kind in one version, as the documents describe it.
type Resource struct {
	GVK        schema.GroupVersionKind
	Plural     string
	Namespaced bool
	// Verbs are those of discovery: get, list, watch, create, update, patch,
	// delete, deletecollection.
	Verbs []string
	// Object and List are the models of the kind and of its list.
	Object, List Schema
	// ListKind is the kind of the list; "" is that of the objects and "List".
	ListKind string
	// DeleteReturnsObject: DELETE answers with the object instead of a Status.
	DeleteReturnsObject bool
	// JSONOnly: the resource has no protobuf and no strategic merge patch, as
	// custom resources have not.
	JSONOnly bool
	// Fingerprint, if all resources of a group-version have one, stands for what
	// the document of the group-version says of them: its hash can then be had
	// without the document.
	Fingerprint  string
	Subresources []Subresource
}

// listKind returns the kind of the list.
func (r *Resource) listKind() schema.GroupVersionKind {
	return r.GVK.GroupVersion().WithKind(cmp.Or(r.ListKind, r.GVK.Kind+"List"))
}

// Subresource is a path below an object.
type Subresource struct {
	Name   string
	GVK    schema.GroupVersionKind
	Verbs  []string // get, create, update, patch, delete
	Object Schema
	// Connect: requests are no objects but the start of a stream; the fields of
	// Object are its query parameters.
	Connect bool
	// Text: the answer is plain text; the fields of Object are the query
	// parameters, and GVK is of the parent.
	Text bool
}

// Schema is where a model comes from. It is asked when a document is made.
type Schema interface {
	// define adds the model, and all that it refers to, and returns its name.
	define(*models) string
}

// GoType is the Schema of the Go type of an object; create returns a new one.
func GoType(create func() runtime.Object) Schema { return goType(create) }

type goType func() runtime.Object

func (g goType) define(m *models) string { return m.defineType(g.typ()) }

func (g goType) typ() reflect.Type { return reflect.TypeOf(g()).Elem() }

// FromKinds returns the resources of built-in kinds, in all their versions.
func FromKinds(all []*kinds.Kind) []Resource {
	var found []Resource
	for _, k := range all {
		found = append(found, fromKind(k, kinds.Version{GVK: k.GVK, New: k.New, NewList: k.NewList}))
		for _, v := range k.Also {
			found = append(found, fromKind(k, v))
		}
	}
	return found
}

var (
	allVerbs    = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	objectVerbs = []string{"get", "patch", "update"}
)

func fromKind(k *kinds.Kind, v kinds.Version) Resource {
	return Resource{
		GVK:                 v.GVK,
		Plural:              k.Resource,
		Namespaced:          k.Namespaced,
		Verbs:               verbsOf(k),
		Object:              GoType(v.New),
		List:                GoType(v.NewList),
		DeleteReturnsObject: k.DeleteReturnsObject,
		Subresources:        subresourcesOf(k, v),
	}
}

func verbsOf(k *kinds.Kind) []string {
	switch {
	case k.CreateOnly:
		return []string{"create"}
	case k.NoDeleteCollection:
		return slices.DeleteFunc(slices.Clone(allVerbs), func(v string) bool { return v == "deletecollection" })
	}
	return allVerbs
}

func subresourcesOf(k *kinds.Kind, v kinds.Version) []Subresource {
	var found []Subresource
	if k.HasStatus {
		found = append(found, Subresource{Name: "status", GVK: v.GVK, Verbs: objectVerbs, Object: GoType(v.New)})
	}
	if k.Scale != nil {
		found = append(found, Subresource{
			Name: "scale", Verbs: objectVerbs,
			GVK:    autoscalingv1.SchemeGroupVersion.WithKind("Scale"),
			Object: GoType(func() runtime.Object { return &autoscalingv1.Scale{} }),
		})
	}
	for _, s := range k.Subresources {
		if s.GVK == k.GVK {
			s.GVK = v.GVK
		}
		found = append(found, fromSubresource(s))
	}
	return found
}

func fromSubresource(s kinds.Subresource) Subresource {
	made := Subresource{
		Name: s.Name, GVK: s.GVK, Verbs: s.Verbs,
		Connect: strings.HasSuffix(s.GVK.Kind, "Options"),
		Text:    s.Name == "log",
	}
	of := s.GVK
	if made.Text {
		of.Kind = "PodLogOptions"
	}
	made.Object = GoType(func() runtime.Object {
		obj, err := kinds.Scheme().New(of)
		if err != nil {
			panic("openapi: subresource " + s.Name + ": " + err.Error()) // a test makes all documents
		}
		return obj
	})
	return made
}
