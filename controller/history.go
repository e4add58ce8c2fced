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

// ended is a reconcile as it is remembered. It is written once for each and read
// when somebody looks, and so is told in words only then.
type ended struct {
	*run
	took    time.Duration
	outcome string
	failed  string // why
}

func (e ended) told() Reconcile {
	e.mu.Lock()
	defer e.mu.Unlock()
	return Reconcile{
		ID: e.ID, Key: e.Key.String(), Causes: e.Causes, Retries: e.Retries, Started: e.started,
		Waited: e.waited, Took: e.took, Result: e.outcome, Error: e.failed, Writes: e.writes, MoreWrites: e.more,
	}
}

// history holds the last reconciles.
type history struct {
	size int

	mu   sync.Mutex
	ring []ended
	next int
}

func (h *history) add(r ended) {
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
		out = append(out, h.ring[(h.next-1-i+2*len(h.ring))%len(h.ring)].told())
	}
	return out
}
