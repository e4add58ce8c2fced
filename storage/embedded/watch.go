package embedded

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/even-keel/evenkeel/storage"
)

// A batch read from the log holds at most this much.
const (
	batchEvents = 1024
	batchBytes  = 1 << 20
)

// watcher is a cursor into the log. It holds no events.
type watcher struct {
	store  *Store
	prefix storage.Key
	// cursor is the newest revision that has been accounted for.
	cursor storage.Revision

	closeOnce sync.Once
	closed    chan struct{}

	// wake tells a blocked Next that target has changed.
	wake chan struct{}
	mu   sync.Mutex
	// target is the revision that progress was asked for; zero for none.
	target storage.Revision
}

// Watch implements [storage.Store].
func (s *Store) Watch(prefix storage.Key, after storage.Revision) storage.Watcher {
	return &watcher{
		store: s, prefix: prefix, cursor: max(after, firstRevision),
		closed: make(chan struct{}), wake: make(chan struct{}, 1),
	}
}

// Next implements [storage.Watcher].
func (w *watcher) Next(ctx context.Context) (storage.Batch, error) {
	batch, err := w.next(ctx)
	if err != nil {
		return storage.Batch{}, fmt.Errorf("watch %q after revision %d: %w", w.prefix, w.cursor, err)
	}
	return batch, nil
}

func (w *watcher) next(ctx context.Context) (storage.Batch, error) {
	for {
		if err := w.usable(ctx); err != nil {
			return storage.Batch{}, err
		}
		events, through, moved, err := w.read()
		if err != nil {
			return storage.Batch{}, err
		}
		if reached := w.settle(through); len(events) > 0 || reached {
			return storage.Batch{Events: events, Through: through}, nil
		}
		if moved == nil {
			continue // there is more log to read
		}
		select {
		case <-moved:
		case <-w.wake:
		case <-ctx.Done():
		case <-w.closed:
		case <-w.store.closing:
		}
	}
}

func (w *watcher) usable(ctx context.Context) error {
	select {
	case <-w.closed:
		return storage.ErrClosed
	default:
		return w.store.usable(ctx)
	}
}

// read moves the cursor and returns the events on its way. moved is not nil if
// the cursor has reached the head.
func (w *watcher) read() (events []storage.Event, through storage.Revision, moved <-chan struct{}, err error) {
	head, events, complete, moved := w.store.tail.after(w.cursor)
	if compacted := w.store.compactedRevision(); w.cursor < compacted {
		return nil, 0, nil, compactedError(w.cursor, compacted)
	}
	if !complete {
		events, through, err = w.store.readLog(w.prefix, w.cursor, head)
		if err == nil {
			w.cursor = through
		}
		return events, through, nil, err
	}
	w.cursor = max(w.cursor, head)
	return w.matching(events), head, moved, nil
}

// matching returns the events of the watched prefix, without a copy if all are.
func (w *watcher) matching(events []storage.Event) []storage.Event {
	n := 0
	for _, e := range events {
		if strings.HasPrefix(string(e.Key), string(w.prefix)) {
			n++
		}
	}
	if n == len(events) || n == 0 {
		return events[:n:n]
	}
	out := make([]storage.Event, 0, n)
	for _, e := range events {
		if strings.HasPrefix(string(e.Key), string(w.prefix)) {
			out = append(out, e)
		}
	}
	return out
}

// RequestProgress implements [storage.Watcher].
func (w *watcher) RequestProgress() {
	head := w.store.tail.head()
	w.mu.Lock()
	w.target = max(w.target, head)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// settle reports whether progress was asked for and has been made.
func (w *watcher) settle(through storage.Revision) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.target == 0 || through < w.target {
		return false
	}
	w.target = 0
	return true
}

// Close implements [storage.Watcher].
func (w *watcher) Close() { w.closeOnce.Do(func() { close(w.closed) }) }

