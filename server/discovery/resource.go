package discovery

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/server/kinds"
)

// Resource is a resource in one version, as clients get to see it. A resource
// that is served in several versions is several of them.
type Resource struct {
	GroupVersion schema.GroupVersion
	Kind         string
	// Resource is the plural, Singular the lower-case name.
	Resource, Singular string
	ShortNames         []string
	Categories         []string
	Namespaced         bool
	// Verbs and Subresources are shown in the order given.
	Verbs        []string
	Subresources []Subresource
	// StorageVersionHash tells apart the versions in which objects are stored,
	// see [StorageVersionHash]; empty for what is not stored.
	StorageVersionHash string
	// Custom: the resource is of a CustomResourceDefinition. Its kinds are shown
	// with group and version.
	Custom bool
}

// Subresource is a path below an object of a resource.
type Subresource struct {
	Name string
	// GVK is of the object that is sent or returned.
	GVK   schema.GroupVersionKind
	Verbs []string
}

var (
	allVerbs    = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	changeVerbs = []string{"get", "patch", "update"}
	scaleKind   = schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}
)

// CustomVerbs are the verbs of custom resources, in the order in which clients
// know them.
func CustomVerbs() []string {
	return []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}
}

// TerminatingVerbs are those of custom resources whose definition is being
// deleted.
func TerminatingVerbs() []string {
	return []string{"delete", "deletecollection", "get", "list", "watch"}
}

// StatusSubresource is the one through which an object's status is set.
func StatusSubresource(gvk schema.GroupVersionKind) Subresource {
	return Subresource{Name: "status", GVK: gvk, Verbs: changeVerbs}
}

// ScaleSubresource is the one through which replicas are set.
func ScaleSubresource() Subresource {
	return Subresource{Name: "scale", GVK: scaleKind, Verbs: changeVerbs}
}

// StorageVersionHash is what clients compare to learn that objects of a kind are
// stored in another version than before.
func StorageVersionHash(stored schema.GroupVersionKind) string {
	sum := sha256.Sum256([]byte(stored.Group + "/" + stored.Version + "/" + stored.Kind))
	return base64.StdEncoding.EncodeToString(sum[:8])
}

// FromKinds returns the resources of built-in kinds, in all their versions.
func FromKinds(all []*kinds.Kind) []Resource {
	var resources []Resource
	for _, k := range all {
		resources = append(resources, fromKind(k, k.GVK))
		for _, v := range k.Also {
			resources = append(resources, fromKind(k, v.GVK))
		}
	}
	return resources
}

func fromKind(k *kinds.Kind, gvk schema.GroupVersionKind) Resource {
	r := Resource{
		GroupVersion: gvk.GroupVersion(),
		Kind:         gvk.Kind,
		Resource:     k.Resource,
		Singular:     k.Singular,
		ShortNames:   k.ShortNames,
		Categories:   k.Categories,
		Namespaced:   k.Namespaced,
		Verbs:        verbsOf(k),
		Subresources: subresourcesOf(k, gvk),
	}
	if !k.CreateOnly {
		r.StorageVersionHash = StorageVersionHash(k.GVK)
	}
	return r
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

// subresourcesOf are sorted by name. One that is about the kind itself is about
// the version asked for.
func subresourcesOf(k *kinds.Kind, gvk schema.GroupVersionKind) []Subresource {
	var subs []Subresource
	if k.HasStatus {
		subs = append(subs, StatusSubresource(gvk))
	}
	if k.Scale != nil {
		subs = append(subs, ScaleSubresource())
	}
	for _, s := range k.Subresources {
		of := s.GVK
		if of == k.GVK {
			of = gvk
		}
		subs = append(subs, Subresource{s.Name, of, slices.Sorted(slices.Values(s.Verbs))})
	}
	slices.SortFunc(subs, func(a, b Subresource) int { return cmp.Compare(a.Name, b.Name) })
	return subs
}
