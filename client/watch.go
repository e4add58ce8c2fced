package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EventType says what happened to an object.
type EventType string

// The types of events.
const (
	Added    EventType = "ADDED"
	Modified EventType = "MODIFIED"
	Deleted  EventType = "DELETED"
	// Bookmark says that all events up to the object's revision have been sent.
	// Of the object, nothing but its metadata is set.
	Bookmark EventType = "BOOKMARK"

	failed EventType = "ERROR" // which becomes an error
)

// Event is a change of an object, as a watch tells it. The object of a deletion
// is its last state, with the revision of the deletion.
type Event[T Object] struct {
	Type   EventType
	Object T
}

// InitialEnd reports whether this is the bookmark that ends [InitialEvents]: what
// came before is the state at its revision, and what follows are changes.
func (e Event[T]) InitialEnd() bool {
	return e.Type == Bookmark && e.Object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
}

// Watch follows the objects that the options fit, in the server's order. It ends
// without an error when the server ends it, which servers do after a while: go on
// with [From] the last revision. An error ends it too; with one that [IsExpired]
// knows, the server has forgotten that revision, and a list has to come first.
//
//	for event, err := range pods.Watch(ctx, client.From(revision)) {
//
// Watches are the server's, whatever layer there is.
func (c *Client[T]) Watch(ctx context.Context, opts ...ReadOption) iter.Seq2[Event[T], error] {
	return func(yield func(Event[T], error) bool) {
		w, err := c.WatchRaw(ctx, opts...)
		if err != nil {
			yield(Event[T]{}, err)
			return
		}
		defer w.Close()
		var buf []byte
		for {
			buf = buf[:0]
			frame, err := w.Next(&buf)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(Event[T]{}, err)
				return
			}
			obj, err := c.Decode(frame.Object)
			if !yield(Event[T]{frame.Type, obj}, err) || err != nil {
				return
			}
		}
	}
}

// Frame is an event whose object is not decoded.
type Frame struct {
	Type   EventType
	Object Raw
}

// RawWatch is a watch whose events are not decoded. It belongs to one goroutine;
// what it returns may be decoded by others. Close may be called by any.
type RawWatch struct {
	cancel context.CancelFunc
	body   io.ReadCloser
	reader frameReader
	about  string
	failed error
}

// WatchRaw begins a watch for who decodes by itself. Once it returns, the watch
// stands: nothing that happens after is missed. Close it.
func (c *Client[T]) WatchRaw(ctx context.Context, opts ...ReadOption) (*RawWatch, error) {
	o, err := readOptions(c.namespace, opts)
	if err != nil {
		return nil, err
	}
	r, resource, err := c.collection(ctx, http.MethodGet, o.Namespace, o.watchQuery())
	if err != nil {
		return nil, err
	}
	watching, cancel := context.WithCancel(ctx)
	resp, err := c.conn.stream(watching, r)
	if err != nil {
		cancel()
		return nil, c.check(err)
	}
	return &RawWatch{
		cancel: cancel, body: resp.Body, about: resource.Resource,
		reader: newFrameReader(encodingOf(resp), resp.Body),
	}, nil
}

// Next waits for the next event and appends its object to *buf; the frame's bytes
// are a part of it, so that they are good until the caller writes there again.
// When the server ends the watch, it returns [io.EOF]; when the context ends, its
// error, wrapped. An error is final.
func (w *RawWatch) Next(buf *[]byte) (Frame, error) {
	if w.failed != nil {
		return Frame{}, w.failed
	}
	frame, grown, err := w.reader.next(*buf)
	*buf = grown
	if err == nil && frame.Type == failed {
		err = frame.failure()
	}
	switch {
	case err == nil:
		return frame, nil
	case !errors.Is(err, io.EOF):
		err = fmt.Errorf("watch %s: %w", w.about, err)
	}
	w.failed = err
	return Frame{}, err
}

// Close ends the watch; a Next that waits returns.
func (w *RawWatch) Close() {
	w.cancel()
	_ = w.body.Close()
}