// readLog returns the events of a prefix after a revision, up to the head or a
// batch's size, and the revision up to which it has read.
func (s *Store) readLog(prefix storage.Key, after, head storage.Revision) ([]storage.Event, storage.Revision, error) {
	if !s.enter() {
		return nil, 0, storage.ErrClosed
	}
	defer s.leave()
	events, through, err := s.readLogOpen(prefix, after, head)
	return events, through, s.diskError(err)
}

func (s *Store) readLogOpen(prefix storage.Key, after, head storage.Revision) ([]storage.Event, storage.Revision, error) {
	snap := s.db.NewSnapshot()
	defer func() { _ = snap.Close() }()
	// After the snapshot, see the invariants in doc.go.
	if compacted := s.compactedRevision(); after < compacted {
		return nil, 0, compactedError(after, compacted)
	}
	log, err := snap.NewIter(&pebble.IterOptions{LowerBound: logKey(after + 1), UpperBound: logKey(head + 1)})
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = log.Close() }()

	r := logReader{snap: snap, prefix: prefix, through: after}
	for ok := log.First(); ok && !r.full(); ok = log.Next() {
		if err := r.read(log); err != nil {
			return nil, 0, err
		}
	}
	if err := log.Error(); err != nil {
		return nil, 0, err
	}
	if !r.full() && r.through != head {
		return nil, 0, fmt.Errorf("the log ends at revision %d instead of %d: %w", r.through, head, storage.ErrCorrupt)
	}
	return r.events, r.through, nil
}

// logReader collects the events of one batch.
type logReader struct {
	snap    *pebble.Snapshot
	prefix  storage.Key
	events  []storage.Event
	bytes   int
	through storage.Revision
}

func (r *logReader) full() bool { return len(r.events) >= batchEvents || r.bytes >= batchBytes }

func (r *logReader) read(log *pebble.Iterator) error {
	rev, err := logRevision(log.Key())
	if err != nil {
		return err
	}
	if rev != r.through+1 {
		return fmt.Errorf("the log lacks revision %d: %w", r.through+1, storage.ErrCorrupt)
	}
	raw, err := log.ValueAndErr()
	if err != nil {
		return err
	}
	rec, err := parseLogRecord(raw)
	if err != nil {
		return err
	}
	r.through = rev
	if !strings.HasPrefix(string(rec.key), string(r.prefix)) {
		return nil
	}
	event, err := r.event(rec, rev)
	if err != nil {
		return fmt.Errorf("event of %q at revision %d: %w", rec.key, rev, err)
	}
	r.events = append(r.events, event)
	r.bytes += footprint(event)
	return nil
}

// event joins a log record with the values it refers to.
func (r *logReader) event(rec logRecord, rev storage.Revision) (storage.Event, error) {
	e := storage.Event{Key: rec.key, Revision: rev, Deleted: rec.deleted}
	var err error
	if e.Value, err = r.version(rec.key, rev, rec.deleted); err != nil {
		return e, err
	}
	if rec.deleted && len(e.Value) == 0 {
		e.Value = nil
	}
	if rec.prev != 0 {
		e.Previous = storage.Entry{Key: rec.key, Revision: rec.prev}
		e.Previous.Value, err = r.version(rec.key, rec.prev, false)
	}
	return e, err
}

// version reads the value of a version, or the note of a deletion.
func (r *logReader) version(key storage.Key, rev storage.Revision, deleted bool) ([]byte, error) {
	raw, closer, err := r.snap.Get(appendVersion(nil, key, rev))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, fmt.Errorf("revision %d is missing: %w", rev, storage.ErrCorrupt)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = closer.Close() }()
	value, tombstone, err := splitValue(raw)
	if err != nil || tombstone != deleted {
		return nil, fmt.Errorf("something else was expected at revision %d: %w", rev, storage.ErrCorrupt)
	}
	return append(make([]byte, 0, len(value)), value...), nil
}
