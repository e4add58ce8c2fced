package openapi

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Docs are the OpenAPI documents of a server. All methods may be called at any
// time.
type Docs struct {
	mu        sync.Mutex
	resources map[schema.GroupVersion][]Resource
	groups    map[string]int    // how many versions each group has
	v3        map[string]*entry // by path, without a leading slash: "apis/apps/v1"
	// Those below are about all group-versions.
	index, v2, v2pb *entry
}

// New returns the documents of resources. None is made yet.
func New(resources []Resource) *Docs {
	d := &Docs{resources: map[schema.GroupVersion][]Resource{}, groups: map[string]int{}, v3: map[string]*entry{}}
	for _, r := range resources {
		gv := r.GVK.GroupVersion()
		d.resources[gv] = append(d.resources[gv], r)
	}
	d.v3["api"] = v3Entry((*documentBuilder).addCore)
	d.v3["apis"] = v3Entry((*documentBuilder).addGroups)
	d.v3["version"] = v3Entry((*documentBuilder).addVersion)
	for gv := range d.resources {
		d.groups[gv.Group]++
		d.resetLocked(gv)
	}
	d.resetAllLocked()
	return d
}

// Update replaces the resources of a group-version; none removes it. Documents
// of other group-versions stay as they are. It takes microseconds, however many
// there are.
func (d *Docs) Update(gv schema.GroupVersion, resources []Resource) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.resources[gv] != nil {
		d.groups[gv.Group]--
	}
	if len(resources) == 0 {
		delete(d.resources, gv)
	} else {
		d.resources[gv] = slices.Clone(resources)
		d.groups[gv.Group]++
	}
	d.resetLocked(gv)
	d.resetAllLocked()
}

// Index returns the document of /openapi/v3: where the others are, with their
// hashes.
func (d *Docs) Index() Document { return d.get(func() *entry { return d.index }).document() }

// V2 returns the document of /openapi/v2 in JSON.
func (d *Docs) V2() Document { return d.get(func() *entry { return d.v2 }).document() }

// V2Proto returns the document of /openapi/v2 in protobuf.
func (d *Docs) V2Proto() Document { return d.get(func() *entry { return d.v2pb }).document() }

// V3 returns the document of /openapi/v3/PATH. The path is that of what it
// describes: "api/v1", "apis/apps/v1", "apis/apps", "version".
func (d *Docs) V3(path string) (Document, bool) {
	e := d.get(func() *entry { return d.v3[path] })
	if e == nil {
		return Document{}, false
	}
	return e.document(), true
}

func (d *Docs) get(choose func() *entry) *entry {
	d.mu.Lock()
	defer d.mu.Unlock()
	return choose()
}

// resetLocked forgets the documents of a group-version.
func (d *Docs) resetLocked(gv schema.GroupVersion) {
	resources, at := d.resources[gv], v3Path(gv)
	if resources == nil {
		delete(d.v3, at)
	} else {
		d.v3[at] = v3Entry(func(b *documentBuilder) { b.addResources(gv, resources) }).fingerprinted(resources)
	}
	if gv.Group == "" {
		return
	}
	group := "apis/" + gv.Group
	switch {
	case d.groups[gv.Group] == 0:
		delete(d.v3, group)
		delete(d.groups, gv.Group)
	case d.v3[group] == nil:
		d.v3[group] = v3Entry(func(b *documentBuilder) { b.addGroup(gv.Group) })
	}
}

// resetAllLocked forgets the documents that are about all group-versions. What
// they are made of is looked up when they are.
func (d *Docs) resetAllLocked() {
	d.index = &entry{write: func(w *jsonWriter, types *typeModels) { writeIndex(w, types, cloned(d, &d.v3)) }}
	d.v2 = &entry{write: func(w *jsonWriter, types *typeModels) { writeV2(w, everything(types, cloned(d, &d.resources))) }}
	d.v2pb = &entry{write: func(w *jsonWriter, types *typeModels) { writeV2Proto(w, everything(types, cloned(d, &d.resources))) }}
}

// cloned returns a copy of a map of d.
func cloned[K comparable, V any](d *Docs, m *map[K]V) map[K]V {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(*m)
}

// everything is the one document of version 2.
func everything(types *typeModels, resources map[schema.GroupVersion][]Resource) *document {
	b := newDocumentBuilder(types)
	b.models.v2 = true
	b.addCore()
	b.addGroups()
	b.addVersion()
	gvs := slices.SortedFunc(maps.Keys(resources), func(a, b schema.GroupVersion) int {
		return strings.Compare(v3Path(a), v3Path(b))
	})
	for i, gv := range gvs {
		b.addResources(gv, resources[gv])
		if gv.Group != "" && (i == 0 || gvs[i-1].Group != gv.Group) {
			b.addGroup(gv.Group)
		}
	}
	return b.done()
}

func v3Path(gv schema.GroupVersion) string { return groupRoot(gv.Group, gv.Version)[1:] }
