package client

import (
	"context"
	"iter"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// Source is where clients come from: a [*Conn], whose clients talk to the server,
// or something before it, such as a manager, whose clients read from its caches.
type Source interface {
	Conn() *Conn
}

// Layered is a [Source] that puts a layer between its clients and the server.
type Layered interface {
	Source
	// Layer returns the layer for the clients of a kind whose objects have a form,
	// or nil for none. It does no I/O. Clients that know no more than a resource
	// have no layer.
	Layer(kind schema.GroupVersionKind, form Form) Layer
}

// Form is what Go type objects have.
type Form uint8

// The forms of objects.
const (
	// Typed objects are of a Go type of their own.
	Typed Form = iota
	// Dynamic objects are *unstructured.Unstructured.
	Dynamic
	// Metadata objects are *metav1.PartialObjectMetadata.
	Metadata
)

// Layer answers the reads of a kind's clients in place of the server, and sees
// what they wrote. Objects that it returns must be of the clients' type.
type Layer interface {
	// Get and List may answer [ErrUncached], List as the first it yields.
	Get(ctx context.Context, key Key) (Object, error)
	List(ctx context.Context, o ReadOptions) iter.Seq2[Object, error]
	// Wrote is called after a write succeeded, and before the client returns.
	Wrote(w Write)
}

// Write is what a client did.
type Write struct {
	Key Key
	// Object is what the server answered: the object as it now is, or as it was
	// when it was deleted. It is nil if the server did not tell.
	Object Object
	// Delete says that it was a deletion. Objects with finalizers, or a time to
	// end, exist beyond it.
	Delete bool
	// UID is that of the object that was deleted, if it is known: by now, another may
	// have its name.
	UID types.UID
}

// KindOption says which kind a client is for, where its type does not.
type KindOption func(*target)

// Kind names the kind of a client's objects. It is needed for unstructured and
// metadata-only clients, and for Go types that do not tell their kind.
func Kind(k schema.GroupVersionKind) KindOption {
	return func(t *target) { t.kind, t.err = k, nil }
}

// OfResource is Kind for who knows the resource, such as "apps/v1, deployments".
func OfResource(r schema.GroupVersionResource) KindOption {
	return func(t *target) { t.resource, t.err = r, nil }
}

// Of returns a client. It sends nothing: a kind that the server does not serve
// makes the client's calls fail, until it does ([IsNoKind]).
//
// T is a pointer to a Go type. Types of k8s.io/api are known; others have a
// method APIKind, or are in the connection's [Scheme], or [Kind] names theirs.
// For *unstructured.Unstructured and *metav1.PartialObjectMetadata, Kind or
// [OfResource] is needed.
func Of[T Object](s Source, opts ...KindOption) *Client[T] {
	conn := s.Conn()
	t := newTarget[T](conn, opts)
	c := &Client[T]{conn: conn, target: t, codec: newCodec[T](conn, t.kind)}
	if l, ok := s.(Layered); ok && t.err == nil && !t.kind.Empty() {
		c.layer = l.Layer(t.kind, t.form)
	}
	return c
}

// New is [Connect] and [Of] in one, for programs that need one kind only.
// Clients of equal configurations share connections all the same, but each looks
// up resources by itself.
func New[T Object](cfg *rest.Config, opts ...Option) (*Client[T], error) {
	conn, err := Connect(cfg, opts...)
	if err != nil {
		return nil, err
	}
	c := Of[T](conn)
	return c, c.target.err
}
