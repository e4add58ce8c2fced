package embedded

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"

	"github.com/cockroachdb/pebble/v2"

	"github.com/even-keel/evenkeel/storage"
)

// A group of writes shares one sync. More writers than groupWrites wait.
const (
	groupWrites = 1024
	groupBytes  = 4 << 20
)

// request is a write that waits for the committer. The committer sets result
// and err before it closes done.
type request struct {
	write  storage.Write
	result storage.Result
	err    error
	done   chan struct{}
}

// Commit implements [storage.Store].
func (s *Store) Commit(ctx context.Context, w storage.Write) (storage.Result, error) {
	r, err := s.commit(ctx, w)
	if err != nil {
		return r, fmt.Errorf("%s %q: %w", verb(w), w.Key, err)
	}
	return r, nil
}

func verb(w storage.Write) string {
	switch {
	case w.Delete:
		return "delete"
	case w.At == 0:
		return "create"
	default:
		return "replace"
	}
}

func (s *Store) commit(ctx context.Context, w storage.Write) (storage.Result, error) {
	if err := w.Check(); err != nil {
		return storage.Result{}, err
	}
	if err := s.usable(ctx); err != nil {
		return storage.Result{}, err
	}
	if err := s.fence.failure(); err != nil {
		return storage.Result{}, err
	}
	w.Value = bytes.Clone(w.Value)
	if w.Delete && len(w.Value) == 0 {
		w.Value = nil
	}
	req := &request{write: w, done: make(chan struct{})}
	select {
	case s.requests <- req:
	case <-ctx.Done():
		return storage.Result{}, ctx.Err()
	case <-s.fence.down:
		return storage.Result{}, s.fence.err
	case <-s.closing:
		return storage.Result{}, storage.ErrClosed
	}
	select {
	case <-req.done:
		return req.result, req.err
	case <-ctx.Done():
		return storage.Result{}, fmt.Errorf("outcome unknown: %w", ctx.Err())
	case <-s.fence.down:
		return storage.Result{}, s.fence.err
	case <-s.committed:
		// The committer has gone, but it may have answered this one first.
		select {
		case <-req.done:
			return req.result, req.err
		default:
			return storage.Result{}, storage.ErrClosed
		}
	}
}

// runCommitter answers requests until the store closes. It alone moves the head.
func (s *Store) runCommitter() {
	defer close(s.committed)
	for {
		select {
		case <-s.closing:
			return
		case req := <-s.requests:
			s.commitGroup(s.gather(req))
		}
	}
}

// gather takes the requests that wait behind the first, up to a group's size. Those
// who have just been answered are about to write again: they get a turn, and another
// as long as that makes the group larger, for a sync costs as much as several writes.
func (s *Store) gather(first *request) []*request {
	group := append(s.group[:0], first)
	size := len(first.write.Value)
	for before := 0; len(group) > before; {
		before = len(group)
		runtime.Gosched()
		group, size = s.gatherMore(group, size)
	}
	s.group = group
	return group
}

func (s *Store) gatherMore(group []*request, size int) ([]*request, int) {
	for len(group) < groupWrites && size < groupBytes {
		select {
		case req := <-s.requests:
			group = append(group, req)
			size += len(req.write.Value)
		default:
			return group, size
		}
	}
	return group, size
}

func (s *Store) commitGroup(group []*request) {
	if err := s.tryGroup(group); err != nil {
		for _, req := range group {
			req.result, req.err = storage.Result{}, err
		}
	}
	for i, req := range group {
		close(req.done)
		group[i] = nil
	}
}

// tryGroup decides the group's writes and makes those that may happen durable.
// On an error none of them has been published.
func (s *Store) tryGroup(group []*request) (err error) {
	v, err := s.view(0)
	if err != nil {
		return err
	}
	defer v.close()
	d := decider{view: v, tail: s.tail, next: v.at, total: s.total, batch: s.db.NewBatch()}
	defer func() { _ = d.batch.Close() }()
	for _, req := range group {
		if req.result, req.err = d.decide(req.write); d.err != nil {
			return s.diskError(d.err)
		}
	}
	if len(d.events) == 0 {
		return nil
	}
	if err := s.apply(d.batch, s.syncMode()); err != nil {
		return err
	}
	s.total = d.total
	s.tail.publish(d.events)
	s.noteHistory(d.total)
	return nil
}

