package garbage

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/workqueue"
)

var (
	definitions = apiextensionsv1.Resource("customresourcedefinitions")
	definition  = apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")
	// ignored are kinds that own nothing and are many.
	ignored = []schema.GroupResource{corev1.Resource("events"), eventsv1.SchemeGroupVersion.WithResource("events").GroupResource()}
)

// discoverEvery is how often the server is asked what it serves, if no definition
// changes.
const discoverEvery = 30 * time.Second

// follow keeps watching what the server serves until ctx ends.
func (g *graph) follow(ctx context.Context) {
	g.set.Start()
	defer g.set.Shutdown()
	backoff, failures := workqueue.Exponential(50*time.Millisecond, discoverEvery), 0
	for begun := false; ; {
		complete, err := g.discover(ctx)
		if err != nil && ctx.Err() == nil {
			controller.Log(ctx).Warn("cannot find out what the server serves; trying again", "failures", failures+1, "error", err)
		}
		if err == nil && !begun {
			begun = true
			g.begin(ctx)
		}
		wait := discoverEvery
		if !complete {
			failures++
			wait = backoff(failures)
		}
		select {
		case <-ctx.Done():
			return
		case <-g.poked:
			failures = 0
		case <-time.After(wait):
		}
	}
}

// begin waits until what is served at first is in the cache, as far as it comes.
func (g *graph) begin(ctx context.Context) {
	late, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, k := range g.view.Load().watched {
		select {
		case <-k.told.Synced():
		case <-late.Done():
		}
	}
	close(g.ready)
}

// discover asks the server what it serves, and watches that. It reports whether all
// is as it should be: a definition that is not served yet is a reason to ask again.
func (g *graph) discover(ctx context.Context) (complete bool, err error) {
	served, err := g.conn.Served(ctx)
	if err != nil {
		return false, err
	}
	old := g.view.Load()
	now := &view{watched: map[schema.GroupResource]*kind{}, served: map[schema.GroupVersionKind]client.Resource{}, defined: maps.Clone(old.defined)}
	if now.defined == nil {
		now.defined = map[schema.GroupKind]client.Resource{}
	}
	for _, r := range served.Resources {
		now.served[r.GVK()] = r.Resource
		if was := old.watched[r.GroupResource()]; was != nil && was.Resource == r.Resource {
			now.watched[r.GroupResource()] = was
		}
	}
	for gr, k := range old.watched {
		if now.watched[gr] == nil && slices.Contains(served.Stale, k.GroupVersion()) {
			now.watched[gr], now.served[k.GVK()] = k, k.Resource
		}
	}
	g.openMissing(now, served)
	complete = now.addDefined()
	g.view.Store(now)
	for gr, k := range old.watched {
		if now.watched[gr] != k {
			g.close(k)
		}
	}
	return complete, nil
}

// openMissing watches what can be collected, in the version that the server likes
// best.
func (g *graph) openMissing(v *view, served client.Served) {
	for _, r := range served.Resources {
		gr := r.GroupResource()
		if v.watched[gr] == nil && r.Can("list", "watch", "delete") && !slices.Contains(ignored, gr) {
			v.watched[gr] = g.open(r.Resource)
		}
	}
}

// addDefined remembers which kinds definitions define, and reports whether all of
// them are served.
func (v *view) addDefined() bool {
	k := v.watched[definitions]
	if k == nil {
		return true
	}
	complete := true
	for d := range k.in.List() {
		custom := v.watched[schema.ParseGroupResource(d.Name)]
		if custom == nil {
			complete = complete && d.DeletionTimestamp != nil
			continue
		}
		v.defined[custom.GVK().GroupKind()] = custom.Resource
	}
	return complete
}
