package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
)

// Subresource reads and writes a part or an action of objects of one kind. Make
// one with [Sub], or with [Client.Status].
type Subresource[S Object] struct {
	name string
	// call makes a request to the subresource of an object.
	call  func(ctx context.Context, method string, key Key, query url.Values) (*call, error)
	conn  *Conn
	codec *codec[S]
	err   error
	wrote func(Key, S)
}

// Sub returns a subresource of a client's objects; S is what it takes and returns:
//
//	scales := client.Sub[*autoscalingv1.Scale](deployments, "scale")
//	tokens := client.Sub[*authenticationv1.TokenRequest](accounts, "token")
//	evict := client.Sub[*policyv1.Eviction](pods, "eviction")
//	bind := client.Sub[*corev1.Binding](pods, "binding")
func Sub[S, T Object](c *Client[T], name string) *Subresource[S] {
	t := newTarget[S](c.conn, nil)
	if t.form != Typed {
		t.err = nil // it comes as it is
	}
	return &Subresource[S]{
		name: name, conn: c.conn, codec: newCodec[S](c.conn, t.kind), err: t.err,
		call: func(ctx context.Context, method string, key Key, query url.Values) (*call, error) {
			return c.object(ctx, method, key, name, query)
		},
	}
}

// Status returns the status of the client's objects as a subresource: for a patch
// or an apply of it. For an update, see [Client.UpdateStatus].
func (c *Client[T]) Status() *Subresource[T] {
	return &Subresource[T]{
		name: "status", conn: c.conn, codec: c.codec, err: c.target.err,
		call: func(ctx context.Context, method string, key Key, query url.Values) (*call, error) {
			return c.object(ctx, method, key, "status", query)
		},
		wrote: func(key Key, obj T) {
			if c.layer != nil {
				c.layer.Wrote(Write{Key: key, Object: obj})
			}
		},
	}
}

// Get reads the subresource of an object.
func (s *Subresource[S]) Get(ctx context.Context, key Key) (S, error) {
	return s.do(ctx, http.MethodGet, key, url.Values{}, nil)
}

// Create posts to the subresource of an object, and returns what came of it. Where
// the server answers with no more than that it is done, that is the zero value.
func (s *Subresource[S]) Create(ctx context.Context, key Key, obj S, opts ...WriteOption) (S, error) {
	return s.do(ctx, http.MethodPost, key, s.conn.writeQuery(opts), func(r *call) (err error) {
		r.body, r.media, err = s.codec.encode(obj)
		return err
	})
}

// Update replaces the subresource of an object.
func (s *Subresource[S]) Update(ctx context.Context, key Key, obj S, opts ...WriteOption) (S, error) {
	return s.do(ctx, http.MethodPut, key, s.conn.writeQuery(opts), func(r *call) (err error) {
		r.body, r.media, err = s.codec.encode(obj)
		return err
	})
}

// Patch changes the subresource of an object; for an apply, give an [ApplyPatch].
func (s *Subresource[S]) Patch(ctx context.Context, key Key, p Patch, opts ...WriteOption) (S, error) {
	return s.do(ctx, http.MethodPatch, key, s.conn.writeQuery(opts), func(r *call) (err error) {
		r.media = string(p.kind)
		r.body, err = p.encode()
		return err
	})
}

// do sends a request; fill gives it its body.
func (s *Subresource[S]) do(ctx context.Context, method string, key Key, query url.Values, fill func(*call) error) (S, error) {
	var none S
	if s.err != nil {
		return none, s.err
	}
	r, err := s.call(ctx, method, key, query)
	if err != nil {
		return none, err
	}
	r.accept = s.codec.accept(false)
	if fill != nil {
		if err := fill(r); err != nil {
			return none, err
		}
	}
	b, err := s.conn.read(ctx, r)
	if err != nil {
		return none, err
	}
	defer b.free()
	if kindIn(b) == "Status" {
		return none, nil
	}
	obj, err := s.codec.answer(b)
	if err == nil && s.wrote != nil && method != http.MethodGet && query.Get("dryRun") == "" {
		s.wrote(KeyOf(obj), obj)
	}
	return obj, err
}

// Stream opens a subresource that is a stream of bytes, such as the log of a pod:
//
//	log, err := pods.Stream(ctx, key, "log", url.Values{"follow": {"true"}})
//
// Close it.
func (c *Client[T]) Stream(ctx context.Context, key Key, sub string, params url.Values) (io.ReadCloser, error) {
	r, err := c.object(ctx, http.MethodGet, key, sub, params)
	if err != nil {
		return nil, err
	}
	r.accept = "*/*"
	resp, err := c.conn.stream(ctx, r)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}
