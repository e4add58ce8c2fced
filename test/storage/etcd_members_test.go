package storage_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/even-keel/evenkeel/storage"
	"github.com/even-keel/evenkeel/storage/etcd"
	"github.com/even-keel/evenkeel/test/storage/etcdtest"
)

// load is a store under writers, readers and watchers while its cluster is
// disturbed.
type load struct {
	t     *testing.T
	store storage.Store

	mu      sync.Mutex
	grown   sync.Cond
	acked   map[storage.Key][]storage.Revision
	commits int
	reads   int
	failed  bool
}

const loadKeys = 3

func newLoad(t *testing.T, store storage.Store) *load {
	l := &load{t: t, store: store, acked: map[storage.Key][]storage.Revision{}}
	l.grown.L = &l.mu
	return l
}

func (l *load) fail(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.t.Errorf(format, args...)
	l.failed = true
	l.grown.Broadcast()
}

func (l *load) newest(key storage.Key) storage.Revision {
	l.mu.Lock()
	defer l.mu.Unlock()
	if revisions := l.acked[key]; len(revisions) > 0 {
		return revisions[len(revisions)-1]
	}
	return 0
}

// await returns once there have been more commits, and more reads.
func (l *load) await(more int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	commits, reads := l.commits+more, l.reads+more
	for !l.failed && (l.commits < commits || l.reads < reads) {
		l.grown.Wait()
	}
}

// write replaces a key again and again. After an error that leaves open whether
// the write happened it looks.
func (l *load) write(ctx context.Context, key storage.Key) {
	var at storage.Revision
	for n := 0; ctx.Err() == nil; n++ {
		result, err := l.store.Commit(ctx, storage.Replace(key, []byte(strconv.Itoa(n)), at))
		switch {
		case err == nil:
			at = result.Revision
			l.mu.Lock()
			l.acked[key] = append(l.acked[key], at)
			l.commits++
			l.grown.Broadcast()
			l.mu.Unlock()
		case errors.Is(err, storage.ErrConflict):
			at = result.Previous.Revision
		case errors.Is(err, storage.ErrUnavailable):
			if entry, err := l.store.Get(ctx, key); err == nil {
				at = entry.Revision
			}
		case ctx.Err() == nil:
			l.fail("write: %v", err)
			return
		}
	}
}

// read checks that no read is older than a commit that returned before it.
func (l *load) read(ctx context.Context, key storage.Key) {
	for ctx.Err() == nil {
		want := l.newest(key)
		entry, err := l.store.Get(ctx, key)
		switch {
		case err == nil && entry.Revision < want, errors.Is(err, storage.ErrNotFound) && want > 0:
			l.fail("%q reads as %d after %d was acknowledged", key, entry.Revision, want)
			return
		case err == nil:
			l.mu.Lock()
			l.reads++
			l.grown.Broadcast()
			l.mu.Unlock()
		case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrUnavailable):
		case ctx.Err() == nil:
			l.fail("read: %v", err)
			return
		}
	}
}

// watch collects events until done is closed and those of all writes have come.
func (l *load) watch(ctx context.Context, w storage.Watcher, done <-chan storage.Revision) []storage.Event {
	var events []storage.Event
	var until storage.Revision
	for through := storage.Revision(0); until == 0 || through < until; {
		select {
		case until = <-done:
			w.RequestProgress()
		default:
		}
		batch, err := w.Next(ctx)
		if err != nil {
			l.fail("watch: %v", err)
			return events
		}
		events = append(events, batch.Events...)
		through = batch.Through
	}
	return events
}

// run disturbs the cluster under load and then checks what the watchers saw.
func (l *load) run(disturb func()) {
	l.t.Helper()
	start := mustHead(l.t, l.store)
	const watchers = 6 // round-robin puts them on all members
	watched := make([][]storage.Event, watchers)
	done := make([]chan storage.Revision, watchers)
	cursors := make([]storage.Watcher, watchers)
	var observers, traffic sync.WaitGroup
	for i := range watchers {
		done[i] = make(chan storage.Revision, 1)
		cursors[i] = l.store.Watch("", start)
		defer cursors[i].Close()
		observers.Go(func() { watched[i] = l.watch(l.t.Context(), cursors[i], done[i]) })
	}
	ctx, stop := context.WithCancel(l.t.Context())
	defer stop()
	for i := range loadKeys {
		key := storage.Key("key" + strconv.Itoa(i))
		traffic.Go(func() { l.write(ctx, key) })
		traffic.Go(func() { l.read(ctx, key) })
	}
	l.await(20)
	disturb()
	l.await(20)
	stop()
	traffic.Wait()

	// One more write wakes those who wait for an event.
	end := mustCommit(l.t, l.store, storage.Create("end", nil))
	for i := range done {
		done[i] <- end
		cursors[i].RequestProgress()
	}
	observers.Wait()
	l.check(watched)
}

