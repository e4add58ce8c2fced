package workqueue

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// maxInbox bounds the adds that wait for the queue's lock. Who finds no room
// takes the lock.
const maxInbox = 128

// inbox takes adds while workers have the queue's lock, so that those who add
// and those who work do not wait for each other: its own lock is held for the
// time of one copy.
//
// Whoever takes the queue's lock empties the inbox first, in the order in which
// adds came. So everything that is done under that lock sees every add that has
// returned, and an inbox cannot be told from none.
type inbox[K comparable] struct {
	any atomic.Bool // there are adds; to be read without the lock

	mu   sync.Mutex
	adds []add[K]
}

// add is a call of AddWith without a delay.
type add[K comparable] struct {
	identity[K]
	at       time.Duration
	priority int
	causes   []Cause
}

// put returns false if there is no room.
func (in *inbox[K]) put(id *identity[K], opts *AddOptions, now time.Duration) bool {
	causes := slices.Clone(opts.Causes)
	if !in.mu.TryLock() {
		spinLock(&in.mu)
	}
	n := len(in.adds)
	if n == maxInbox {
		in.mu.Unlock()
		return false
	}
	if n == cap(in.adds) {
		in.adds = slices.Grow(in.adds, 1)
	}
	in.adds = in.adds[:n+1]
	a := &in.adds[n]
	a.identity, a.at, a.priority, a.causes = *id, now, opts.Priority, causes
	if n == 0 {
		in.any.Store(true)
	}
	in.mu.Unlock()
	return true
}

// take returns what is in the inbox, and leaves it an empty list to fill.
func (in *inbox[K]) take(empty []add[K]) []add[K] {
	spinLock(&in.mu)
	adds := in.adds
	in.adds = empty
	in.any.Store(false)
	in.mu.Unlock()
	return adds
}

// spins is how often a lock is tried before the goroutine is put to sleep: for
// some three microseconds, which is longer than the queue holds one.
const spins = 100

// spinLock takes a lock that is held for short times only. A sync.Mutex that is
// contended looks again after a microsecond or more, and soon puts the goroutine
// to sleep; to wake it costs the one who unlocks more than the work that the lock
// is for. Docs/adr/0014 has the figures.
func spinLock(mu *sync.Mutex) {
	for range spins {
		if mu.TryLock() {
			return
		}
		for range 32 {
		}
	}
	mu.Lock()
}

// lock takes the queue's lock and admits what is in the inbox.
func (q *Queue[K]) lock() {
	if !q.mu.TryLock() {
		spinLock(&q.mu)
	}
	if q.inbox.any.Load() {
		q.admitLocked()
	}
}

// release gives the lock up, and wakes a worker if there is a key for it.
//
// From then on q.idle says whether an add has to wake one. A worker that is
// blocked is either seen by those who add after it was set, or sees what they
// have put into the inbox before.
func (q *Queue[K]) release() {
	woken := q.nextWaiterLocked()
	idle := woken == nil && q.waiters.waking == 0 && len(q.waiters.blocked) > 0
	if q.idle.Load() != idle {
		q.idle.Store(idle)
	}
	for idle && q.inbox.any.Load() {
		q.admitLocked()
		if woken = q.nextWaiterLocked(); woken != nil {
			q.idle.Store(false)
			break
		}
	}
	q.mu.Unlock()
	woken.wake()
}

// admitLocked carries out the adds of the inbox.
func (q *Queue[K]) admitLocked() {
	adds := q.inbox.take(q.admitted)
	for i := range adds {
		if a := &adds[i]; !q.shutDown {
			q.addLocked(q.entryLocked(&a.identity), AddOptions{Priority: a.priority, Causes: a.causes}, a.at)
		}
	}
	clear(adds)
	q.admitted = adds[:0]
}
