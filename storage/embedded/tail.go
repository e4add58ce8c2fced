package embedded

import (
	"sync"

	"github.com/even-keel/evenkeel/storage"
)

// The tail holds at most this much; watchers further behind read the log.
const (
	tailEvents = 4096
	tailBytes  = 2 << 20
)

// tail is the newest events, in memory, and with them the head: the newest
// revision that is durable.
type tail struct {
	mu   sync.RWMutex
	rev  storage.Revision
	size int
	// events end at rev and are dense. Elements are never changed in place, so
	// that readers may keep parts of the slice.
	events []storage.Event
	// newest maps the keys of events to the revisions of their last ones.
	newest map[storage.Key]storage.Revision
	// moved is closed and replaced when the head moves.
	moved chan struct{}
}

func newTail(head storage.Revision) *tail {
	return &tail{rev: head, newest: map[storage.Key]storage.Revision{}, moved: make(chan struct{})}
}

func (t *tail) head() storage.Revision {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.rev
}

// publish moves the head over events, which must follow it densely.
func (t *tail) publish(events []storage.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events = append(t.events, events...)
	for _, e := range events {
		t.size += footprint(e)
		t.newest[e.Key] = e.Revision
	}
	drop := 0
	for len(t.events)-drop > tailEvents || t.size > tailBytes {
		e := t.events[drop]
		t.size -= footprint(e)
		if t.newest[e.Key] == e.Revision {
			delete(t.newest, e.Key)
		}
		drop++
	}
	t.events = t.events[drop:]
	t.rev = events[len(events)-1].Revision
	close(t.moved)
	t.moved = make(chan struct{})
}

// after returns the head, the events after a revision, and a channel that is
// closed when the head moves on. The events are not all there (complete is
// false) if the oldest have left the tail.
func (t *tail) after(rev storage.Revision) (head storage.Revision, events []storage.Event, complete bool, moved <-chan struct{}) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if rev >= t.rev {
		return t.rev, nil, true, t.moved
	}
	missing := t.rev - rev
	if missing > storage.Revision(len(t.events)) {
		return t.rev, nil, false, t.moved
	}
	n := len(t.events)
	return t.rev, t.events[n-int(missing) : n : n], true, t.moved
}

// current returns the key's entry at the head, the zero one if it does not exist.
// ok is false if its last event has left the tail.
func (t *tail) current(key storage.Key) (entry storage.Entry, ok bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	rev, ok := t.newest[key]
	if !ok {
		return storage.Entry{}, false
	}
	return entryAfter(t.events[len(t.events)-1-int(t.rev-rev)]), true
}

// entryAfter is what an event has left of its key.
func entryAfter(e storage.Event) storage.Entry {
	if e.Deleted {
		return storage.Entry{}
	}
	return storage.Entry{Key: e.Key, Value: e.Value, Revision: e.Revision}
}

func footprint(e storage.Event) int {
	const structBytes = 128
	return structBytes + len(e.Key) + len(e.Value) + len(e.Previous.Value)
}
