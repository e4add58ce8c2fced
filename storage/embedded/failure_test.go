package embedded

import (
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/even-keel/evenkeel/storage"
)

// TestFailedDiskTurnsReadOnly breaks the disk under writers in all the places
// where Pebble touches it.
func TestFailedDiskTurnsReadOnly(t *testing.T) {
	cases := map[string]struct {
		fails func(errorfs.Op) bool
		err   error
	}{
		"log full": {
			fails: func(op errorfs.Op) bool { return op.Kind == errorfs.OpFileWrite && strings.HasSuffix(op.Path, ".log") },
			err:   syscall.ENOSPC,
		},
		"log sync fails": {
			fails: func(op errorfs.Op) bool {
				return strings.HasSuffix(op.Path, ".log") &&
					(op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo)
			},
			err: syscall.EIO,
		},
		"no room for the next log": {
			fails: func(op errorfs.Op) bool {
				return strings.HasSuffix(op.Path, ".log") && (op.Kind == errorfs.OpCreate || op.Kind == errorfs.OpReuseForWrite)
			},
			err: syscall.ENOSPC,
		},
		"no room for a table": {
			fails: func(op errorfs.Op) bool { return op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, ".sst") },
			err:   syscall.ENOSPC,
		},
		"table full": {
			fails: func(op errorfs.Op) bool { return op.Kind == errorfs.OpFileWrite && strings.HasSuffix(op.Path, ".sst") },
			err:   syscall.ENOSPC,
		},
		"index sync fails": {
			fails: func(op errorfs.Op) bool {
				return op.Kind == errorfs.OpFileSync && strings.Contains(op.Path, "MANIFEST")
			},
			err: syscall.EIO,
		},
		"everything full": {
			fails: func(op errorfs.Op) bool { return op.Kind == errorfs.OpFileWrite || op.Kind == errorfs.OpCreate },
			err:   syscall.ENOSPC,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { breakDisk(t, c.fails, c.err) })
	}
}

func breakDisk(t *testing.T, fails func(errorfs.Op) bool, broken error) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	mem := vfs.NewMem()
	var breaks atomic.Bool
	disk := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if breaks.Load() && fails(op) {
			return broken
		}
		return nil
	}))
	s := openOn(t, disk)
	books := newLedger()
	heard := &countingBooks{ledger: books, left: 500, reached: make(chan struct{})}
	var wg sync.WaitGroup
	for writer := range 8 {
		wg.Go(func() { traffic(t.Context(), s, heard, writer, "0", seed) })
	}
	<-heard.reached
	breaks.Store(true)
	wg.Wait() // every writer has been told

	checkReadOnly(t, s, broken)
	acked := books.ackedNow()
	if err := s.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	again := openOn(t, mem)
	books.check(t, again, acked)
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}

func checkReadOnly(t *testing.T, s *Store, broken error) {
	t.Helper()
	ctx := t.Context()
	if err := s.Health(ctx); !errors.Is(err, storage.ErrReadOnly) || !errors.Is(err, broken) {
		t.Errorf("health is %v", err)
	}
	if _, err := s.Commit(ctx, storage.Create("/new", nil)); !errors.Is(err, storage.ErrReadOnly) || !errors.Is(err, broken) {
		t.Errorf("commit on the failed disk: %v", err)
	}
	if err := s.Compact(ctx, 2); !errors.Is(err, storage.ErrReadOnly) {
		t.Errorf("compact on the failed disk: %v", err)
	}
	if _, err := s.Get(ctx, "/new"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("the refused write can be read: %v", err)
	}
	page, err := s.Scan(ctx, storage.Range{Prefix: "/k/"})
	if err != nil || len(page.Entries) == 0 {
		t.Errorf("scan on the failed disk: %d entries, %v", len(page.Entries), err)
	}
	w := s.Watch("", firstRevision)
	defer w.Close()
	for through := firstRevision; through < page.Revision; {
		b, err := w.Next(ctx)
		if err != nil {
			t.Fatalf("watch on the failed disk: %v", err)
		}
		through = b.Through
	}
}
