package rest

import (
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/server/custom"
	"github.com/even-keel/evenkeel/server/kinds"
	"github.com/even-keel/evenkeel/server/patch"
	"github.com/even-keel/evenkeel/server/watch"
)

// resource is a kind in one of the versions that it is served in.
type resource struct {
	kind *kinds.Kind
	// version is nil for the stored one.
	version *kinds.Version
	gvk     schema.GroupVersionKind
	objects *watch.Resource
	storage string

	// custom is set for custom resources, whose kind is one of a version.
	custom *custom.Version
	// types are those of a custom resource in all its versions.
	types func() *patch.Types
	// watches are those that end with the resource.
	watches *watches

	// jsonStart is how the JSON of every object of this version begins.
	jsonStart []byte
	fields    func(subresource string) *patch.Fields
}

// registry finds resources by where they are served.
type registry struct {
	mu        sync.RWMutex
	versions  map[schema.GroupVersion]map[string]*resource
	resources []*resource
}

func storageName(gr schema.GroupResource) string { return gr.String() }

func (g *registry) add(r *resource) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.addLocked(r)
}

func (g *registry) addLocked(r *resource) {
	gv := r.gvk.GroupVersion()
	if g.versions[gv] == nil {
		g.versions[gv] = map[string]*resource{}
	}
	g.versions[gv][r.kind.Resource] = r
	g.resources = append(g.resources, r)
}

// replace puts the versions of a custom resource in place of those that it had,
// whose watches end before: what the new versions write is not shown as the old
// ones would have it.
func (g *registry) replace(storageName string, with []*resource) (gone []*resource) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var kept []*resource
	for _, r := range g.resources {
		if r.custom == nil || r.storage != storageName {
			kept = append(kept, r)
			continue
		}
		gone = append(gone, r)
		gv := r.gvk.GroupVersion()
		delete(g.versions[gv], r.kind.Resource)
		if len(g.versions[gv]) == 0 {
			delete(g.versions, gv)
		}
	}
	g.resources = kept
	for _, r := range gone {
		r.watches.end(r.objects.Snapshot().Revision)
	}
	for _, r := range with {
		g.addLocked(r)
	}
	return gone
}

// find returns the resource; known says that at least its version is served.
func (g *registry) find(gv schema.GroupVersion, name string) (r *resource, known bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	byName, known := g.versions[gv]
	return byName[name], known
}

func (g *registry) all() []*resource {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.resources
}

// stored returns the resource of a kind in its stored version.
func (g *registry) stored(group, name string) *resource {
	for _, r := range g.all() {
		if r.version == nil && r.kind.GVK.Group == group && r.kind.Resource == name {
			return r
		}
	}
	return nil
}

func (a *API) register(k *kinds.Kind) {
	name := storageName(k.GroupResource())
	base := resource{kind: k, storage: name, objects: a.hub.Resource(name)}
	first := base
	first.gvk = k.GVK
	a.finish(&first)
	for i := range k.Also {
		r := base
		r.version, r.gvk = &k.Also[i], k.Also[i].GVK
		a.finish(&r)
	}
}

func (a *API) finish(r *resource) {
	apiVersion, kind := r.gvk.ToAPIVersionAndKind()
	r.jsonStart = fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,`, kind, apiVersion)
	r.fields = a.fieldManagers(r)
	a.registry.add(r)
}

// new returns an empty object of the version.
func (r *resource) new() runtime.Object {
	if r.version != nil {
		return r.version.New()
	}
	return r.kind.New()
}

func (r *resource) newList() runtime.Object {
	if r.version != nil {
		return r.version.NewList()
	}
	return r.kind.NewList()
}

// fromStored converts an object into the version; it may share with the given.
func (r *resource) fromStored(obj runtime.Object) (runtime.Object, error) {
	if r.version == nil {
		return obj, nil
	}
	out, err := r.version.FromStored(obj)
	if err != nil {
		return nil, fmt.Errorf("convert %s to %s: %w", r.kind.GVK, r.gvk, err)
	}
	out.GetObjectKind().SetGroupVersionKind(r.gvk)
	return out, nil
}

func (r *resource) toStored(obj runtime.Object) (runtime.Object, error) {
	if r.version == nil {
		return obj, nil
	}
	out, err := r.version.ToStored(obj)
	if err != nil {
		return nil, fmt.Errorf("convert %s to %s: %w", r.gvk, r.kind.GVK, err)
	}
	out.GetObjectKind().SetGroupVersionKind(r.kind.GVK)
	return out, nil
}

func (r *resource) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.gvk.Group, Resource: r.kind.Resource}
}

func (r *resource) groupKind() schema.GroupKind {
	return schema.GroupKind{Group: r.gvk.Group, Kind: r.gvk.Kind}
}

func (r *resource) listKind() string {
	if r.custom != nil {
		return r.custom.ListKind
	}
	return r.gvk.Kind + "List"
}

// kindGroupName is the group as it appears in conversions: "core" for "".
func kindGroupName(group string) string {
	if group == "" {
		return "core"
	}
	name, _, _ := strings.Cut(group, ".")
	return name
}
