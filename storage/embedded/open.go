package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"

	"github.com/even-keel/evenkeel/storage"
)

// layout is the version of the key layout in doc.go.
const layout = 1

// firstRevision is the head of an empty store.
const firstRevision storage.Revision = 1

// Open opens the store, making it if there is none. Close it.
func Open(o Options) (*Store, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s, err := open(o)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", o.Dir, err)
	}
	return s, nil
}

func open(o Options) (*Store, error) {
	f := newFence(o.fs)
	if err := f.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := lockDir(o.fs, o.Dir)
	if err != nil {
		return nil, err
	}
	s := &Store{
		opts: o, fence: f, lock: lock,
		compacting: make(chan struct{}, 1),
		requests:   make(chan *request, groupWrites),
		overBudget: make(chan struct{}, 1),
		closing:    make(chan struct{}),
		committed:  make(chan struct{}),
		kept:       make(chan struct{}),
	}
	if err := s.openEngine(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	go s.runCommitter()
	go s.runKeeper()
	return s, nil
}

// openEngine opens Pebble and reads where the store stands. What Pebble finds
// obsolete is removed only once that has been found right: after a damaged
// index it may be the data.
func (s *Store) openEngine() error {
	floor, existed, err := readFloor(s.opts.fs, s.opts.Dir)
	if err != nil {
		return err
	}
	s.fence.holdRemovals()
	compactions := newScheduler()
	opts := s.pebbleOptions(existed)
	opts.Experimental.CompactionScheduler = compactions
	s.db, err = pebble.Open(s.opts.Dir, opts)
	if err != nil {
		return openError(err)
	}
	if err := s.readState(floor); err != nil {
		s.fence.trip(err)
		close(s.fence.released)
		return errors.Join(err, s.db.Close())
	}
	s.fence.releaseRemovals()
	compactions.open()
	return nil
}

// openError tells damage from what the system refuses: Pebble has many words
// for the former.
func openError(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) && errno != syscall.ENOENT {
		return err
	}
	return fmt.Errorf("%w: restore it from a backup, or remove it to start anew: %w", storage.ErrCorrupt, err)
}

func (s *Store) pebbleOptions(existed bool) *pebble.Options {
	opts := &pebble.Options{
		FS:                 s.fence,
		Lock:               s.lock,
		Logger:             engineLog{log: s.opts.Logger, fence: s.fence},
		Comparer:           comparer,
		FormatMajorVersion: pebble.FormatNewest,
		ErrorIfNotExists:   existed,
		// Pebble charges its memtables, of which there may be two, to the cache.
		CacheSize:    24 << 20,
		MemTableSize: 4 << 20,
	}
	opts.Experimental.SpanPolicyFunc = inPlace
	for i := range opts.Levels {
		opts.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	opts.EventListener = &pebble.EventListener{
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			s.fence.trip(fmt.Errorf("%w: %s: %w", storage.ErrCorrupt, info.Path, info.Details))
		},
	}
	return opts
}

// inPlace has old versions lie beside the newest. Pebble would write them into blocks
// of their own, each in a buffer of eight times its size until the table is complete.
func inPlace([]byte) (pebble.SpanPolicy, []byte, error) {
	return pebble.SpanPolicy{DisableValueSeparationBySuffix: true}, nil, nil
}

// readState finds the head and the compacted revision and checks them.
func (s *Store) readState(floor storage.Revision) error {
	if err := s.checkLayout(); err != nil {
		return s.diskError(err)
	}
	compacted, err := s.readCompacted()
	if err != nil {
		return s.diskError(err)
	}
	head, err := s.readHead(compacted)
	if err != nil {
		return s.diskError(err)
	}
	if head.rev < floor {
		return fmt.Errorf("%w: it ends at revision %d but had reached %d; restore it from a backup", storage.ErrCorrupt, head.rev, floor)
	}
	if head.rev > compacted.rev {
		if _, err := s.totalAt(compacted.rev + 1); err != nil {
			return fmt.Errorf("%w: the log does not begin at revision %d: %w", storage.ErrCorrupt, compacted.rev+1, err)
		}
	}
	s.compacted.Store(&compacted)
	s.tail, s.total, s.floor = newTail(head.rev), head.total, floor
	return nil
}

// checkLayout writes the layout's version into a new store and refuses others.
func (s *Store) checkLayout() error {
	want := []byte{layout}
	raw, closer, err := s.db.Get(layoutFact)
	if errors.Is(err, pebble.ErrNotFound) {
		return s.db.Set(layoutFact, want, s.syncMode())
	}
	if err != nil {
		return err
	}
	defer func() { _ = closer.Close() }()
	if !bytes.Equal(raw, want) {
		return fmt.Errorf("the store has layout %x, this version reads %x: use the version of evenkeel that wrote it", raw, want)
	}
	return nil
}

func (s *Store) readCompacted() (mark, error) {
	raw, closer, err := s.db.Get(compactedFact)
	if errors.Is(err, pebble.ErrNotFound) {
		return mark{rev: firstRevision}, nil
	}
	if err != nil {
		return mark{}, err
	}
	defer func() { _ = closer.Close() }()
	return parseMark(raw)
}

// readHead returns the end of the log, or of what has been compacted.
func (s *Store) readHead(compacted mark) (mark, error) {
	log, err := s.db.NewIter(&pebble.IterOptions{LowerBound: logStart, UpperBound: logEnd})
	if err != nil {
		return mark{}, err
	}
	defer func() { _ = log.Close() }()
	if !log.Last() {
		return compacted, log.Error()
	}
	rev, err := logRevision(log.Key())
	if err != nil {
		return mark{}, err
	}
	if rev <= compacted.rev {
		return compacted, nil
	}
	raw, err := log.ValueAndErr()
	if err != nil {
		return mark{}, err
	}
	rec, err := parseLogRecord(raw)
	return mark{rev: rev, total: rec.total}, err
}

// engineLog passes Pebble's messages on. What Pebble calls fatal ends writing,
// not the process.
type engineLog struct {
	log   *slog.Logger
	fence *fence
}

func (l engineLog) Infof(format string, args ...any) {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		l.log.Debug(fmt.Sprintf(format, args...))
	}
}

func (l engineLog) Errorf(format string, args ...any) {
	l.log.Warn(fmt.Sprintf(format, args...))
}

func (l engineLog) Fatalf(format string, args ...any) {
	l.fence.trip(fmt.Errorf(format, args...))
}
