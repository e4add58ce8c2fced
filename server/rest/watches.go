package rest

import (
	"context"
	"sync"
)

// watches are those of a resource that may end before the server does. A nil one
// is of a resource that does not.
type watches struct {
	mu      sync.Mutex
	over    bool
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

// end cancels all watches; there will be no others.
func (w *watches) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	for _, cancel := range w.cancels {
		cancel()
	}
}
