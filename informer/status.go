package informer

import (
	"sync"
	"time"

	"github.com/even-keel/evenkeel/cache"
)

// Status says how an informer is.
type Status struct {
	// Kind is what it watches, such as Deployment.apps.
	Kind string
	// Synced says that it has had the whole state once.
	Synced bool
	// Revision is the one up to which the cache is complete.
	Revision cache.Revision
	Objects  int
	// Bytes is the memory that the cache takes, indexes included.
	Bytes    int
	Handlers int
	// Pending is how many keys the slowest handler has yet to be told of.
	Pending int
	// Err is why the informer is not up to date, nil if it is: the first of the
	// errors of its parts, or what is wrong with its options.
	Err   error
	Parts []PartStatus
}

// Phase is what a part of an informer is doing.
type Phase string

// The phases of a part.
const (
	Starting Phase = "starting"
	Listing  Phase = "listing"
	Watching Phase = "watching"
	// Waiting is for the next try, after an error.
	Waiting Phase = "waiting"
)

// PartStatus says how the watch of one selection is.
type PartStatus struct {
	Selection Selection
	Phase     Phase
	// Since is when the phase began, or the first of several failures.
	Since  time.Time
	Synced bool
	// Revision is the last that the server told.
	Revision cache.Revision
	// LastEvent is when the server last sent something.
	LastEvent time.Time
	// Err is why it waits, Failures how often in a row it failed, and Retry when
	// it tries again.
	Err      error
	Failures int
	Retry    time.Time
}

// Failure is why a list or a watch ended. It will be tried again.
type Failure struct {
	Kind      string
	Selection Selection
	Err       error
	// Failures is how often in a row it failed; Wait is how long until it is tried
	// again.
	Failures int
	Wait     time.Duration
}

// board holds what a reflector tells of itself.
type board struct {
	mu     sync.Mutex
	status PartStatus
}

func (b *board) read() PartStatus {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.status
}

// enter begins a phase. Only watching ends an error.
func (b *board) enter(p Phase) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.status.Phase == p {
		return
	}
	b.status.Phase = p
	if p == Watching {
		b.status.Err, b.status.Failures, b.status.Retry = nil, 0, time.Time{}
	}
	if b.status.Err == nil {
		b.status.Since = time.Now()
	}
}

func (b *board) heard(revision string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status.LastEvent = time.Now()
	if revision != "" {
		b.status.Revision = cache.Revision(revision)
	}
}

// fail notes an error, and returns how many there have been in a row.
func (b *board) fail(err error, wait time.Duration) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if b.status.Err == nil {
		b.status.Since = now
	}
	b.status.Phase, b.status.Err, b.status.Retry = Waiting, err, now.Add(wait)
	b.status.Failures++
	return b.status.Failures
}
