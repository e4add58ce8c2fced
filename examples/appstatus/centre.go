package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/cache"
	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/informer"
	"github.com/even-keel/evenkeel/workqueue"
)

type object = *unstructured.Unstructured

// centre keeps a table for each application.
//
// Each kind has an informer of its own, of objects that have the label. Its handler
// queues the application of what changed; a worker then reads that application from
// the caches of all kinds, at one point in time, and shows it. So a hundred changes
// of an application are one new table, and a kind that comes or goes changes nothing
// but the tables of the applications that have objects of it.
type centre struct {
	conn   *client.Conn
	set    *informer.Set
	opts   options
	apps   *workqueue.Queue[string]
	screen *screen

	mu    sync.Mutex
	kinds map[string]*informer.Informer[object] // by the name that was given
}

// settle is how long a change waits for others of the same application.
const settle = 20 * time.Millisecond

func newCentre(conn *client.Conn, set *informer.Set, o options, s *screen) *centre {
	return &centre{
		conn: conn, set: set, opts: o, screen: s, kinds: map[string]*informer.Informer[object]{},
		apps: workqueue.New(workqueue.Options[string]{Debounce: settle}),
	}
}

// add begins to watch a kind.
func (c *centre) add(ctx context.Context, name string) error {
	resource, err := c.find(ctx, name)
	if err != nil {
		return err
	}
	c.watch(name, resource)
	return nil
}

func (c *centre) watch(name string, resource schema.GroupVersionResource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kinds[name] != nil {
		return
	}
	in := informer.For[object](c.set, informer.Resource(resource), informer.Labels(c.opts.label), informer.InNamespace(c.opts.namespace))
	in.Handle(func(d informer.Delta[object]) {
		if old := d.Old(); old != nil { // it may have been another's
			c.apps.Add(old.GetLabels()[c.opts.label])
		}
		c.apps.Add(d.Object().GetLabels()[c.opts.label])
	})
	c.kinds[name] = in
}

// remove ends the watch of a kind, and has the tables that it is in drawn anew.
func (c *centre) remove(name string) error {
	c.mu.Lock()
	in := c.kinds[name]
	delete(c.kinds, name)
	c.mu.Unlock()
	if in == nil {
		return fmt.Errorf("%s is not watched; %q tells what is", name, "kinds")
	}
	in.Close()
	for o := range in.List() { // caches stay readable
		c.apps.Add(o.GetLabels()[c.opts.label])
	}
	return nil
}

var isVersion = regexp.MustCompile(`^v\d+((alpha|beta)\d+)?$`)

// find finds the resource that a name stands for: pods, deployments.apps, or with a
// version, deployments.v1.apps. Without one, the server's favourite is taken.
func (c *centre) find(ctx context.Context, name string) (schema.GroupVersionResource, error) {
	full, short := schema.ParseResourceArg(name)
	if full != nil && isVersion.MatchString(full.Version) {
		return *full, nil // which may not exist yet: the informer waits for it
	}
	if short.Group == "" {
		return c.served(ctx, short.WithVersion("v1"))
	}
	var group metav1.APIGroup
	raw, err := c.conn.Get(ctx, "/apis/"+short.Group)
	if err == nil {
		err = json.Unmarshal(raw, &group)
	}
	if client.IsNotFound(err) {
		return schema.GroupVersionResource{}, fmt.Errorf("the server has no group %s yet; to wait for it, say the version too, as in %s.v1.%s", short.Group, short.Resource, short.Group)
	}
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	return c.served(ctx, short.WithVersion(group.PreferredVersion.Version))
}

// served returns the resource if there is one.
func (c *centre) served(ctx context.Context, r schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	_, err := c.conn.ResolveResource(ctx, r)
	if client.IsNoKind(err) {
		err = fmt.Errorf("the server has no %s in %s; kinds are named as in pods or deployments.apps", r.Resource, r.GroupVersion())
	}
	return r, err
}

// row is one object of a table.
type row struct {
	Kind, Namespace, Name string
	State                 state
}

func (r row) key() string { return r.Kind + " " + r.Namespace + "/" + r.Name }

// table reads an application from all caches, at one point in time.
func (c *centre) table(app string) []row {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.set.View()
	var rows []row
	for _, in := range c.kinds {
		for o := range in.At(now).List(cache.Label(c.opts.label, app)) {
			rows = append(rows, row{o.GetKind(), o.GetNamespace(), o.GetName(), stateOf(o)})
		}
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.key(), b.key()) })
	return rows
}

// work shows applications that changed, until the context ends.
func (c *centre) work(ctx context.Context) {
	for item := range c.apps.Items(ctx) {
		c.screen.show(item.Key, c.table(item.Key))
	}
}

// report is how the watch of each kind is.
func (c *centre) report() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(c.kinds)) {
		st := c.kinds[name].Status()
		how := fmt.Sprintf("%d objects", st.Objects)
		switch {
		case client.IsNoKind(st.Err):
			how = "waiting for the kind to exist"
		case st.Err != nil:
			how = st.Err.Error()
		case !st.Synced:
			how = "not read yet"
		}
		fmt.Fprintf(&b, "%-40s %s\n", name, how)
	}
	return b.String()
}

// errQuit ends the program.
var errQuit = errors.New("quit")

// do carries a command out, and returns what it has to say.
func (c *centre) do(ctx context.Context, line string) (string, error) {
	words := strings.Fields(line)
	switch {
	case len(words) == 0:
		return "", nil
	case words[0] == "add" && len(words) == 2:
		return "", c.add(ctx, words[1])
	case words[0] == "remove" && len(words) == 2:
		return "", c.remove(words[1])
	case line == "kinds":
		return c.report(), nil
	case line == "tables":
		return c.screen.tables(), nil
	case line == "quit":
		return "", errQuit
	}
	return "", fmt.Errorf("%q is no command: add KIND, remove KIND, kinds, tables, quit", line)
}
