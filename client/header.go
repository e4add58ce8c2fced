package client

import (
	"context"
	"net/http"
)

// ReconcileHeader is the header by which a write tells the reconcile that made it.
// Our server keeps it with the revision; others ignore it.
const ReconcileHeader = "Evenkeel-Reconcile"

// headerKey is of a context whose writes carry headers.
type headerKey struct{}

// header is one of the headers of a context; next are those that it had before.
type header struct {
	name, value string
	next        *header
}

// WithHeader returns a context whose writes carry a header: all that are made with
// it or with what is derived from it, through whatever client. Reads do not carry
// it. It takes the place of one of the same name; Accept and Content-Type stay the
// client's. A name or value that HTTP cannot carry makes the write fail.
func WithHeader(ctx context.Context, name, value string) context.Context {
	next, _ := ctx.Value(headerKey{}).(*header)
	return context.WithValue(ctx, headerKey{}, &header{name, value, next})
}

// addHeaders sets the headers of a write that its context has.
func addHeaders(ctx context.Context, method string, to http.Header) {
	if method == http.MethodGet {
		return
	}
	h, _ := ctx.Value(headerKey{}).(*header)
	for ; h != nil; h = h.next {
		if to.Get(h.name) == "" { // the newest comes first
			to.Set(h.name, h.value)
		}
	}
}
