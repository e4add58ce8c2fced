package controller

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/cache"
	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/informer"
)

// layerID is what the clients of a layer have in common.
type layerID struct {
	kind schema.GroupVersionKind
	form client.Form
}

// layer answers the reads of a kind's clients from whichever of the base's
// informers has what they ask for, and from none until there is one. Writes are
// told to all.
type layer struct {
	stale bool

	mu     sync.Mutex
	caches atomic.Pointer[[]cached] // replaced under mu
}

// cached is an [informer.Layer] of any type.
type cached interface {
	client.Layer
	Covers(namespace string) (covers, whole bool)
	Has(o client.ReadOptions) bool
	WaitForRevision(ctx context.Context, r cache.Revision) error
}

func (l *layer) all() []cached {
	if caches := l.caches.Load(); caches != nil {
		return *caches
	}
	return nil
}

// Get asks the cache that has the namespace whole. One with selectors may have the
// object; that it has not says nothing, and the server is asked.
func (l *layer) Get(ctx context.Context, key client.Key) (client.Object, error) {
	var partial cached
	for _, c := range l.all() {
		switch covers, whole := c.Covers(key.Namespace); {
		case whole:
			return c.Get(ctx, key)
		case covers && partial == nil:
			partial = c
		}
	}
	if partial == nil {
		return nil, client.ErrUncached
	}
	obj, err := partial.Get(ctx, key)
	if client.IsNotFound(err) {
		err = client.ErrUncached
	}
	return obj, err
}

// List asks a cache that has all that is asked for. A list of all namespaces is of
// those of the cache, if it is made for some.
func (l *layer) List(ctx context.Context, o client.ReadOptions) iter.Seq2[client.Object, error] {
	var some cached
	for _, c := range l.all() {
		if c.Has(o) {
			return c.List(ctx, o)
		}
		if covers, _ := c.Covers(""); o.Namespace == "" && !covers && some == nil {
			some = c
		}
	}
	if some != nil {
		return some.List(ctx, o)
	}
	return func(yield func(client.Object, error) bool) { yield(nil, client.ErrUncached) }
}

func (l *layer) Wrote(w client.Write) {
	if l.stale {
		return
	}
	for _, c := range l.all() {
		c.Wrote(w)
	}
}

// behindFor is how long a cache may take to see what another has told.
const behindFor = 10 * time.Second

// catchUp waits until all that has a namespace of a kind has seen a revision. Caches of
// one kind, such as of all pods and of a node's, are not equally fast: what a reconcile
// reads must not be older than what caused it.
func (b *Base) catchUp(ctx context.Context, kind schema.GroupVersionKind, namespace string, r cache.Revision) error {
	caches := b.caches(kind)
	if len(caches) < 2 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, behindFor)
	defer cancel()
	for _, c := range caches {
		if _, whole := c.Covers(namespace); !whole {
			continue // it may never hear of it
		}
		if err := c.WaitForRevision(ctx, r); err != nil {
			return fmt.Errorf("a cache of %s is behind another: %w", kind.Kind, err)
		}
	}
	return nil
}

// caches are those of a kind, in all forms.
func (b *Base) caches(kind schema.GroupVersionKind) (all []cached) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, l := range b.layers {
		if id.kind == kind {
			all = append(all, l.all()...)
		}
	}
	return all
}

// layerOver puts an informer's cache behind a layer, and returns the layer of that
// cache, which is another's if it has the same cache.
func layerOver[T client.Object](l *layer, in *informer.Informer[T]) *informer.Layer[T] {
	l.mu.Lock()
	defer l.mu.Unlock()
	made := informer.NewLayer(in)
	for _, c := range l.all() {
		if same, ok := c.(*informer.Layer[T]); ok && same.Shares(made) {
			return same
		}
	}
	all := append(slices.Clone(l.all()), made)
	l.caches.Store(&all)
	return made
}

// kindOf returns the kind of T's objects, which is empty if nothing tells it.
func kindOf[T client.Object](conn *client.Conn, opts []client.KindOption) layerID {
	c := client.Of[T](conn, opts...)
	return layerID{c.Kind(), c.Form()}
}

// WaitFor waits until the cache of a kind has seen what was written at a revision,
// as an object of the kind or a list of it told. It returns at once for kinds that
// are not cached: these are read from the server. Who wrote it by a client of the
// base need not wait.
func WaitFor[T client.Object](ctx context.Context, b *Base, revision cache.Revision, kind ...client.KindOption) error {
	for _, c := range b.layer(kindOf[T](b.conn, kind)).all() {
		if l, ok := c.(*informer.Layer[T]); ok {
			if err := l.Informer().WaitForRevision(ctx, revision); err != nil {
				return err
			}
		}
	}
	return nil
}
