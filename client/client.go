package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Client reads and writes the objects of one kind. Make one with [Of] or [New];
// it is safe for concurrent use.
//
// Objects that a client returns are the caller's, unless they come from a
// [Layer], whose objects are shared and read-only. They say their kind. Objects
// that are given to a client are not changed; what the server made of them is
// what is returned.
type Client[T Object] struct {
	conn      *Conn
	target    *target
	codec     *codec[T]
	namespace string
	layer     Layer
}

// In returns a client for one namespace: its lists and watches are of that
// namespace, and names without a namespace are in it. "" is all namespaces.
func (c *Client[T]) In(namespace string) *Client[T] {
	in := *c
	in.namespace = namespace
	return &in
}

// Conn returns the connection, which makes clients of other kinds.
func (c *Client[T]) Conn() *Conn { return c.conn }

// Kind returns the kind of the client's objects; it is empty for a client that knows
// no more than a resource.
func (c *Client[T]) Kind() schema.GroupVersionKind { return c.target.kind }

// Form returns what Go type the client's objects have.
func (c *Client[T]) Form() Form { return c.target.form }

// Live returns a client that reads from the server even if c reads from a cache.
// What it writes is not told to the cache.
func (c *Client[T]) Live() *Client[T] {
	live := *c
	live.layer = nil
	return &live
}

// Get reads an object.
func (c *Client[T]) Get(ctx context.Context, key Key, opts ...ReadOption) (T, error) {
	var none T
	if c.layer != nil && len(opts) == 0 {
		if key.Namespace == "" {
			key.Namespace = c.namespace
		}
		switch obj, err := c.layer.Get(ctx, key); {
		case err == nil:
			return cast[T](obj)
		case !errors.Is(err, ErrUncached):
			return none, err
		}
	}
	o, err := readOptions("", opts)
	if err != nil {
		return none, err
	}
	o.Match = "" // which a get has not
	r, err := c.object(ctx, http.MethodGet, key, "", o.listQuery())
	if err != nil {
		return none, err
	}
	return c.exchange(ctx, r)
}

func cast[T Object](obj Object) (T, error) {
	t, ok := obj.(T)
	if !ok {
		return t, fmt.Errorf("the cache has %T where %T is wanted", obj, t)
	}
	return t, nil
}

// exchange sends a request whose answer is an object.
func (c *Client[T]) exchange(ctx context.Context, r *call) (T, error) {
	b, err := c.conn.read(ctx, r)
	if err != nil {
		var none T
		return none, c.check(err)
	}
	defer b.free()
	return c.codec.answer(b)
}

// write is exchange for what the layer has to know of.
func (c *Client[T]) write(ctx context.Context, r *call) (T, error) {
	obj, err := c.exchange(ctx, r)
	if err == nil && c.layer != nil && r.query.Get("dryRun") == "" {
		c.layer.Wrote(Write{Key: KeyOf(obj), Object: obj})
	}
	return obj, err
}

// Create makes a new object. With a GenerateName and no name, the server names it.
func (c *Client[T]) Create(ctx context.Context, obj T, opts ...WriteOption) (T, error) {
	var none T
	namespace := obj.GetNamespace()
	if namespace == "" {
		namespace = c.namespace
	}
	r, resource, err := c.collection(ctx, http.MethodPost, namespace, c.conn.writeQuery(opts))
	if err != nil {
		return none, err
	}
	if resource.Namespaced && namespace == "" {
		return none, fmt.Errorf("create %s %q: it needs a namespace: %w", resource.Resource, obj.GetName(), ErrScope)
	}
	if r.body, r.media, err = c.codec.encode(obj); err != nil {
		return none, err
	}
	r.name = obj.GetName()
	return c.write(ctx, r)
}

// Update replaces an object. If its resourceVersion is set and somebody has
// written since, nothing is done and [IsConflict] is true of the error.
func (c *Client[T]) Update(ctx context.Context, obj T, opts ...WriteOption) (T, error) {
	return c.update(ctx, obj, "", opts)
}

// UpdateStatus replaces the status of an object, and nothing else of it.
func (c *Client[T]) UpdateStatus(ctx context.Context, obj T, opts ...WriteOption) (T, error) {
	return c.update(ctx, obj, "status", opts)
}

func (c *Client[T]) update(ctx context.Context, obj T, sub string, opts []WriteOption) (T, error) {
	var none T
	r, err := c.object(ctx, http.MethodPut, KeyOf(obj), sub, c.conn.writeQuery(opts))
	if err != nil {
		return none, err
	}
	if r.body, r.media, err = c.codec.encode(obj); err != nil {
		return none, err
	}
	return c.write(ctx, r)
}

// Delete deletes an object. Objects with finalizers, and pods on a node, exist
// beyond it until what has to end has ended.
func (c *Client[T]) Delete(ctx context.Context, key Key, opts ...DeleteOption) error {
	o, err := c.deleteOptions(opts)
	if err != nil {
		return err
	}
	r, err := c.object(ctx, http.MethodDelete, key, "", nil)
	if err != nil {
		return err
	}
	b, err := c.sendDelete(ctx, r, o)
	if err != nil {
		return err
	}
	defer b.free()
	if c.layer == nil || len(o.body.DryRun) > 0 {
		return nil
	}
	if key.Namespace == "" {
		key.Namespace = c.namespace
	}
	c.layer.Wrote(c.deletion(key, o, b))
	return nil
}

// deletion is what an answer tells of a deletion.
func (c *Client[T]) deletion(key Key, o *deleteOptions, b *body) Write {
	w := Write{Key: key, Delete: true}
	if p := o.body.Preconditions; p != nil && p.UID != nil {
		w.UID = *p.UID
	}
	if s, _ := decodeStatus(b.encoding, b.bytes); s != nil {
		if s.Details != nil && s.Details.UID != "" {
			w.UID = s.Details.UID
		}
		return w
	}
	if obj, err := c.codec.answer(b); err == nil {
		w.Object, w.UID = obj, obj.GetUID()
	}
	return w
}

// DeleteCollection deletes the objects of the client's namespace, or all of a
// kind that is not in namespaces, that fit the selections among the options.
// A [Layer] learns of it from the server only.
func (c *Client[T]) DeleteCollection(ctx context.Context, opts ...DeleteOption) error {
	o, err := c.deleteOptions(opts)
	if err != nil {
		return err
	}
	r, resource, err := c.collection(ctx, http.MethodDelete, c.namespace, o.which.selection())
	if err != nil {
		return err
	}
	if resource.Namespaced && c.namespace == "" {
		return fmt.Errorf("delete all %s: it needs a namespace: %w", resource.Resource, ErrScope)
	}
	b, err := c.sendDelete(ctx, r, o)
	if err != nil {
		return err
	}
	b.free()
	return nil
}

func (c *Client[T]) deleteOptions(opts []DeleteOption) (*deleteOptions, error) {
	o := &deleteOptions{body: metav1.DeleteOptions{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}}}
	for _, opt := range opts {
		opt.remove(o)
	}
	return o, o.which.err
}

func (c *Client[T]) sendDelete(ctx context.Context, r *call, o *deleteOptions) (*body, error) {
	var err error
	if r.body, err = json.Marshal(o.body); err != nil {
		return nil, err
	}
	r.media = mediaJSON
	if c.codec.partial {
		r.accept = mediaJSON
	}
	b, err := c.conn.read(ctx, r)
	return b, c.check(err)
}