// check: every watcher saw every write once, and what each one replaced.
func (l *load) check(watched [][]storage.Event) {
	l.t.Helper()
	last := map[storage.Key]storage.Revision{}
	seen := map[storage.Revision]bool{}
	for _, event := range watched[0] {
		if event.Previous.Revision != last[event.Key] {
			l.t.Errorf("event %d of %q replaced %d, the event before was %d", event.Revision, event.Key, event.Previous.Revision, last[event.Key])
		}
		last[event.Key], seen[event.Revision] = event.Revision, true
	}
	for key, revisions := range l.acked {
		for _, revision := range revisions {
			if !seen[revision] {
				l.t.Errorf("write %d of %q was acknowledged and not watched", revision, key)
			}
		}
		if entry, err := l.store.Get(l.t.Context(), key); err != nil || entry.Revision != last[key] {
			l.t.Errorf("%q stands at %d, error %v; the last event was %d", key, entry.Revision, err, last[key])
		}
	}
	for i, events := range watched[1:] {
		if diff := cmp.Diff(watched[0], events); diff != "" {
			l.t.Errorf("watchers 0 and %d differ (-0 +%d):\n%.2000s", i+1, i+1, diff)
		}
	}
	l.t.Logf("%d commits and %d reads acknowledged, %d events", l.commits, l.reads, len(watched[0]))
}

// TestEtcdMembersCome and go while the store is used. Each is lost once, so
// that every watcher loses the one it is connected to.
func TestEtcdMembersComeAndGo(t *testing.T) {
	cluster := etcdtest.Start(t, 3)
	l := newLoad(t, openEtcd(t, etcd.Options{Endpoints: cluster.Endpoints()}))
	l.run(func() {
		for i := range 3 {
			cluster.Kill(i)
			l.await(30)
			cluster.Restart(i)
			l.await(30)
		}
	})
}

func TestEtcdLeadersComeAndGo(t *testing.T) {
	cluster := etcdtest.Start(t, 3)
	l := newLoad(t, openEtcd(t, etcd.Options{Endpoints: cluster.Endpoints()}))
	l.run(func() {
		for range 3 {
			leader := cluster.Leader()
			cluster.Kill(leader)
			l.await(30)
			cluster.Restart(leader)
			l.await(30)
		}
	})
}

// TestEtcdMemberIsCutOff: a member that clients reach but the quorum does not
// must not keep its watchers. Each event has to come while it is cut off.
func TestEtcdMemberIsCutOff(t *testing.T) {
	cluster := etcdtest.Start(t, 3)
	store := openEtcd(t, etcd.Options{Endpoints: cluster.Endpoints(), RequestTimeout: time.Second})
	at := mustCommit(t, store, storage.Create("a", []byte("1")))
	watchers := make([]storage.Watcher, 6) // round-robin puts them on all members
	for i := range watchers {
		watchers[i] = store.Watch("", at-1)
		defer watchers[i].Close()
	}
	see := func() {
		t.Helper()
		for i, w := range watchers {
			batch, err := w.Next(t.Context())
			if err != nil || len(batch.Events) != 1 || batch.Events[0].Revision != at {
				t.Fatalf("watcher %d: %+v, error %v; want the write %d", i, batch, err, at)
			}
		}
	}
	see()
	for i := range 3 {
		cluster.Isolate(i)
		var err error
		if at, err = replaceOnceAvailable(t.Context(), store, "a", at); err != nil {
			t.Fatal(err)
		}
		see()
		cluster.Rejoin(i)
	}
}

// TestEtcdWithoutQuorum refuses and goes on where it was.
func TestEtcdWithoutQuorum(t *testing.T) {
	cluster := etcdtest.Start(t, 3)
	store := openEtcd(t, etcd.Options{Endpoints: cluster.Endpoints(), RequestTimeout: time.Second})
	first := mustCommit(t, store, storage.Create("a", []byte("1")))
	w := store.Watch("", first-1)
	defer w.Close()
	if batch, err := w.Next(t.Context()); err != nil || len(batch.Events) != 1 {
		t.Fatalf("got %+v, error %v", batch, err)
	}

	lost := []int{cluster.Leader(), (cluster.Leader() + 1) % 3}
	for _, i := range lost {
		cluster.Kill(i)
	}
	_, err := store.Get(t.Context(), "a")
	wantErr(t, err, storage.ErrUnavailable)
	_, err = store.Head(t.Context())
	wantErr(t, err, storage.ErrUnavailable)
	wantErr(t, store.Health(t.Context()), storage.ErrUnavailable)
	_, err = store.Commit(t.Context(), storage.Create("b", nil))
	wantErr(t, err, storage.ErrUnavailable)
	if errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v is an error of a context that the caller did not set", err)
	}
	impatient, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = w.Next(impatient)
	wantErr(t, err, context.DeadlineExceeded)

	for _, i := range lost {
		cluster.Restart(i)
	}
	last, err := replaceOnceAvailable(t.Context(), store, "a", first)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Health(t.Context()); err != nil {
		t.Error(err)
	}
	var seen []string
	events, err := readThrough(t.Context(), w, last)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if e.Key == "a" { // "b" may have been written
			seen = append(seen, fmt.Sprintf("%s %d->%d", e.Key, e.Previous.Revision, e.Revision))
		}
	}
	if want := []string{fmt.Sprintf("a %d->%d", first, last)}; !cmp.Equal(want, seen) {
		t.Errorf("events %v, want %v", seen, want)
	}
}

// replaceOnceAvailable tries until the cluster takes the write.
func replaceOnceAvailable(ctx context.Context, store storage.Store, key storage.Key, at storage.Revision) (storage.Revision, error) {
	for {
		result, err := store.Commit(ctx, storage.Replace(key, []byte("2"), at))
		switch {
		case errors.Is(err, storage.ErrConflict):
			return result.Previous.Revision, nil // an attempt that seemed to fail
		case !errors.Is(err, storage.ErrUnavailable):
			return result.Revision, err
		}
	}
}
