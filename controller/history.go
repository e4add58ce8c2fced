package controller

import (
	"sync"
	"time"
)

// historySize is how many reconciles a controller remembers.
const historySize = 256

// Reconcile is one that has ended.
type Reconcile struct {
	ID     string  `json:"id"`
	Key    string  `json:"key"`
	Causes []Cause `json:"causes"`
	// Retries is how often in a row the key had failed before.
	Retries int       `json:"retries,omitempty"`
	Started time.Time `json:"started"`
	// Waited is how long the key was ready before, and Took how long it was worked
	// on.
	Waited time.Duration `json:"waited"`
	Took   time.Duration `json:"took"`
	// Result is success, requeue, requeue_after, error or terminal_error.
	Result string  `json:"result"`
	Error  string  `json:"error,omitempty"`
	Writes []Write `json:"writes,omitempty"`
	// MoreWrites is how many there were besides.
	MoreWrites int `json:"moreWrites,omitempty"`
}

func (r *run) entry(took time.Duration, outcome string, err error) Reconcile {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := Reconcile{
		ID: r.ID, Key: r.Key.String(), Causes: r.Causes, Retries: r.Retries, Started: r.started,
		Waited: r.waited, Took: took, Result: outcome, Writes: r.writes, MoreWrites: r.more,
	}
	if err != nil {
		e.Error = err.Error()
	}
	return e
}

// history holds the last reconciles.
type history struct {
	size int

	mu   sync.Mutex
	ring []Reconcile
	next int
}

func (h *history) add(r Reconcile) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.ring) < h.size {
		h.ring = append(h.ring, r)
		return
	}
	h.ring[h.next] = r
	h.next = (h.next + 1) % h.size
}

// newest returns them, the newest first.
func (h *history) newest() []Reconcile {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]Reconcile, 0, len(h.ring))
	for i := range h.ring {
		out = append(out, h.ring[(h.next-1-i+2*len(h.ring))%len(h.ring)])
	}
	return out
}