func (s *Store) syncMode() *pebble.WriteOptions {
	if s.opts.NoSync {
		return pebble.NoSync
	}
	return pebble.Sync
}

// apply commits a batch, and fails if the disk has failed at any time before
// the batch was durable.
func (s *Store) apply(batch *pebble.Batch, mode *pebble.WriteOptions) (err error) {
	defer func() {
		if p := recover(); p != nil {
			// Pebble panics, with its locks held, when it cannot go on writing.
			s.wedged.Store(true)
			s.opts.Logger.Error("the storage engine panicked", slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
			s.fence.trip(fmt.Errorf("storage engine: %v", p))
			err = s.fence.failure()
		}
	}()
	if err := s.fence.failure(); err != nil {
		return err
	}
	if err := batch.Commit(mode); err != nil {
		s.fence.trip(err)
	}
	return s.fence.failure()
}

// decider turns a group's writes into one batch. Each write sees those before it.
type decider struct {
	view   *view
	tail   *tail
	batch  *pebble.Batch
	next   storage.Revision
	total  uint64
	events []storage.Event
	// newest maps the keys written by this group to their last event.
	newest map[storage.Key]int
	// err is a failure to read; the group must be given up.
	err error

	key, value []byte
}

func (d *decider) decide(w storage.Write) (storage.Result, error) {
	prev := d.current(w.Key)
	if d.err != nil {
		return storage.Result{}, nil
	}
	if prev.Revision != w.At {
		return storage.Result{Previous: prev}, conflict(prev, w.At)
	}
	if err := d.guarded(w.Guard); err != nil || d.err != nil {
		return storage.Result{}, err
	}
	d.next++
	d.total += eventBytes(w)
	d.put(w, prev.Revision)
	if d.newest == nil {
		d.newest = make(map[storage.Key]int)
	}
	d.newest[w.Key] = len(d.events)
	d.events = append(d.events, storage.Event{
		Key: w.Key, Revision: d.next, Deleted: w.Delete, Value: w.Value, Previous: prev,
	})
	return storage.Result{Revision: d.next, Previous: prev}, nil
}

// guarded returns why a write's second condition does not hold.
func (d *decider) guarded(g *storage.Guard) error {
	if g == nil {
		return nil
	}
	if is := d.current(g.Key); d.err == nil && is.Revision != g.At {
		return fmt.Errorf("%q stands at revision %d, expected at %d: %w", g.Key, is.Revision, g.At, storage.ErrGuard)
	}
	return nil
}

// put adds the version and its log record to the batch.
func (d *decider) put(w storage.Write, prev storage.Revision) {
	d.key = appendVersion(d.key[:0], w.Key, d.next)
	d.value = appendValue(d.value[:0], w)
	d.set(d.key, d.value)
	rec := logRecord{key: w.Key, prev: prev, deleted: w.Delete, total: d.total}
	d.value = rec.append(d.value[:0])
	d.set(logKey(d.next), d.value)
}

func (d *decider) set(key, value []byte) {
	if err := d.batch.Set(key, value, nil); err != nil && d.err == nil {
		d.err = err
	}
}

// current returns the key's entry as the group has left it so far.
func (d *decider) current(key storage.Key) storage.Entry {
	if i, ok := d.newest[key]; ok {
		return entryAfter(d.events[i])
	}
	if entry, ok := d.tail.current(key); ok {
		return entry
	}
	entry, err := d.view.get(key)
	if err != nil {
		d.err = err
	}
	entry.Value = bytes.Clone(entry.Value)
	return entry
}

func conflict(prev storage.Entry, want storage.Revision) error {
	switch {
	case want == 0:
		return fmt.Errorf("it exists at revision %d: %w", prev.Revision, storage.ErrConflict)
	case !prev.Exists():
		return fmt.Errorf("it does not exist, expected at revision %d: %w", want, storage.ErrConflict)
	default:
		return fmt.Errorf("it stands at revision %d, expected at %d: %w", prev.Revision, want, storage.ErrConflict)
	}
}
