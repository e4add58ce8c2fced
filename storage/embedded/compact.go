package embedded

import (
	"context"
	"fmt"
	"log/slog"
	"sort"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/even-keel/evenkeel/storage"
)

// collectChunk is how many log records one batch of deletions covers.
const collectChunk = 1024

func (s *Store) compactedRevision() storage.Revision { return s.compacted.Load().rev }

// Compact implements [storage.Store]. States are gone when it returns; their
// disk space follows as Pebble gets to it.
func (s *Store) Compact(ctx context.Context, at storage.Revision) error {
	if err := s.compact(ctx, at); err != nil {
		return fmt.Errorf("compact at revision %d: %w", at, err)
	}
	return nil
}

func (s *Store) compact(ctx context.Context, at storage.Revision) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	select {
	case s.compacting <- struct{}{}:
		defer func() { <-s.compacting }()
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closing:
		return storage.ErrClosed
	}
	if !s.enter() {
		return storage.ErrClosed
	}
	defer s.leave()
	if compacted := s.compactedRevision(); at <= compacted {
		return compactedError(at, compacted)
	}
	if head := s.tail.head(); at > head {
		return fmt.Errorf("the newest revision is %d: %w", head, storage.ErrFuture)
	}
	return s.diskError(s.moveCompacted(ctx, at))
}

// moveCompacted makes the new mark durable before anything is deleted.
func (s *Store) moveCompacted(ctx context.Context, at storage.Revision) error {
	total, err := s.totalAt(at)
	if err != nil {
		return err
	}
	to := mark{rev: at, total: total}
	batch := s.db.NewBatch()
	defer func() { _ = batch.Close() }()
	if err := batch.Set(compactedFact, to.encode(), nil); err != nil {
		return err
	}
	if err := s.apply(batch, s.syncMode()); err != nil {
		return err
	}
	s.compacted.Store(&to)
	for {
		done, err := s.collect(at)
		if err != nil || done {
			return err
		}
		if s.usable(ctx) != nil {
			return nil // the compaction stands; the next one collects the rest
		}
	}
}

// totalAt returns the log's running total at a revision above the compacted one.
func (s *Store) totalAt(rev storage.Revision) (uint64, error) {
	raw, closer, err := s.db.Get(logKey(rev))
	if err != nil {
		return 0, fmt.Errorf("log record of revision %d: %w", rev, err)
	}
	defer func() { _ = closer.Close() }()
	rec, err := parseLogRecord(raw)
	return rec.total, err
}

// collect deletes a chunk of what nobody can read once upTo is compacted: for
// each log record the version it replaced, a tombstone, and the record itself.
func (s *Store) collect(upTo storage.Revision) (done bool, err error) {
	log, err := s.db.NewIter(&pebble.IterOptions{LowerBound: logStart, UpperBound: logKey(upTo + 1)})
	if err != nil {
		return false, err
	}
	defer func() { _ = log.Close() }()
	batch := s.db.NewBatch()
	defer func() { _ = batch.Close() }()

	n := 0
	ok := log.First()
	for ; ok && n < collectChunk; ok = log.Next() {
		if err := collectRecord(batch, log); err != nil {
			return false, err
		}
		n++
	}
	if err := log.Error(); err != nil {
		return false, err
	}
	if n == 0 {
		return true, nil
	}
	end := logKey(upTo + 1)
	if ok {
		end = log.Key()
	}
	if err := batch.DeleteRange(logStart, end, nil); err != nil {
		return false, err
	}
	return !ok, s.apply(batch, pebble.NoSync)
}

func collectRecord(batch *pebble.Batch, log *pebble.Iterator) error {
	rev, err := logRevision(log.Key())
	if err != nil {
		return err
	}
	raw, err := log.ValueAndErr()
	if err != nil {
		return err
	}
	rec, err := parseLogRecord(raw)
	if err != nil {
		return err
	}
	if rec.prev != 0 {
		if err := batch.Delete(appendVersion(nil, rec.key, rec.prev), nil); err != nil {
			return err
		}
	}
	if rec.deleted {
		return batch.Delete(appendVersion(nil, rec.key, rev), nil)
	}
	return nil
}

// noteHistory wakes the keeper if the history has outgrown its budget.
func (s *Store) noteHistory(total uint64) {
	if total-s.compacted.Load().total <= uint64(s.opts.HistoryBytes) {
		return
	}
	select {
	case s.overBudget <- struct{}{}:
	default:
	}
}

// floorEvery is how far the floor may lag behind the head, in time.
const floorEvery = time.Second

// runKeeper keeps the history within its budget and the floor near the head.
func (s *Store) runKeeper() {
	defer close(s.kept)
	tick := time.NewTicker(floorEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.closing:
			return
		case <-s.fence.down:
			s.opts.Logger.Error("the store is read-only from now on; reopen it when the disk works", slog.Any("error", s.fence.err))
			return
		case <-s.overBudget:
			if err := s.trim(); err != nil {
				s.opts.Logger.Error("trimming the history", slog.Any("error", err))
			}
		case <-tick.C:
			if err := s.raiseFloor(); err != nil {
				s.opts.Logger.Error("writing the revision floor", slog.Any("error", err))
			}
		}
	}
}

// trim compacts the oldest events until an eighth of the budget is free.
func (s *Store) trim() error {
	ctx := context.Background()
	at, err := s.trimPoint(uint64(s.opts.HistoryBytes) / 8 * 7)
	if err != nil || at <= s.compactedRevision() {
		return err
	}
	return s.Compact(ctx, at)
}

// trimPoint finds the first revision after which the events take at most keep
// bytes.
func (s *Store) trimPoint(keep uint64) (storage.Revision, error) {
	if !s.enter() {
		return 0, storage.ErrClosed
	}
	defer s.leave()
	low, head := s.compactedRevision(), s.tail.head()
	if head <= low {
		return low, nil
	}
	newest, err := s.totalAt(head)
	if err != nil {
		return 0, err
	}
	n := sort.Search(int(head-low), func(i int) bool {
		total, readErr := s.totalAt(low + 1 + storage.Revision(i))
		if readErr != nil {
			err = readErr
		}
		return newest-total <= keep
	})
	return min(low+1+storage.Revision(n), head), err
}
