package rest

import (
	"context"
	"sync"

	"github.com/even-keel/evenkeel/storage"
)

// watches are those of a resource that may end before the server does. A nil one
// is of a resource that does not.
type watches struct {
	mu      sync.Mutex
	over    bool
	last    storage.Revision // that may be told of, when they are over
	next    int
	cancels map[int]context.CancelFunc
}

// enter has a watch cancelled when the resource ends, until leave is called. It
// reports false if that has happened already.
func (w *watches) enter(cancel context.CancelFunc) (leave func(), ok bool) {
	if w == nil {
		return func() {}, true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return func() {}, false
	}
	if w.cancels == nil {
		w.cancels = map[int]context.CancelFunc{}
	}
	id := w.next
	w.next++
	w.cancels[id] = cancel
	return func() { w.leave(id) }, true
}

func (w *watches) leave(id int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.cancels, id)
}

// end cancels all watches; there will be no others. They may still tell what happened
// up to a revision.
func (w *watches) end(at storage.Revision) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over, w.last = true, at
	for _, cancel := range w.cancels {
		cancel()
	}
}

// until is the last revision that watches may tell of, once they are over.
func (w *watches) until() (last storage.Revision, over bool) {
	if w == nil {
		return 0, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last, w.over
}
