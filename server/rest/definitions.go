package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/server/custom"
	"github.com/even-keel/evenkeel/server/schema"
	"github.com/even-keel/evenkeel/server/watch"
	"github.com/even-keel/evenkeel/storage"
)

// definitionStorage is what definitions are stored under.
const definitionStorage = "customresourcedefinitions.apiextensions.k8s.io"

// definitions serves what custom resource definitions define. It follows them
// as they are stored, by whichever server: first it serves, then it tells, so
// that who sees a definition established finds its resource.
//
// One goroutine looks at definitions, one writes what they are to be told, and
// one for each definition that is being deleted waits for its objects to go.
type definitions struct {
	api  *API
	pool schema.Pool

	mu     sync.Mutex
	byName map[string]*custom.Definition
}

// LoadDefinitions serves the custom resources that are defined already.
func (a *API) LoadDefinitions() error {
	d := &a.definitions
	var failed error
	d.resource().objects.Snapshot().Scan("", "", func(o *watch.Object) bool {
		def, err := d.read(o)
		if err != nil {
			failed = errors.Join(failed, err)
			return true
		}
		d.hold(def)
		return true
	})
	return failed
}

// RunDefinitions keeps up with definitions until ctx ends. It returns once
// nothing runs any more; that ctx has ended is no error.
func (a *API) RunDefinitions(ctx context.Context) error {
	d := &a.definitions
	var others sync.WaitGroup
	defer others.Wait()
	then := &followUps{
		cleaners: cleaners{definitions: d, group: &others, busy: map[string]bool{}},
		reports:  newReports(d),
	}
	others.Go(func() { then.reports.run(ctx) })
	for ctx.Err() == nil {
		if err := d.follow(ctx, then); err != nil && !errors.Is(err, storage.ErrCompacted) && ctx.Err() == nil {
			return fmt.Errorf("follow custom resource definitions: %w", err)
		}
	}
	return nil
}

// followUps are what a look at a definition can lead to.
type followUps struct {
	cleaners cleaners
	reports  *reports
}

// follow looks at all definitions, and then at each that changes.
func (d *definitions) follow(ctx context.Context, then *followUps) error {
	snapshot := d.resource().objects.Snapshot()
	cursor := d.resource().objects.Watch(snapshot.Revision)
	defer cursor.Close()
	for _, name := range d.names(snapshot) {
		d.look(ctx, name, then)
	}
	for {
		events, err := cursor.Next(ctx)
		if err != nil {
			return err
		}
		for _, e := range events {
			o := e.Object
			if o == nil {
				o = e.Previous
			}
			d.look(ctx, o.Name, then)
		}
	}
}

