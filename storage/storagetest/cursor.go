package storagetest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/even-keel/evenkeel/storage"
)

// cursor is a watcher that checks at every step what a watcher promises, and
// keeps what it has seen. Like a watcher it has one reader; requestProgress
// may come from anywhere.
type cursor struct {
	watcher storage.Watcher
	prefix  storage.Key
	after   storage.Revision
	through storage.Revision
	events  []storage.Event
	idle    int64
	asked   atomic.Int64
}

// watch opens a cursor that is closed when the test ends.
func (s *subject) watch(prefix storage.Key, after storage.Revision) *cursor {
	c := &cursor{watcher: s.store.Watch(prefix, after), prefix: prefix, after: after}
	s.t.Cleanup(c.watcher.Close)
	return c
}

func (c *cursor) String() string { return fmt.Sprintf("watch of %q after %d", c.prefix, c.after) }

func (c *cursor) requestProgress() {
	c.asked.Add(1)
	c.watcher.RequestProgress()
}

// next takes one step. Its error is the watcher's own or names a broken promise.
func (c *cursor) next(ctx context.Context) (storage.Batch, error) {
	batch, err := c.watcher.Next(ctx)
	if err != nil {
		if len(batch.Events) > 0 {
			return batch, fmt.Errorf("%v: %d events came along with error %v", c, len(batch.Events), err)
		}
		return batch, fmt.Errorf("%v, %d events and through %d so far: %w", c, len(c.events), c.through, err)
	}
	if err := c.check(batch); err != nil {
		return batch, fmt.Errorf("%v: %w", c, err)
	}
	c.through = batch.Through
	c.events = append(c.events, batch.Events...)
	return batch, nil
}

// check holds a batch to what can be told without the ledger: in order, none
// twice, none that an earlier batch said had been delivered.
func (c *cursor) check(batch storage.Batch) error {
	if len(batch.Events) == 0 {
		if c.idle++; c.idle > c.asked.Load() {
			return fmt.Errorf("progress through %d came without being asked for", batch.Through)
		}
	}
	last := max(c.after, c.through)
	for _, event := range batch.Events {
		if event.Revision <= last {
			return fmt.Errorf("event %d of %.40q after everything through %d had been delivered", event.Revision, event.Key, last)
		}
		if err := c.checkEvent(event); err != nil {
			return err
		}
		last = event.Revision
	}
	if batch.Through < c.through || len(batch.Events) > 0 && batch.Through < last {
		return fmt.Errorf("through %d after %d, with events up to %d", batch.Through, c.through, last)
	}
	return nil
}

func (c *cursor) checkEvent(event storage.Event) error {
	switch {
	case !hasPrefix(event.Key, c.prefix):
		return fmt.Errorf("event %d of %.40q, which is outside the prefix", event.Revision, event.Key)
	case event.Deleted && event.Value != nil:
		return fmt.Errorf("event %d deletes %.40q and has a value", event.Revision, event.Key)
	case event.Deleted && !event.Previous.Exists():
		return fmt.Errorf("event %d deletes %.40q, which was not there", event.Revision, event.Key)
	}
	return nil
}

// step is next for those who look at the cursor and not at the batch.
func (c *cursor) step(ctx context.Context) error {
	_, err := c.next(ctx)
	return err
}

// read steps until the cursor has at least n events, without ever asking for
// progress.
func (c *cursor) read(ctx context.Context, n int) error {
	for len(c.events) < n {
		if err := c.step(ctx); err != nil {
			return fmt.Errorf("waiting for event %d of %d: %w", len(c.events)+1, n, err)
		}
	}
	return nil
}

// catchUp asks for progress and steps until the cursor has seen everything
// through a revision that the store has reached.
func (c *cursor) catchUp(ctx context.Context, revision storage.Revision) error {
	c.requestProgress()
	for c.through < revision {
		if err := c.step(ctx); err != nil {
			return fmt.Errorf("waiting for progress through %d: %w", revision, err)
		}
	}
	return nil
}

// follow takes steps until writing has ended and all that was written has been
// seen.
func (c *cursor) follow(ctx context.Context, ledger *ledger, step func() error) error {
	following, stop := context.WithCancel(ctx)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer stop()
	asking.Go(func() {
		select {
		case <-ledger.closed:
			c.requestProgress() // most likely while Next blocks
		case <-following.Done():
		}
	})
	for {
		select {
		case <-ledger.closed:
			if c.through >= ledger.newest() {
				return nil
			}
		default:
		}
		if err := step(); err != nil {
			return err
		}
	}
}

// verify compares all that the cursor saw with the history.
func (s *subject) verify(c *cursor, h history) {
	s.t.Helper()
	want := h.events(c.prefix, c.after, c.through)
	if d := diff(want, c.events); d != "" {
		s.t.Errorf("%v through %d: %d events, want %d (-want +got):\n%s", c, c.through, len(c.events), len(want), d)
	}
}
