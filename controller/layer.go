package controller

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"

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
}

// covering returns the cache for a namespace, one without selectors if there is.
func (l *layer) covering(namespace string) cached {
	var partial cached
	caches := l.caches.Load()
	if caches == nil {
		return nil
	}
	for _, c := range *caches {
		switch covers, whole := c.Covers(namespace); {
		case whole:
			return c
		case covers && partial == nil:
			partial = c
		}
	}
	return partial
}

func (l *layer) Get(ctx context.Context, key client.Key) (client.Object, error) {
	c := l.covering(key.Namespace)
	if c == nil {
		return nil, client.ErrUncached
	}
	return c.Get(ctx, key)
}

func (l *layer) List(ctx context.Context, o client.ReadOptions) iter.Seq2[client.Object, error] {
	c := l.covering(o.Namespace)
	if caches := l.caches.Load(); c == nil && o.Namespace == "" && caches != nil && len(*caches) > 0 {
		c = (*caches)[0] // of some namespaces, which is what it is made for
	}
	if c == nil {
		return func(yield func(client.Object, error) bool) { yield(nil, client.ErrUncached) }
	}
	return c.List(ctx, o)
}

func (l *layer) Wrote(w client.Write) {
	caches := l.caches.Load()
	if l.stale || caches == nil {
		return
	}
	for _, c := range *caches {
		c.Wrote(w)
	}
}

// layerOver puts an informer's cache behind a layer, and returns the layer of that
// cache, which is another's if it has the same cache.
func layerOver[T client.Object](l *layer, in *informer.Informer[T]) *informer.Layer[T] {
	l.mu.Lock()
	defer l.mu.Unlock()
	made := informer.NewLayer(in)
	var all []cached
	if old := l.caches.Load(); old != nil {
		for _, c := range *old {
			if same, ok := c.(*informer.Layer[T]); ok && same.Shares(made) {
				return same
			}
		}
		all = append(all, *old...)
	}
	all = append(all, made)
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
	caches := b.layer(kindOf[T](b.conn, kind)).caches.Load()
	if caches == nil {
		return nil
	}
	for _, c := range *caches {
		if l, ok := c.(*informer.Layer[T]); ok {
			if err := l.Informer().WaitForRevision(ctx, revision); err != nil {
				return err
			}
		}
	}
	return nil
}
