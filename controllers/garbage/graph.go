package garbage

import (
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/even-keel/evenkeel/cache"
	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/informer"
)

// object is all that is kept of an object; see slim.
type object = metav1.PartialObjectMetadata

// kind is a kind that is watched.
type kind struct {
	client.Resource
	in      *informer.Informer[*object]
	objects *client.Client[*object] // reads from the server
	told    informer.Registration
}

// The indexes of each kind, by the UIDs of owners: all of them, and those whose
// deletion in the foreground waits for the object.
const (
	ownedIndex  = "owned"
	blocksIndex = "blocks"
)

// graph is who owns whom: the caches of all kinds.
//
// An object that is in a cache may go without an event, if it came and went before
// its handler was told. So nothing relies on the event of an object's end unless it
// is among the nodes, which are those that handlers were told of. Handlers enter an
// object before they tell of it, and take it out before they look for what its end
// concerns; who reads the nodes after it has read the caches misses nothing.
type graph struct {
	conn *client.Conn
	set  *informer.Set
	tell func(controller.Notice)
	view atomic.Pointer[view]
	// ready is closed when what was served at first is in the caches.
	ready chan struct{}
	// poked holds one: definitions have changed.
	poked chan struct{}
	// gone are owners that do not exist, orphaned those of them that were to leave
	// their dependents behind.
	gone, orphaned recent

	mu    sync.Mutex
	nodes map[types.UID]node
}

// view is what the server serves, as it was last told. It does not change.
type view struct {
	watched map[schema.GroupResource]*kind
	served  map[schema.GroupVersionKind]client.Resource
	// defined are the custom kinds that have been watched, also those that are gone.
	defined map[schema.GroupKind]client.Resource
}

type node struct {
	kind *kind
	key  client.Key
}

func newGraph(conn *client.Conn, log *slog.Logger, tell func(controller.Notice)) *graph {
	g := &graph{
		conn: conn, tell: tell, set: informer.NewSet(conn, informer.Config{OnError: func(f informer.Failure) {
			if f.Failures&(f.Failures-1) == 0 {
				log.Warn("cannot watch; trying again", "kind", f.Kind, "failures", f.Failures, "again in", f.Wait, "error", f.Err)
			}
		}}),
		ready: make(chan struct{}), poked: make(chan struct{}, 1), nodes: map[types.UID]node{},
	}
	g.view.Store(&view{})
	return g
}

// open begins to watch a kind.
func (g *graph) open(r client.Resource) *kind {
	k := &kind{Resource: r, objects: client.Of[*object](g.conn, client.Kind(r.GVK()))}
	k.in = informer.For[*object](g.set, informer.Kind(r.GVK()), informer.Transform(slim),
		informer.Index(ownedIndex, func(o *object) []string { return owners(o, false) }),
		informer.Index(blocksIndex, func(o *object) []string { return owners(o, true) }))
	k.told = k.in.Handle(func(d informer.Delta[*object]) { g.heard(k, d) })
	return k
}

// slim keeps what the collector looks at.
func slim(o *object) *object {
	return &object{ObjectMeta: metav1.ObjectMeta{
		Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion,
		OwnerReferences: o.OwnerReferences, Finalizers: o.Finalizers, DeletionTimestamp: o.DeletionTimestamp,
	}}
}

// owners are the UIDs of an object's owners: of all, or of those that it blocks.
func owners(o *object, blocked bool) []string {
	var out []string
	for _, ref := range o.OwnerReferences {
		if !blocked || blocks(ref) {
			out = append(out, string(ref.UID))
		}
	}
	return out
}

func blocks(ref metav1.OwnerReference) bool {
	return ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
}

// close ends the watch of a kind that is not served any more. Who depends on what
// was known of it is looked at again.
func (g *graph) close(k *kind) {
	k.in.Close()
	<-k.told.Done()
	g.mu.Lock()
	var lost []types.UID
	for uid, n := range g.nodes {
		if n.kind == k {
			lost = append(lost, uid)
			delete(g.nodes, uid)
		}
	}
	g.mu.Unlock()
	for _, uid := range lost {
		g.tellDependents(uid, "the kind of its owner is gone")
	}
}

// dependent is an object with an owner.
type dependent struct {
	kind *kind
	*object
}

// dependents yields what an owner has in an index.
func (g *graph) dependents(index string, owner types.UID) iter.Seq[dependent] {
	return func(yield func(dependent) bool) {
		for _, k := range g.view.Load().watched {
			for o := range k.in.List(cache.Index(index, string(owner))) {
				if !yield(dependent{k, o}) {
					return
				}
			}
		}
	}
}

