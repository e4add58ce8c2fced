package storagetest

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/even-keel/evenkeel/storage"
)

// ledger has every commit that the store acknowledged.
type ledger struct {
	// closed ends when writing has: nothing is entered any more.
	closed chan struct{}

	mu     sync.Mutex
	events []storage.Event
	last   storage.Revision
	ticks  []chan struct{}
}

func newLedger() *ledger { return &ledger{closed: make(chan struct{})} }

// enter adds an acknowledged write. The value is copied: the caller may reuse it.
func (l *ledger) enter(w storage.Write, result storage.Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, storage.Event{
		Key: w.Key, Revision: result.Revision, Deleted: w.Delete,
		Value: bytes.Clone(w.Value), Previous: result.Previous,
	})
	l.last = max(l.last, result.Revision)
	for _, tick := range l.ticks {
		select {
		case tick <- struct{}{}:
		default:
		}
	}
}

// newest returns the greatest revision that was acknowledged so far.
func (l *ledger) newest() storage.Revision {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// pace returns a channel that ticks as the ledger grows, so that a reader does
// as much as the writers do, and is closed when writing ends.
func (l *ledger) pace() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	tick := make(chan struct{}, 1)
	select {
	case <-l.closed:
		close(tick)
	default:
		l.ticks = append(l.ticks, tick)
	}
	return tick
}

func (l *ledger) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.closed)
	for _, tick := range l.ticks {
		close(tick)
	}
	l.ticks = nil
}

// history returns the ledger in the order of revisions, having checked that
// the acknowledgements make sense together: no revision was given out twice,
// and each write replaced what the one before it left.
func (s *subject) history() history {
	s.t.Helper()
	s.ledger.mu.Lock()
	h := history(slices.Clone(s.ledger.events))
	s.ledger.mu.Unlock()
	if len(h) == len(s.checked) {
		return s.checked
	}
	slices.SortFunc(h, func(a, b storage.Event) int { return cmp.Compare(a.Revision, b.Revision) })

	state := replica{}
	for i, event := range h {
		if i > 0 && event.Revision == h[i-1].Revision {
			s.t.Fatalf("revision %d was given to %q and to %q", event.Revision, h[i-1].Key, event.Key)
		}
		if err := state.apply(event); err != nil {
			s.t.Fatalf("the store's acknowledgements contradict one another: %v", err)
		}
	}
	s.checked = h
	return h
}

// history is all that happened to a store, in order: the naive model.
type history []storage.Event

// state returns what stood at a revision.
func (h history) state(at storage.Revision) replica {
	state := replica{}
	for _, event := range h {
		if event.Revision > at {
			break
		}
		state.set(event)
	}
	return state
}

// events returns what a watcher of prefix sees after one revision, up to and
// with another.
func (h history) events(prefix storage.Key, after, through storage.Revision) []storage.Event {
	var seen []storage.Event
	for _, event := range h {
		if event.Revision > after && event.Revision <= through && hasPrefix(event.Key, prefix) {
			seen = append(seen, event)
		}
	}
	return seen
}

// newest returns the last revision of the history.
func (h history) newest() storage.Revision { return h[len(h)-1].Revision }

// replica is a copy of a store's state, as a client keeps one.
type replica map[storage.Key]storage.Entry

// apply changes the replica by an event that must fit it.
func (r replica) apply(event storage.Event) error {
	if d := diff(r[event.Key], event.Previous); d != "" {
		return fmt.Errorf("event %d of %q replaces something else than stands there (-stands +replaced):\n%s", event.Revision, event.Key, d)
	}
	r.set(event)
	return nil
}

func (r replica) set(event storage.Event) {
	if event.Deleted {
		delete(r, event.Key)
		return
	}
	r[event.Key] = storage.Entry{Key: event.Key, Value: event.Value, Revision: event.Revision}
}

// entries returns what a scan of the range must find, and whether its limit
// leaves some out.
func (r replica) entries(rng storage.Range) (entries []storage.Entry, more bool) {
	for _, key := range slices.Sorted(maps.Keys(r)) {
		if hasPrefix(key, rng.Prefix) && key >= rng.Start {
			entries = append(entries, r[key])
		}
	}
	if rng.Limit > 0 && len(entries) > rng.Limit {
		return entries[:rng.Limit], true
	}
	return entries, false
}

func hasPrefix(key, prefix storage.Key) bool {
	return strings.HasPrefix(string(key), string(prefix))
}
