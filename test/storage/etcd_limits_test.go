package storage_test

import (
	"context"
	"errors"
	"net"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/even-keel/evenkeel/storage"
	"github.com/even-keel/evenkeel/storage/etcd"
	"github.com/even-keel/evenkeel/test/storage/etcdtest"
)

func TestEtcdOfDefaultLimits(t *testing.T) {
	const fitsEvery = 3<<19 - 16<<10 // as storage.MaxValueBytes promises
	cluster := etcdtest.Start(t, 1, etcdtest.DefaultLimits)
	store := openEtcd(t, etcd.Options{Endpoints: cluster.Endpoints(), Prefix: strings.Repeat("p", 500)})
	longest := storage.Key(strings.Repeat("k", storage.MaxKeyBytes))
	at := mustCommit(t, store, storage.Create(longest, make([]byte, fitsEvery)))
	for _, size := range []int{3 << 19, 2 << 20, 3 << 20, storage.MaxValueBytes} {
		_, err := store.Commit(t.Context(), storage.Replace(longest, make([]byte, size), at))
		wantErr(t, err, storage.ErrTooLarge)
		if err != nil && !strings.Contains(err.Error(), "--max-request-bytes") {
			t.Errorf("%v does not say what to do", err)
		}
	}
	entry, err := store.Get(t.Context(), longest)
	if err != nil || entry.Revision != at || len(entry.Value) != fitsEvery {
		t.Errorf("after refusals: %d bytes at %d, error %v", len(entry.Value), entry.Revision, err)
	}
}

func TestEtcdOfHigherLimitsTakesTheGreatestValue(t *testing.T) {
	cluster := etcdtest.Start(t, 1)
	store := openEtcd(t, etcd.Options{Endpoints: cluster.Endpoints()})
	start := mustHead(t, store)
	value := make([]byte, storage.MaxValueBytes)
	at := mustCommit(t, store, storage.Create("a", value))
	at = mustCommit(t, store, storage.Replace("a", value, at))
	result, err := store.Commit(t.Context(), storage.Create("a", value))
	wantErr(t, err, storage.ErrConflict)
	if len(result.Previous.Value) != len(value) {
		t.Errorf("the conflict shows %d bytes", len(result.Previous.Value))
	}
	w := store.Watch("", start)
	defer w.Close()
	events, err := readThrough(t.Context(), w, at)
	if err != nil || len(events) != 2 || len(events[1].Value) != len(value) || len(events[1].Previous.Value) != len(value) {
		t.Errorf("%d events, error %v", len(events), err)
	}
}

// TestEtcdOutOfSpace fills the database up to the alarm.
func TestEtcdOutOfSpace(t *testing.T) {
	cluster := etcdtest.Start(t, 1, etcdtest.Quota(2<<20))
	store := openEtcd(t, etcd.Options{Endpoints: cluster.Endpoints()})
	if err := store.Health(t.Context()); err != nil {
		t.Fatal(err)
	}
	var err error
	for n := 0; err == nil; n++ {
		_, err = store.Commit(t.Context(), storage.Create(storage.Key(strconv.Itoa(n)), make([]byte, 100<<10)))
	}
	wantErr(t, err, storage.ErrReadOnly)
	// The write that raises the alarm may happen; those after it do not.
	head := mustHead(t, store)
	wantErr(t, store.Health(t.Context()), storage.ErrReadOnly)
	_, err = store.Commit(t.Context(), storage.Create("more", nil))
	wantErr(t, err, storage.ErrReadOnly)
	if got := mustHead(t, store); got != head {
		t.Errorf("head %d after refused writes, want %d", got, head)
	}
	entry, err := store.Get(t.Context(), "0")
	if err != nil {
		t.Errorf("reads should go on: %v", err)
	}
	mustCommit(t, store, storage.Delete("0", entry.Revision)) // this is how space is freed
}

func TestEtcdHealthChangesNothing(t *testing.T) {
	cluster := etcdtest.Start(t, 1)
	store := openEtcd(t, etcd.Options{Endpoints: cluster.Endpoints()})
	mustCommit(t, store, storage.Create("", []byte("the key that Health proposes to write")))
	head := mustHead(t, store)
	for range 3 {
		if err := store.Health(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := mustHead(t, store); got != head {
		t.Errorf("head %d, want %d", got, head)
	}
}

func TestEtcdThatCannotBeReached(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	silent := "http://" + listener.Addr().String() // takes connections and says nothing
	defer func() { _ = listener.Close() }()

	t.Run("nothing listens", func(t *testing.T) {
		closed, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_ = closed.Close()
		o := etcd.Options{Endpoints: []string{"http://" + closed.Addr().String()}}
		refused(t, o, "nothing listens there")
		refused(t, withUser(o, "keel", "secret"), "nothing listens there")
	})
	t.Run("nothing answers until the caller's time is up", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := etcd.Open(ctx, etcd.Options{Endpoints: []string{silent}})
		wantErr(t, err, storage.ErrUnavailable)
		wantErr(t, err, context.DeadlineExceeded)
	})
	t.Run("nothing answers until ours is", func(t *testing.T) {
		err := refused(t, etcd.Options{Endpoints: []string{silent}, DialTimeout: 50 * time.Millisecond}, "")
		if errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v is an error of a context that the caller did not set", err)
		}
	})
	t.Run("one of several answers", func(t *testing.T) {
		cluster := etcdtest.Start(t, 1)
		works(t, openEtcd(t, etcd.Options{Endpoints: append(cluster.Endpoints(), "http://127.0.0.1:1")}))
	})
	t.Run("the cluster goes away", func(t *testing.T) {
		cluster := etcdtest.Start(t, 1)
		store := openEtcd(t, etcd.Options{Endpoints: cluster.Endpoints(), RequestTimeout: 300 * time.Millisecond})
		cluster.Kill(0)
		_, err := store.Get(t.Context(), "a")
		wantErr(t, err, storage.ErrUnavailable)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err = store.Get(ctx, "a")
		wantErr(t, err, context.DeadlineExceeded)
		_, err = store.Scan(ctx, storage.Range{})
		wantErr(t, err, context.DeadlineExceeded)
		wantErr(t, store.Compact(ctx, 1), context.DeadlineExceeded)
		_, err = store.Commit(ctx, storage.Create("a", nil))
		wantErr(t, err, context.DeadlineExceeded)
	})
}

