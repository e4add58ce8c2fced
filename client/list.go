package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"sync"
)

// List reads the objects that the options fit, in the server's order. They are
// decoded one by one while the answer arrives; with [Chunk], page by page. An
// error ends the iteration. If it is one that [IsExpired] knows, the pages took
// longer than the server remembers, and only a new list helps.
//
// While the loop runs, the server waits for it to take the rest: for a loop that
// takes long, read [Client.All] first, or pages.
func (c *Client[T]) List(ctx context.Context, opts ...ReadOption) iter.Seq2[T, error] {
	if c.layer != nil {
		return c.listLayer(ctx, opts)
	}
	return func(yield func(T, error) bool) {
		var none T
		l, err := c.ListRaw(ctx, opts...)
		if err != nil {
			yield(none, err)
			return
		}
		defer l.Close()
		var buf []byte
		for {
			buf = buf[:0]
			raw, err := l.Next(&buf)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(none, err)
				return
			}
			obj, err := c.Decode(raw)
			if !yield(obj, err) || err != nil {
				return
			}
		}
	}
}

func (c *Client[T]) listLayer(ctx context.Context, opts []ReadOption) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		o, err := readOptions(c.namespace, opts)
		if err != nil {
			yield(none, err)
			return
		}
		for obj, err := range c.layer.List(ctx, o) {
			if errors.Is(err, ErrUncached) {
				c.Live().List(ctx, opts...)(yield)
				return
			}
			if err != nil {
				yield(none, err)
				return
			}
			if t, err := cast[T](obj); !yield(t, err) || err != nil {
				return
			}
		}
	}
}

// All reads the objects that the options fit from the server, and the revision
// at which they were so, from which a watch may go on. If pages expire, it lists
// again in one piece.
func (c *Client[T]) All(ctx context.Context, opts ...ReadOption) (objects []T, revision string, err error) {
	objects, revision, err = c.collect(ctx, opts)
	if IsExpired(err) && len(objects) > 0 {
		return c.collect(ctx, append(opts[:len(opts):len(opts)], Chunk(0)))
	}
	return objects, revision, err
}

func (c *Client[T]) collect(ctx context.Context, opts []ReadOption) ([]T, string, error) {
	l, err := c.ListRaw(ctx, opts...)
	if err != nil {
		return nil, "", err
	}
	defer l.Close()
	var objects []T
	var buf []byte
	for {
		buf = buf[:0]
		raw, err := l.Next(&buf)
		if errors.Is(err, io.EOF) {
			return objects, l.Revision(), nil
		}
		if err != nil {
			return objects, "", err
		}
		obj, err := c.Decode(raw)
		if err != nil {
			return objects, "", err
		}
		objects = append(objects, obj)
	}
}

// RawList is a list whose items are not decoded. It belongs to one goroutine;
// what it returns may be decoded by others. Close may be called by any.
type RawList struct {
	// send asks for the page that call names.
	send   func(*call) (*http.Response, error)
	call   *call
	coding Encoding
	reader listReader // of the current page, or of the last
	failed error
	cancel context.CancelFunc

	mu     sync.Mutex
	body   io.ReadCloser
	closed bool
}

// ListRaw begins a list for who decodes by itself, such as in parallel:
//
//	var buf []byte // one for each item that is still to be decoded
//	raw, err := list.Next(&buf)
//	obj, err := pods.Decode(raw)
//
// The context is that of the whole list. The server answers, whatever layer there
// is. Close it.
func (c *Client[T]) ListRaw(ctx context.Context, opts ...ReadOption) (*RawList, error) {
	o, err := readOptions(c.namespace, opts)
	if err != nil {
		return nil, err
	}
	r, _, err := c.collection(ctx, http.MethodGet, o.Namespace, o.listQuery())
	if err != nil {
		return nil, err
	}
	r.accept = c.codec.accept(true)
	ctx, cancel := context.WithCancel(ctx)
	l := &RawList{call: r, cancel: cancel, send: func(r *call) (*http.Response, error) {
		resp, err := c.conn.stream(ctx, r)
		return resp, c.check(err)
	}}
	if err := l.open(); err != nil {
		cancel()
		return nil, err
	}
	return l, nil
}

// Decode decodes an item of a [RawList] or of a [RawWatch]. It keeps none of the
// bytes, and may be called by many goroutines.
func (c *Client[T]) Decode(raw Raw) (T, error) { return c.codec.decode(raw) }

// open asks for a page.
func (l *RawList) open() error {
	resp, err := l.send(l.call)
	if err != nil {
		return err
	}
	l.coding = encodingOf(resp)
	l.reader = newListReader(l.coding, resp.Body)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.body = resp.Body
	if l.closed {
		return errors.Join(io.ErrClosedPipe, l.body.Close())
	}
	return nil
}

// Next appends the next item to *buf; the item's bytes are a part of it, so that
// they are good until the caller writes there again. After the last item it
// returns [io.EOF]. An error is final.
func (l *RawList) Next(buf *[]byte) (Raw, error) {
	for l.failed == nil {
		start := len(*buf)
		grown, err := l.reader.next(*buf)
		if err == nil {
			*buf = grown
			return Raw{l.coding, grown[start:len(grown):len(grown)]}, nil
		}
		if errors.Is(err, io.EOF) {
			err = l.turn()
		} else {
			err = fmt.Errorf("list %s: %w", l.call.of.GroupResource(), err)
		}
		l.failed = err
	}
	return Raw{}, l.failed
}

// turn goes to the next page; io.EOF if this was the last.
func (l *RawList) turn() error {
	drain(l.body)
	if err := l.body.Close(); err != nil {
		return err
	}
	token := l.reader.about().Continue
	if token == "" {
		l.cancel()
		return io.EOF
	}
	l.call.query.Set("continue", token)
	l.call.query.Del("resourceVersion") // the token has it
	l.call.query.Del("resourceVersionMatch")
	l.call.attempt = 0
	return l.open()
}

// Revision is the one of the state that the list shows: all pages have the same.
// It is known after the last item at the latest.
func (l *RawList) Revision() string { return l.reader.about().ResourceVersion }

// Remaining is how many objects are on pages to come, if the server said so.
func (l *RawList) Remaining() int64 {
	if n := l.reader.about().RemainingItemCount; n != nil {
		return *n
	}
	return 0
}

// Close ends the list, also in the middle; a Next that waits returns.
func (l *RawList) Close() {
	l.cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	_ = l.body.Close()
}