// names returns the names of all definitions that are stored or served.
func (d *definitions) names(snapshot watch.Snapshot) []string {
	var names []string
	snapshot.Scan("", "", func(o *watch.Object) bool {
		names = append(names, o.Name)
		return true
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	for name := range d.byName {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// look brings a definition, and those that wait for its names, up to date.
func (d *definitions) look(ctx context.Context, name string, then *followUps) {
	group, changed := d.lookAt(ctx, name, then)
	if !changed {
		return
	}
	for _, other := range d.waiting(group, name) {
		d.lookAt(ctx, other, then)
	}
}

// lookAt reports whether the names that are taken in the group have changed.
func (d *definitions) lookAt(ctx context.Context, name string, then *followUps) (group string, changed bool) {
	o := d.resource().objects.Get("", name)
	if o == nil {
		was := d.drop(name)
		if was == nil {
			return "", false
		}
		return was.Spec.Group, true
	}
	def, err := d.read(o)
	if err != nil {
		d.api.log.Error("a custom resource definition cannot be served", "name", name, "error", err)
		return "", false
	}
	if def.Cleans() {
		d.hold(def)
		then.cleaners.start(ctx, def)
		return def.Spec.Group, false
	}
	status, changed := custom.Decide(def, custom.TakenBy(d.others(def)), metav1.NewTime(d.api.now()))
	def.Status = status
	d.hold(def)
	if changed {
		then.reports.put(o, status)
	}
	return def.Spec.Group, changed
}

// ownCall is a request of the server to itself. Nobody hears an answer.
func (a *API) ownCall(ctx context.Context, r *resource, namespace, name string) (*call, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, "/", nil)
	if err != nil {
		return nil, err
	}
	return &call{api: a, r: req, res: r, target: target{namespace: namespace, name: name}}, nil
}

func (d *definitions) resource() *resource {
	return d.api.registry.stored("apiextensions.k8s.io", "customresourcedefinitions")
}

func (d *definitions) read(o *watch.Object) (*custom.Definition, error) {
	return custom.Read(func() []byte { return o.AppendJSON(make([]byte, 0, o.Len())) }, &d.pool, d.api.conversions)
}

// others are the other definitions of a definition's group.
func (d *definitions) others(def *custom.Definition) []*custom.Definition {
	d.mu.Lock()
	defer d.mu.Unlock()
	var found []*custom.Definition
	for name, other := range d.byName {
		if name != def.Metadata.Name && other.Spec.Group == def.Spec.Group {
			found = append(found, other)
		}
	}
	return found
}

// waiting are the definitions of a group that lack some of their names.
func (d *definitions) waiting(group, but string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var found []string
	for name, def := range d.byName {
		if name != but && def.Spec.Group == group && !def.Named() {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// hold remembers a definition, and serves it if it is to be.
func (d *definitions) hold(def *custom.Definition) {
	if def.Served() {
		d.serve(def)
		return
	}
	d.drop(def.Metadata.Name)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.byName[def.Metadata.Name] = def
}

// serve serves what a definition defines, in place of what was served of it.
func (d *definitions) serve(def *custom.Definition) {
	d.mu.Lock()
	was := d.byName[def.Metadata.Name]
	d.byName[def.Metadata.Name] = def
	d.mu.Unlock()
	if was != nil && was.Served() && def.Same(was) {
		if was.Terminating() != def.Terminating() {
			d.api.describeCustom(nil)
		}
		return
	}
	versions := def.Versions()
	types := d.api.customTypes(versions, def.Spec.PreserveUnknownFields)
	var resources []*resource
	for _, v := range versions {
		if r := d.api.customResource(v); r != nil {
			r.types = types
			resources = append(resources, r)
		}
	}
	d.api.replaceCustom(def.Metadata.Name, resources)
}

// drop stops serving a definition, and forgets it.
func (d *definitions) drop(name string) *custom.Definition {
	d.mu.Lock()
	was := d.byName[name]
	delete(d.byName, name)
	d.mu.Unlock()
	if was != nil && was.Served() {
		d.api.replaceCustom(name, nil)
	}
	return was
}

// terminating reports whether a definition is being deleted.
func (d *definitions) terminating(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	def := d.byName[name]
	return def != nil && def.Terminating()
}

// customResource returns what serves a version; nil if none is to, or if the
// server has a kind of its own there.
func (a *API) customResource(v *custom.Version) *resource {
	if !v.Served() {
		return nil
	}
	return a.versionResource(v)
}

// versionResource is customResource for what need not be served.
func (a *API) versionResource(v *custom.Version) *resource {
	if own, _ := a.registry.find(v.Kind.GVK.GroupVersion(), v.Kind.Resource); own != nil && own.custom == nil {
		return nil
	}
	name := v.Definition().Metadata.Name
	r := &resource{
		kind: v.Kind, custom: v, gvk: v.Kind.GVK, storage: name, objects: a.hub.Resource(name), watches: &watches{},
	}
	apiVersion, kind := r.gvk.ToAPIVersionAndKind()
	r.jsonStart = fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,`, apiVersion, kind)
	r.fields = a.fieldManagers(r)
	return r
}

// replaceCustom serves other versions of a custom resource than before. Watches
// end: who watches asks again, and sees what there is now.
func (a *API) replaceCustom(name string, with []*resource) {
	gone := a.registry.replace(name, with)
	a.describeCustom(append(slices.Clone(gone), with...))
}
