package controller

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/trace"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/workqueue"
)

// Write is what a reconcile wrote.
type Write struct {
	Verb string `json:"verb"`
	// Kind is the resource, with its group, and its subresource if that was written.
	Kind   string `json:"kind"`
	Object string `json:"object"`
	// Revision is what the write made, if the server told.
	Revision string `json:"revision,omitempty"`
	// Error is why it failed.
	Error string `json:"error,omitempty"`
}

// maxWrites is how many writes are remembered of one reconcile.
const maxWrites = 32

// maxRevisions is how many revisions are remembered that reconciles wrote.
const maxRevisions = 16384

// writes remembers who wrote the last revisions.
type writes struct {
	mu   sync.Mutex
	by   map[string]written
	ring []string
	next int
}

// written is who wrote a revision.
type written struct {
	controller string
	key        Key
	reconcile  string
	span       trace.SpanContext
	// base is the revision that the write changed, "" for a creation. It is not known
	// of a write that named none: that may have changed nothing, and been answered
	// with a revision that another wrote.
	base  string
	based bool
}

func (w *writes) remember(revision string, by written) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.by == nil {
		w.by = map[string]written{}
	}
	if _, known := w.by[revision]; known {
		return
	}
	if len(w.ring) < maxRevisions {
		w.ring = append(w.ring, revision)
	} else {
		delete(w.by, w.ring[w.next])
		w.ring[w.next] = revision
		w.next = (w.next + 1) % maxRevisions
	}
	w.by[revision] = by
}

func (w *writes) find(revision string) (written, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	by, ok := w.by[revision]
	return by, ok
}

// observe hears of every request of the base's clients.
func (b *Base) observe(ctx context.Context, c client.Call) {
	r := runOf(ctx)
	if r == nil || c.Method == http.MethodGet {
		return
	}
	w := Write{Verb: c.Verb, Kind: c.Resource.GroupResource().String(), Object: c.Key.String(), Revision: c.Revision}
	if c.Subresource != "" {
		w.Kind += "/" + c.Subresource
	}
	if c.Err != nil {
		w.Error = c.Err.Error()
	}
	r.add(w)
	if c.Revision != "" && c.Err == nil {
		b.writes.remember(c.Revision, written{
			controller: r.of.name, key: r.Key, reconcile: r.ID, span: trace.SpanContextFromContext(ctx),
			base: c.Base, based: c.Verb == "create" || c.Base != "" && c.Base != c.Revision,
		})
	}
}

func (r *run) add(w Write) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.writes) == maxWrites {
		r.more++
		return
	}
	r.writes = append(r.writes, w)
}

// wrote reports whether the reconcile wrote something.
func (r *run) wrote() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.writes {
		if w.Error == "" {
			return true
		}
	}
	return false
}

func (r *run) written() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, w := range r.writes {
		out = append(out, fmt.Sprintf("%s %s %s@%s", w.Verb, w.Kind, w.Object, w.Revision))
	}
	return strings.Join(out, "; ")
}

// ownOnly reports whether writes of this controller's reconciles of the key are why
// it is looked at, as far as can be seen, and whether it is sure that there is no
// other reason. Causes are told who wrote.
func (c *Controller) ownOnly(item workqueue.Item[Key]) (own, sure bool) {
	own = len(item.Causes) > 0 && item.LostCauses == 0
	sure = own
	for i, cause := range item.Causes {
		by, ok := c.base.writes.find(cause.New)
		if ok {
			item.Causes[i].Writer = by.reconcile
		}
		own = own && cause.Reason == workqueue.Event && ok && c.wrote(by, item.Key)
		sure = sure && own && c.leads(cause, item.Key)
	}
	return own, sure
}

func (c *Controller) wrote(by written, key Key) bool { return by.controller == c.name && by.key == key }

// leads reports whether an object came from the state in which it was last seen to
// its present one by one's own writes and nothing else: each names the revision that
// it changed, and so they make a chain.
func (c *Controller) leads(cause Cause, key Key) bool {
	at := cause.New
	for range maxWrites {
		by, ok := c.base.writes.find(at)
		if !ok || !by.based || !c.wrote(by, key) {
			return false
		}
		if at = by.base; at == cause.Old {
			return true
		}
	}
	return false
}
