package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/even-keel/evenkeel/storage"
	"github.com/even-keel/evenkeel/storage/storagetest"
)

func TestStoreInMemory(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storage.Store { return mustOpen(t, Options{Memory: true}) })
}

func TestStoreOnDisk(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storage.Store { return mustOpen(t, Options{Dir: t.TempDir()}) })
}

func mustOpen(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustClose(t testing.TB, s storage.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestOptionsThatMakeNoSense(t *testing.T) {
	for name, o := range map[string]Options{
		"nowhere":          {},
		"twice":            {Dir: t.TempDir(), Memory: true},
		"negative history": {Memory: true, HistoryBytes: -1},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Open(o); err == nil {
				t.Error("it opened")
			}
		})
	}
}

func TestReopenedStoreGoesOn(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	s := mustOpen(t, Options{Dir: dir})
	r, err := s.Commit(ctx, storage.Create("/a", []byte("1")))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Compact(ctx, r.Revision); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)

	// The log is empty now; the head must not go back all the same.
	s = mustOpen(t, Options{Dir: dir})
	defer mustClose(t, s)
	if head, err := s.Head(ctx); err != nil || head != r.Revision {
		t.Errorf("head is %d (%v), was %d", head, err, r.Revision)
	}
	again, err := s.Commit(ctx, storage.Replace("/a", []byte("2"), r.Revision))
	if err != nil || again.Revision <= r.Revision || string(again.Previous.Value) != "1" {
		t.Errorf("replace gave %+v, %v", again, err)
	}
	if _, err := s.Scan(ctx, storage.Range{Revision: r.Revision - 1}); !errors.Is(err, storage.ErrCompacted) {
		t.Errorf("scan below the compacted revision: %v", err)
	}
}

func TestHistoryStaysWithinItsBudget(t *testing.T) {
	const budget = 1 << 20
	s := mustOpen(t, Options{Memory: true, HistoryBytes: budget})
	defer mustClose(t, s)
	ctx := t.Context()
	value := make([]byte, 1024)
	var at storage.Revision
	for range 8 * budget / len(value) {
		r, err := s.Commit(ctx, storage.Replace("/hot", value, at))
		if err != nil {
			t.Fatal(err)
		}
		at = r.Revision
	}
	for s.total-s.compacted.Load().total > budget { // the keeper is on it
		w := s.Watch("", s.compactedRevision())
		if _, err := w.Next(ctx); err != nil && !errors.Is(err, storage.ErrCompacted) {
			t.Fatal(err)
		}
	}
	kept := s.total - s.compacted.Load().total
	if kept < budget/2 {
		t.Errorf("%d bytes of history are kept of a budget of %d", kept, budget)
	}
	if n := versions(t, s); n > 2*budget/len(value) {
		t.Errorf("%d versions are kept", n)
	}
	w := s.Watch("", s.compactedRevision())
	defer w.Close()
	if b, err := w.Next(ctx); err != nil || b.Events[0].Revision != s.compactedRevision()+1 {
		t.Errorf("the oldest kept event: %v, %v", b, err)
	}
}

func versions(t *testing.T, s *Store) int {
	t.Helper()
	iter, err := s.db.NewIter(&pebble.IterOptions{UpperBound: valueEnd})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = iter.Close() }()
	n := 0
	for ok := iter.First(); ok; ok = iter.Next() {
		n++
	}
	return n
}

// TestSleeperResumesFromDisk watches from before all that is in memory.
func TestSleeperResumesFromDisk(t *testing.T) {
	s := mustOpen(t, Options{Memory: true})
	defer mustClose(t, s)
	ctx := t.Context()
	const writes = 3 * tailEvents
	for i := range writes {
		if _, err := s.Commit(ctx, storage.Create(storage.Key(fmt.Sprintf("/%d/%d", i%2, i)), []byte("v"))); err != nil {
			t.Fatal(err)
		}
	}
	w := s.Watch("/1/", firstRevision)
	defer w.Close()
	seen := 0
	for seen < writes/2 {
		b, err := w.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range b.Events {
			if want := storage.Key(fmt.Sprintf("/1/%d", 2*seen+1)); e.Key != want || e.Revision != storage.Revision(2*seen+3) {
				t.Fatalf("event %d is %s at %d, expected %s", seen, e.Key, e.Revision, want)
			}
			seen++
		}
	}
}

func TestDirectoryInUseNamesItsHolder(t *testing.T) {
	dir := t.TempDir()
	holder := exec.Command(os.Args[0], "-test.run=^$")
	holder.Env = append(os.Environ(), victimEnv+"="+dir, "VICTIM_ARGS=0 1 0")
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = holder.Process.Kill()
		_ = holder.Wait()
	}()
	if _, err := out.Read(make([]byte, 1)); err != nil { // it writes: it is open
		t.Fatal(err)
	}
	_, err = Open(Options{Dir: dir})
	if !errors.Is(err, storage.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprintf("process %d", holder.Process.Pid)) {
		t.Errorf("open of a directory in use: %v", err)
	}
	if err != nil && !strings.Contains(err.Error(), dir) {
		t.Errorf("the error does not name the directory: %v", err)
	}
}

func TestOpenRefusesWhatItDoesNotUnderstand(t *testing.T) {
	t.Run("newer layout", func(t *testing.T) {
		fs := vfs.NewMem()
		s := openOn(t, fs)
		if err := s.db.Set(layoutFact, []byte{layout + 1}, pebble.Sync); err != nil {
			t.Fatal(err)
		}
		mustClose(t, s)
		if _, err := Open(Options{Dir: "data", fs: fs}); err == nil || !strings.Contains(err.Error(), "layout") {
			t.Errorf("open: %v", err)
		}
	})
	t.Run("a file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(Options{Dir: path}); err == nil || errors.Is(err, storage.ErrCorrupt) {
			t.Errorf("open: %v", err)
		}
	})
}

// TestUnsyncedStateIsInvisible holds a sync up and reads meanwhile.
func TestUnsyncedStateIsInvisible(t *testing.T) {
	disk := &slowSync{FS: vfs.NewMem(), held: make(chan struct{}, 1), release: make(chan struct{})}
	s := openOn(t, disk)
	ctx := t.Context()
	disk.hold.Store(true)
	done := make(chan error, 1)
	go func() {
		_, err := s.Commit(context.Background(), storage.Create("/a", []byte("1")))
		done <- err
	}()
	<-disk.held
	if _, err := s.Get(ctx, "/a"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("an unsynced write can be read: %v", err)
	}
	if head, _ := s.Head(ctx); head != firstRevision {
		t.Errorf("the head is %d before the sync", head)
	}
	if page, err := s.Scan(ctx, storage.Range{}); err != nil || len(page.Entries) != 0 {
		t.Errorf("scan before the sync: %v, %v", page, err)
	}
	disk.hold.Store(false)
	close(disk.release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(ctx, "/a"); err != nil {
		t.Error(err)
	}
	mustClose(t, s)
}

// TestManyShortLivesDoNotStall leaves a table behind with each life, more than
// Pebble lets pile up before it wants them compacted.
func TestManyShortLivesDoNotStall(t *testing.T) {
	fs := vfs.NewMem()
	for i := range 60 {
		s := openOn(t, fs)
		if _, err := s.Commit(t.Context(), storage.Create(storage.Key(fmt.Sprintf("/k/%d", i)), []byte("v"))); err != nil {
			t.Fatal(err)
		}
		mustClose(t, s)
	}
}