// TestEtcdProcess is the etcd of tests that measure their own process.
func TestEtcdProcess(t *testing.T) { etcdtest.ServeProcess(t, etcdtest.DefaultLimits) }

// TestEtcdWatchRightBelowACompaction: etcd itself would let it begin, and
// nobody would be told that states are gone.
func TestEtcdWatchRightBelowACompaction(t *testing.T) {
	cluster := etcdtest.Start(t, 1)
	store := openEtcd(t, etcd.Options{Endpoints: cluster.Endpoints()})
	mustCommit(t, store, storage.Create("a", nil))
	at := mustCommit(t, store, storage.Create("b", nil))
	if err := store.Compact(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	for _, prefix := range []storage.Key{"", "b", "quiet"} {
		w := store.Watch(prefix, at-1)
		defer w.Close()
		for range 2 {
			w.RequestProgress()
			_, err := w.Next(t.Context())
			wantErr(t, err, storage.ErrCompacted)
		}
		ok := store.Watch(prefix, at)
		defer ok.Close()
		if _, err := readThrough(t.Context(), ok, at); err != nil {
			t.Errorf("a watch after the compacted revision: %v", err)
		}
	}
}

// TestEtcdSlowWatcher writes 50 MB under watchers that nobody reads.
func TestEtcdSlowWatcher(t *testing.T) {
	const watchers, writes, size = 4, 800, 64 << 10
	store := openEtcd(t, etcd.Options{Endpoints: []string{etcdtest.StartProcess(t, "TestEtcdProcess")}})
	first := fastWatcher(t, store, size)
	cursors := make([]storage.Watcher, watchers)
	for i := range cursors {
		cursors[i] = store.Watch("", first-1)
		defer cursors[i].Close()
		if batch, err := cursors[i].Next(t.Context()); err != nil || len(batch.Events) != 1 {
			t.Fatalf("got %+v, error %v", batch, err)
		}
	}
	before := heap()
	last := first
	for range writes {
		last = mustCommit(t, store, storage.Replace("slow", make([]byte, size), last))
	}
	grown := heap() - before
	t.Logf("%d watchers nobody reads hold %d KiB of %d KiB written", watchers, grown>>10, writes*size>>10)
	if grown > watchers*2<<20 {
		t.Errorf("the heap has grown by %d KiB", grown>>10)
	}

	readChain(t, cursors[0], first, last)
	// Those who are overtaken by a compaction are told, and see no gap.
	if err := store.Compact(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	for _, w := range cursors[1:] {
		at, err := followChain(t.Context(), w, first, last)
		if at != last {
			wantErr(t, err, storage.ErrCompacted)
		}
		t.Logf("saw up to %d of %d, then %v", at, last, err)
	}
}

// fastWatcher replaces a key many times under a watcher that keeps up, as gRPC
// gives more room to streams on a connection that was fast.
func fastWatcher(t *testing.T, store storage.Store, size int) storage.Revision {
	t.Helper()
	first := mustCommit(t, store, storage.Create("slow", []byte("0")))
	w := store.Watch("", first)
	defer w.Close()
	last := first
	for range 500 {
		last = mustCommit(t, store, storage.Replace("slow", make([]byte, size), last))
	}
	readChain(t, w, first, last)
	return last
}

func readChain(t *testing.T, w storage.Watcher, at, last storage.Revision) {
	t.Helper()
	if at, err := followChain(t.Context(), w, at, last); err != nil || at != last {
		t.Errorf("saw up to %d of %d, error %v", at, last, err)
	}
}

// followChain reads events that each replace the one before.
func followChain(ctx context.Context, w storage.Watcher, at, last storage.Revision) (storage.Revision, error) {
	for at < last {
		batch, err := w.Next(ctx)
		if err != nil {
			return at, err
		}
		for _, event := range batch.Events {
			if event.Previous.Revision != at {
				return at, errors.New("a gap: " + strconv.Itoa(int(at)) + " is followed by what replaced " + strconv.Itoa(int(event.Previous.Revision)))
			}
			at = event.Revision
		}
	}
	return at, nil
}

// heap returns the live bytes of this process.
func heap() int {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}
