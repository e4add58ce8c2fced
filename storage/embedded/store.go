package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/even-keel/evenkeel/storage"
)

var (
	_ storage.Store         = (*Store)(nil)
	_ storage.HealthChecker = (*Store)(nil)
)

// Store is a [storage.Store] on Pebble. See the package comment for how.
type Store struct {
	opts  Options
	fence *fence
	lock  *pebble.Lock
	db    *pebble.DB
	tail  *tail
	// compacted is the oldest state that can be read.
	compacted atomic.Pointer[mark]
	// compacting is held by the one who compacts.
	compacting chan struct{}

	requests chan *request
	// total and group belong to the committer.
	total uint64
	group []*request
	// floor belongs to the keeper: the last revision it wrote as such.
	floor storage.Revision
	// overBudget tells the keeper that the history is too large.
	overBudget chan struct{}

	closing   chan struct{} // closed when Close begins
	committed chan struct{} // closed when the committer has ended
	kept      chan struct{} // closed when the keeper has ended
	// wedged says that Pebble panicked: its locks may be held for ever.
	wedged atomic.Bool

	// readers holds Close back while somebody reads.
	readers   sync.RWMutex
	closeOnce sync.Once
	closeErr  error
}

// enter lets a reader in, unless the store is closed. Pair it with leave.
func (s *Store) enter() bool {
	s.readers.RLock()
	select {
	case <-s.closing:
		s.readers.RUnlock()
		return false
	default:
		return true
	}
}

func (s *Store) leave() { s.readers.RUnlock() }

// usable returns why a call must not begin.
func (s *Store) usable(ctx context.Context) error {
	select {
	case <-s.closing:
		return storage.ErrClosed
	default:
		return ctx.Err()
	}
}

// Get implements [storage.Store].
func (s *Store) Get(ctx context.Context, key storage.Key) (storage.Entry, error) {
	entry, err := s.get(ctx, key)
	if err != nil {
		return storage.Entry{}, fmt.Errorf("get %q: %w", key, err)
	}
	return entry, nil
}

func (s *Store) get(ctx context.Context, key storage.Key) (storage.Entry, error) {
	v, err := s.openView(ctx, 0)
	if err != nil {
		return storage.Entry{}, err
	}
	defer s.closeView(v)
	entry, err := v.get(key)
	switch {
	case err != nil:
		return storage.Entry{}, s.diskError(err)
	case !entry.Exists():
		return storage.Entry{}, storage.ErrNotFound
	}
	entry.Value = bytes.Clone(entry.Value)
	return entry, nil
}

// Scan implements [storage.Store].
func (s *Store) Scan(ctx context.Context, r storage.Range) (storage.Page, error) {
	page, err := s.scan(ctx, r)
	if err != nil {
		return storage.Page{}, fmt.Errorf("scan %q: %w", r.Prefix, err)
	}
	return page, nil
}

func (s *Store) scan(ctx context.Context, r storage.Range) (storage.Page, error) {
	v, err := s.openView(ctx, r.Revision)
	if err != nil {
		return storage.Page{}, err
	}
	defer s.closeView(v)
	page := storage.Page{Revision: v.at}
	err = v.scan(r.Prefix, r.Start, func(e storage.Entry) bool {
		if r.Limit > 0 && len(page.Entries) == r.Limit {
			page.Next, page.More = e.Key, true
			return false
		}
		e.Value = bytes.Clone(e.Value)
		page.Entries = append(page.Entries, e)
		return ctx.Err() == nil
	})
	if err != nil {
		return storage.Page{}, s.diskError(err)
	}
	return page, ctx.Err()
}

func (s *Store) openView(ctx context.Context, at storage.Revision) (*view, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !s.enter() {
		return nil, storage.ErrClosed
	}
	v, err := s.view(at)
	if err != nil {
		s.leave()
		return nil, err
	}
	return v, nil
}

func (s *Store) closeView(v *view) {
	v.close()
	s.leave()
}

// Head implements [storage.Store].
func (s *Store) Head(ctx context.Context) (storage.Revision, error) {
	if err := s.usable(ctx); err != nil {
		return 0, fmt.Errorf("head: %w", err)
	}
	return s.tail.head(), nil
}

// Health implements [storage.HealthChecker].
func (s *Store) Health(ctx context.Context) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	return s.fence.failure()
}

// diskError gives what Pebble reports the store's own names.
func (s *Store) diskError(err error) error {
	if err != nil && pebble.IsCorruptionError(err) && !errors.Is(err, storage.ErrCorrupt) {
		return fmt.Errorf("%w: %w", storage.ErrCorrupt, err)
	}
	return err
}

// Close implements [storage.Store].
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		close(s.closing)
		s.closeErr = s.shutDown()
		if s.closeErr != nil {
			s.closeErr = fmt.Errorf("close store %s: %w", s.opts.Dir, s.closeErr)
		}
	})
	return s.closeErr
}

func (s *Store) shutDown() error {
	if s.fence.failure() != nil {
		return s.abandon()
	}
	<-s.committed
	<-s.kept
	s.readers.Lock()
	defer s.readers.Unlock()
	return errors.Join(s.closeEngine(), s.lock.Close())
}

// closeEngine writes everything out, so that a damaged file is found by its
// checksums and not taken for the torn end of a log.
func (s *Store) closeEngine() error {
	if s.opts.Memory {
		return s.db.Close()
	}
	err := s.db.Flush()
	if err == nil {
		err = s.writeFloor(s.tail.head())
	}
	return errors.Join(err, s.db.Close())
}

// abandonWait is how long a failed Pebble may take to close.
const abandonWait = 2 * time.Second

// abandon gives up a Pebble whose disk has failed. It may never come to an end:
// the fence keeps it from the disk, so that the directory is free all the same.
func (s *Store) abandon() error {
	close(s.fence.released)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		<-s.committed
		<-s.kept
		s.readers.Lock()
		defer s.readers.Unlock()
		if s.wedged.Load() {
			return
		}
		defer func() {
			if p := recover(); p != nil {
				s.opts.Logger.Warn("closing a failed store", slog.Any("panic", p))
			}
		}()
		_ = s.db.Close()
	}()
	wait := time.NewTimer(abandonWait)
	defer wait.Stop()
	select {
	case <-ended:
	case <-wait.C:
		s.opts.Logger.Warn("the failed storage engine did not stop; it is cut off from the disk")
	}
	return s.lock.Close()
}
