package watch

import (
	"context"
	"errors"
	"fmt"

	"github.com/even-keel/evenkeel/storage"
)

// Cursor is a watcher's place among the events of a resource. It is used by one
// goroutine at a time.
type Cursor struct {
	r    *Resource
	seat *seat
	// after is the revision up to which events have been delivered.
	after storage.Revision
	// forgotten says that the watcher starts before what has been compacted,
	// even if the ring happens to hold it.
	forgotten bool
	// log is where events come from while the ring does not hold them.
	log storage.Watcher
}

// Watch returns a cursor over the events after a revision.
func (r *Resource) Watch(after storage.Revision) *Cursor {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &Cursor{r: r, seat: r.bell.take(), after: after, forgotten: after < r.hub.Compacted()}
}

// Close releases the cursor.
func (c *Cursor) Close() {
	c.r.mu.Lock()
	c.r.bell.leave(c.seat)
	c.r.mu.Unlock()
	if c.log != nil {
		c.log.Close()
	}
}

// Position is the revision up to which the watcher knows everything.
func (c *Cursor) Position() storage.Revision { return c.after }

// Next returns the next events, and waits for them if there are none. It
// answers storage.ErrCompacted if they are gone. When ctx ends it returns its
// error, and the cursor has moved to what the hub had seen by then.
func (c *Cursor) Next(ctx context.Context) ([]*Event, error) {
	for {
		if err := c.ended(); err != nil {
			return nil, err
		}
		through := c.r.hub.Through() // before the ring, see Snapshot
		events, complete, moved := c.r.after(c.after, c.seat)
		if !complete || c.forgotten {
			if events, err := c.readLog(ctx); err != nil || len(events) > 0 {
				return events, err
			}
			continue
		}
		c.dropLog()
		if len(events) > 0 {
			c.after = events[len(events)-1].Revision
			return events, nil
		}
		c.after = max(c.after, through)
		select {
		case <-moved:
		case <-c.r.hub.stopped:
		case <-ctx.Done():
			c.advance()
			return nil, ctx.Err()
		}
	}
}

// advance moves past what happened to other resources.
func (c *Cursor) advance() {
	through := c.r.hub.Through() // before the ring, see Snapshot
	if events, complete, _ := c.r.after(c.after, c.seat); complete && len(events) == 0 {
		c.after = max(c.after, through)
	}
}

func (c *Cursor) ended() error {
	c.r.hub.mu.RLock()
	defer c.r.hub.mu.RUnlock()
	return c.r.hub.ended
}

func (c *Cursor) dropLog() {
	if c.log != nil {
		c.log.Close()
		c.log = nil
	}
}

// readLog returns events from the store, for a cursor that the ring has left
// behind.
func (c *Cursor) readLog(ctx context.Context) ([]*Event, error) {
	if c.log == nil {
		c.log = c.r.hub.store.Watch(c.r.prefix, c.after)
	}
	c.log.RequestProgress() // there may be no event before the ring's first
	batch, err := c.log.Next(ctx)
	if err != nil {
		if errors.Is(err, storage.ErrClosed) {
			return nil, fmt.Errorf("the server is stopping: %w", context.Canceled)
		}
		return nil, err
	}
	events := make([]*Event, 0, len(batch.Events))
	for _, e := range batch.Events {
		event, err := fillEvent(&Event{Revision: e.Revision}, e)
		if err != nil {
			return nil, err
		}
		events = append(events, event)
	}
	c.after, c.forgotten = max(c.after, batch.Through), false
	return events, nil
}
