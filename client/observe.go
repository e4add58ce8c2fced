package client

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/types"
)

// Call is one request that a connection sent, and what became of it.
type Call struct {
	// Verb is get, list, watch, create, update, patch, apply, delete or
	// deletecollection. Method is that of HTTP, and Host whom it was sent to.
	Verb, Method, Host string
	// Path is what was asked for, without the server's own path and the query.
	Path string
	// Resource is what the request was about; it is zero for paths that are no
	// resource, such as those of discovery.
	Resource    Resource
	Subresource string
	// Key is of the object, as far as it is known: lists have no name, and what the
	// server was to name has the name that it got.
	Key Key
	// Attempt is 0 at first, and counts the repetitions of what was sent again.
	Attempt int
	// Start is when the request was sent, after any waiting for a turn; Duration
	// is how long it took.
	Start    time.Time
	Duration time.Duration
	// Code is that of the answer; 0 if there was none.
	Code int
	// Err is why the request failed.
	Err error
	// Revision is the resourceVersion in the answer to a write of one object, "" if
	// it tells none. A write that changed nothing tells the one that the object had.
	Revision string
	// Base is the revision on which the write was conditional, "" if it was not: a
	// write whose Revision is another was done, and on just that state.
	Base string
}

// Observe has f called for each request that the connection sends: once for each
// time that it is sent, by the goroutine that sent it, and before the method that
// wanted it returns or sends again. An answer that is an object has been read by
// then, or failed to be. Lists (each page), watches and streams are told of when
// their answer begins. Several are called in the order they are given.
//
// The context is the caller's, or derived from it. f is called concurrently, and
// whoever made the request waits for it.
func Observe(f func(ctx context.Context, call Call)) Option {
	return func(c *Conn) { c.observers = append(c.observers, f) }
}

// begin notes that a request is sent now.
func (c *Conn) begin(r *call) {
	if len(c.observers) > 0 {
		r.sent = time.Now()
	}
}

// observed tells of a request that has ended; body is its answer if that was read.
func (c *Conn) observed(ctx context.Context, r *call, code int, body *body, err error) {
	if len(c.observers) == 0 {
		return
	}
	told := Call{
		Verb: r.verb(), Method: r.method, Host: c.base.Host, Path: r.path,
		Resource: r.of, Subresource: r.sub, Key: Key{Namespace: r.namespace, Name: r.name}, Attempt: r.attempt,
		Start: r.sent, Duration: time.Since(r.sent), Code: code, Err: err,
	}
	if body != nil && r.method != http.MethodGet && told.Verb != "deletecollection" {
		var name string
		name, told.Revision = nameAndRevision(body)
		told.Key.Name = cmp.Or(told.Key.Name, name)
		told.Base = r.base()
	}
	for _, f := range c.observers {
		f(ctx, told)
	}
	r.attempt++
}

// base is the revision in what is written. JSON patches have none.
func (r *call) base() string {
	switch {
	case r.method != http.MethodPut && r.method != http.MethodPatch || r.media == string(types.JSONPatchType):
		return ""
	case r.media == mediaProto:
		_, revision := protoNameAndRevision(r.body)
		return revision
	}
	_, revision := nameAndRevision(&body{bytes: r.body, encoding: JSON})
	return revision
}

// verb is what the request does, as rules of access call it; an apply is told from
// other patches.
func (r *call) verb() string {
	switch r.method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		if r.media == string(types.ApplyPatchType) {
			return "apply"
		}
		return "patch"
	case http.MethodDelete:
		if r.name == "" {
			return "deletecollection"
		}
		return "delete"
	}
	switch {
	case r.query.Get("watch") == "true":
		return "watch"
	case r.name == "" && r.of.Resource != "":
		return "list"
	}
	return "get"
}

// nameAndRevision reads no more of an object than that.
func nameAndRevision(b *body) (name, revision string) {
	if b.encoding == Protobuf {
		return protoNameAndRevision(b.bytes)
	}
	var o struct {
		Metadata struct {
			Name            string `json:"name"`
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if decodeJSON(b.bytes, &o) != nil {
		return "", ""
	}
	return o.Metadata.Name, o.Metadata.ResourceVersion
}

// Where all objects' messages have their metadata, and those what is wanted of it.
const (
	protoMeta     protowire.Number = 1
	protoName     protowire.Number = 1
	protoRevision protowire.Number = 6
)

func protoNameAndRevision(data []byte) (name, revision string) {
	message, kind, err := unwrap(data)
	if err != nil || kind.Kind == "Status" {
		return "", ""
	}
	err = eachField(message, func(field protowire.Number, meta []byte) error {
		if field != protoMeta {
			return nil
		}
		return eachField(meta, func(field protowire.Number, value []byte) error {
			switch field {
			case protoName:
				name = string(value)
			case protoRevision:
				revision = string(value)
			}
			return nil
		})
	})
	if err != nil {
		return "", ""
	}
	return name, revision
}

// stream is send for an answer that is taken while it arrives.
func (c *Conn) stream(ctx context.Context, r *call) (*http.Response, error) {
	resp, err := c.send(ctx, r)
	if err == nil {
		c.observed(ctx, r, resp.StatusCode, nil, nil)
	}
	return resp, err
}