// node returns what handlers were told of an object.
func (g *graph) node(uid types.UID) (node, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n, ok := g.nodes[uid]
	return n, ok
}

// heard is told what becomes of each object.
func (g *graph) heard(k *kind, d informer.Delta[*object]) {
	if k.GroupResource() == definitions {
		g.poke()
	}
	now := d.Object()
	if d.Type == informer.Deleted {
		g.ended(k, now, d.Unknown)
		return
	}
	g.mu.Lock()
	g.nodes[now.UID] = node{k, d.Key}
	g.mu.Unlock()
	var old *object
	if d.Type != informer.Added {
		old = d.Old()
	}
	g.changed(k, old, now)
}

// ended looks at what an object's end concerns: its dependents, and owners that wait
// for it.
func (g *graph) ended(k *kind, o *object, unseen bool) {
	g.mu.Lock()
	delete(g.nodes, o.UID)
	g.mu.Unlock()
	if !unseen && g.owns(o.UID) {
		g.gone.add(claim{k.GVK().GroupKind(), client.KeyOf(o), o.UID})
	}
	g.tellDependents(o.UID, "its owner is gone")
	g.tellOwners(o.OwnerReferences)
}

// changed tells of an object itself, and of those that a change of it concerns. Old
// is nil for one that is new.
func (g *graph) changed(k *kind, old, now *object) {
	if old != nil && !differs(old, now) {
		return
	}
	if old != nil {
		g.tellOwners(old.OwnerReferences) // it may not block them any more
	}
	if foreground(now) && (old == nil || !foreground(old)) {
		g.tellDependents(now.UID, "its owner is deleted in the foreground")
	}
	if len(now.OwnerReferences) > 0 || foreground(now) || orphans(now) {
		g.tell(controller.Notice{Key: keyOf(k, client.KeyOf(now)), Note: "owners or finalizers"})
	}
}

// differs reports whether a change can concern the collector.
func differs(old, now *object) bool {
	return (old.DeletionTimestamp == nil) != (now.DeletionTimestamp == nil) ||
		!slices.Equal(old.Finalizers, now.Finalizers) ||
		!equality.Semantic.DeepEqual(old.OwnerReferences, now.OwnerReferences)
}

// foreground says that an object is deleted in the foreground, orphans that it is
// and its dependents are to stay.
func foreground(o *object) bool {
	return o.DeletionTimestamp != nil && slices.Contains(o.Finalizers, metav1.FinalizerDeleteDependents)
}

func orphans(o *object) bool {
	return o.DeletionTimestamp != nil && slices.Contains(o.Finalizers, metav1.FinalizerOrphanDependents)
}

func (g *graph) owns(uid types.UID) bool {
	for range g.dependents(ownedIndex, uid) {
		return true
	}
	return false
}

func (g *graph) tellDependents(owner types.UID, note string) {
	for d := range g.dependents(ownedIndex, owner) {
		g.tell(controller.Notice{Key: keyOf(d.kind, client.KeyOf(d)), Note: note})
	}
}

// tellOwners tells of owners that wait for their dependents.
func (g *graph) tellOwners(refs []metav1.OwnerReference) {
	for _, ref := range refs {
		n, ok := g.node(ref.UID)
		if !ok {
			continue
		}
		if o, ok := n.kind.in.Get(n.key.Namespace, n.key.Name); ok && o.UID == ref.UID && foreground(o) {
			g.tell(controller.Notice{Key: keyOf(n.kind, n.key), Note: "a dependent is gone"})
		}
	}
}

func (g *graph) poke() {
	select {
	case g.poked <- struct{}{}:
	default:
	}
}

// keyOf is the key of an object in the queue: its name tells the resource too.
func keyOf(k *kind, key client.Key) controller.Key {
	return controller.Key{Namespace: key.Namespace, Name: k.GroupResource().String() + "/" + key.Name}
}

// find returns what a key of the queue is of.
func (g *graph) find(key controller.Key) (*kind, client.Key) {
	resource, name, _ := strings.Cut(key.Name, "/")
	k := g.view.Load().watched[schema.ParseGroupResource(resource)]
	return k, client.Key{Namespace: key.Namespace, Name: name}
}

// patience is how long a kind that cannot be watched is waited for.
const patience = 30 * time.Second

// settled reports whether all kinds are in the cache, but for those that have not
// been to be had for long.
func (g *graph) settled() bool {
	for _, k := range g.view.Load().watched {
		if !k.told.HasSynced() && !k.failing() {
			return false
		}
	}
	return true
}

func (k *kind) failing() bool {
	for _, p := range k.in.Status().Parts {
		if p.Err != nil && time.Since(p.Since) > patience {
			return true
		}
	}
	return false
}
