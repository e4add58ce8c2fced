package watch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/even-keel/evenkeel/storage"
	"github.com/even-keel/evenkeel/storage/embedded"
)

// stage is a store with a hub that follows it.
type stage struct {
	t     *testing.T
	store storage.Store
	hub   *Hub
}

func newStage(t *testing.T, prepare func(storage.Store)) *stage {
	t.Helper()
	store, err := embedded.Open(embedded.Options{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	if prepare != nil {
		prepare(store)
	}
	s := &stage{t: t, store: store, hub: New(store)}
	if err := s.hub.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.hub.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the hub ended with %v", err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func body(name, text string) []byte {
	return fmt.Appendf(nil, `{"kind":"Pod","metadata":{"name":%q,"resourceVersion":%q},"text":%q}`, name, Placeholder, text)
}

func put(ctx context.Context, store storage.Store, resource, namespace, name, text string, at storage.Revision) (storage.Revision, error) {
	value, err := Stored(body(name, text))
	if err != nil {
		return 0, err
	}
	r, err := store.Commit(ctx, storage.Replace(Key(resource, namespace, name), value, at))
	return r.Revision, err
}

func (s *stage) put(resource, namespace, name, text string, at storage.Revision) storage.Revision {
	s.t.Helper()
	rev, err := put(s.t.Context(), s.store, resource, namespace, name, text, at)
	if err != nil {
		s.t.Fatal(err)
	}
	return rev
}

func (s *stage) remove(resource, namespace, name string, at storage.Revision) storage.Revision {
	s.t.Helper()
	r, err := s.store.Commit(s.t.Context(), storage.Delete(Key(resource, namespace, name), at))
	if err != nil {
		s.t.Fatal(err)
	}
	return r.Revision
}

func (s *stage) sync() {
	s.t.Helper()
	if err := s.hub.Sync(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

func jsonOf(name, text string, rev storage.Revision) string {
	return fmt.Sprintf(`{"kind":"Pod","metadata":{"name":%q,"resourceVersion":"%d"},"text":%q}`, name, rev, text)
}

func TestObjectsCarryTheirRevision(t *testing.T) {
	s := newStage(t, nil)
	rev := s.put("pods", "default", "a", "1", 0)
	s.sync()
	o := s.hub.Resource("pods").Get("default", "a")
	if o == nil || string(o.AppendJSON(nil)) != jsonOf("a", "1", rev) || o.Len() != len(jsonOf("a", "1", rev)) {
		t.Fatalf("the object is %s", o.AppendJSON(nil))
	}
	if got := string(o.At(99).AppendJSON(nil)); got != jsonOf("a", "1", 99) {
		t.Errorf("at another revision it is %s", got)
	}
}

func TestObjectsWithoutAPlaceForTheRevisionAreRefused(t *testing.T) {
	if _, err := Stored([]byte(`{"metadata":{"resourceVersion":"5"}}`)); err == nil {
		t.Error("an object was stored that cannot carry its revision")
	}
}

func TestDamagedValuesAreNotObjects(t *testing.T) {
	for name, c := range map[string]struct {
		key   storage.Key
		value []byte
	}{
		"empty":        {"pods/a/b", nil},
		"other format": {"pods/a/b", []byte{9, 0}},
		"split beyond": {"pods/a/b", []byte{storedFormat, 200, 1, '{', '}'}},
		"no split":     {"pods/a/b", []byte{storedFormat}},
		"bad key":      {"pods", []byte{storedFormat, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := NewObject(c.key, c.value, 1); !errors.Is(err, storage.ErrCorrupt) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestLoadedStateIsThereBeforeAnyEvent(t *testing.T) {
	s := newStage(t, func(store storage.Store) {
		for i := range 3 * loadPage / 2 {
			if _, err := put(t.Context(), store, "pods", "default", fmt.Sprintf("p%05d", i), "x", 0); err != nil {
				t.Fatal(err)
			}
		}
	})
	if n := s.hub.Resource("pods").Snapshot().Len(); n != 3*loadPage/2 {
		t.Errorf("%d objects were loaded", n)
	}
}

func TestSnapshotsDoNotChange(t *testing.T) {
	s := newStage(t, nil)
	rev := s.put("pods", "default", "a", "1", 0)
	s.sync()
	before := s.hub.Resource("pods").Snapshot()
	s.put("pods", "default", "b", "1", 0)
	s.remove("pods", "default", "a", rev)
	s.sync()
	var names []string
	before.Scan("default", "", func(o *Object) bool { names = append(names, o.Name); return true })
	if len(names) != 1 || names[0] != "a" {
		t.Errorf("the old snapshot holds %v", names)
	}
	if before.Revision != rev {
		t.Errorf("the old snapshot is of revision %d, not %d", before.Revision, rev)
	}
}

func TestScansKeepToTheirNamespace(t *testing.T) {
	s := newStage(t, nil)
	for _, ns := range []string{"a", "a-b", "b"} {
		s.put("pods", ns, "x", "1", 0)
		s.put("pods", ns, "y", "1", 0)
	}
	s.sync()
	for namespace, want := range map[string]int{"a": 2, "a-b": 2, "": 6, "none": 0} {
		n := 0
		s.hub.Resource("pods").Snapshot().Scan(namespace, "", func(*Object) bool { n++; return true })
		if n != want {
			t.Errorf("namespace %q has %d objects, not %d", namespace, n, want)
		}
	}
}

// next reads a cursor until it has n events.
func next(t *testing.T, c *Cursor, n int) []*Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out []*Event
	for len(out) < n {
		events, err := c.Next(ctx)
		if err != nil {
			t.Fatalf("after %d of %d events: %v", len(out), n, err)
		}
		out = append(out, events...)
	}
	return out
}

func TestCursorsSeeTheirResourceOnly(t *testing.T) {
	s := newStage(t, nil)
	c := s.hub.Resource("pods").Watch(s.hub.Through())
	defer c.Close()
	s.put("nodes", "", "n", "1", 0)
	rev := s.put("pods", "default", "a", "1", 0)
	again := s.put("pods", "default", "a", "2", rev)
	gone := s.remove("pods", "default", "a", again)
	events := next(t, c, 3)
	if e := events[0]; e.Revision != rev || e.Previous != nil || e.Object == nil {
		t.Errorf("the first event is %+v", e)
	}
	if e := events[1]; e.Previous != events[0].Object {
		t.Error("the object before is not the one that was there")
	}
	if e := events[2]; e.Revision != gone || e.Object != nil || e.Previous != events[1].Object {
		t.Errorf("the last event is %+v", e)
	}
}

// TestCursorsLeftBehindReadTheLog starts long before what the ring holds.
func TestCursorsLeftBehindReadTheLog(t *testing.T) {
	s := newStage(t, nil)
	start := s.hub.Through()
	const writes = 2*ringEvents + 100
	var at storage.Revision
	for range writes {
		at = s.put("pods", "default", "hot", "x", at)
	}
	s.sync()
	c := s.hub.Resource("pods").Watch(start)
	defer c.Close()
	events := next(t, c, writes)
	for i, e := range events {
		if want := start + storage.Revision(i) + 1; e.Revision != want {
			t.Fatalf("event %d has revision %d, not %d", i, e.Revision, want)
		}
	}
	at = s.put("pods", "default", "hot", "y", at)
	if e := next(t, c, 1); e[0].Revision != at {
		t.Errorf("after the log the live event %d was expected, not %d", at, e[0].Revision)
	}
}

func TestCompactedCursorsSaySo(t *testing.T) {
	s := newStage(t, nil)
	start := s.hub.Through()
	var at storage.Revision
	for range ringEvents + 100 {
		at = s.put("pods", "default", "hot", "x", at)
	}
	s.sync()
	if err := s.store.Compact(t.Context(), start+50); err != nil {
		t.Fatal(err)
	}
	c := s.hub.Resource("pods").Watch(start)
	defer c.Close()
	if _, err := c.Next(t.Context()); !errors.Is(err, storage.ErrCompacted) {
		t.Errorf("got %v", err)
	}
}

// late is a store whose first watcher is told of nothing before it may be.
type late struct {
	storage.Store
	may chan struct{}
}

func (l *late) Watch(prefix storage.Key, after storage.Revision) storage.Watcher {
	return &lateWatcher{l.Store.Watch(prefix, after), l.may}
}

type lateWatcher struct {
	storage.Watcher
	may chan struct{}
}

func (w *lateWatcher) Next(ctx context.Context) (storage.Batch, error) {
	select {
	case <-w.may:
		return w.Watcher.Next(ctx)
	case <-ctx.Done():
		return storage.Batch{}, ctx.Err()
	}
}

func TestAHubThatTheStoreHasLeftBehindLoadsAnew(t *testing.T) {
	memory, err := embedded.Open(embedded.Options{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	store := &late{memory, make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	gone, err := put(ctx, store, "pods", "a", "gone", "1", 0)
	if err != nil {
		t.Fatal(err)
	}
	hub := New(store)
	if err := hub.Load(ctx); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- hub.Run(ctx) }()
	cursor := hub.Resource("pods").Watch(hub.Through())
	defer cursor.Close()

	if _, err := store.Commit(ctx, storage.Delete(Key("pods", "a", "gone"), gone)); err != nil {
		t.Fatal(err)
	}
	head, err := put(ctx, store, "pods", "a", "new", "1", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Compact(ctx, head); err != nil {
		t.Fatal(err)
	}
	close(store.may)

	if err := hub.Wait(ctx, head); err != nil {
		t.Fatal(err)
	}
	pods := hub.Resource("pods")
	if pods.Get("a", "gone") != nil || pods.Get("a", "new") == nil {
		t.Errorf("gone: %v, new: %v", pods.Get("a", "gone"), pods.Get("a", "new"))
	}
	if _, err := cursor.Next(ctx); !errors.Is(err, storage.ErrCompacted) {
		t.Errorf("a cursor from before: %v", err)
	}
	fresh := pods.Watch(head)
	defer fresh.Close()
	if _, err := put(ctx, store, "pods", "a", "newer", "1", 0); err != nil {
		t.Fatal(err)
	}
	events, err := fresh.Next(ctx)
	if err != nil || len(events) != 1 || events[0].Object.Name != "newer" {
		t.Errorf("a cursor from after: %v, %v", events, err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := memory.Close(); err != nil {
		t.Error(err)
	}
}

func TestIdleCursorsMoveWithTheHub(t *testing.T) {
	s := newStage(t, nil)
	c := s.hub.Resource("pods").Watch(s.hub.Through())
	defer c.Close()
	rev := s.put("nodes", "", "n", "1", 0)
	s.sync()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := c.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	if c.Position() != rev {
		t.Errorf("the cursor is at %d, the hub at %d", c.Position(), rev)
	}
}

func TestWaitEndsWithTheHub(t *testing.T) {
	store, err := embedded.Open(embedded.Options{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	h := New(store)
	if err := h.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- h.Run(context.Background()) }()
	waited := make(chan error, 1)
	go func() { waited <- h.Wait(context.Background(), 1000) }()
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, storage.ErrClosed) {
		t.Errorf("the hub ended with %v", err)
	}
	if err := <-waited; !errors.Is(err, storage.ErrClosed) {
		t.Errorf("the wait ended with %v", err)
	}
}

// TestListThenWatchMissesNothing follows random writes from a snapshot, under
// several readers, and compares with the state at the end.
func TestListThenWatchMissesNothing(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	s := newStage(t, nil)
	ctx := t.Context()
	var writers, readers sync.WaitGroup
	stop := make(chan struct{})
	for w := range 4 {
		rng := rand.New(rand.NewPCG(seed, uint64(w)))
		writers.Go(func() {
			for n := range 1500 {
				name := fmt.Sprintf("w%d-%d", w, rng.IntN(30))
				at := storage.Revision(0)
				if e, err := s.store.Get(ctx, Key("pods", "default", name)); err == nil {
					at = e.Revision
				}
				if at != 0 && rng.IntN(3) == 0 {
					s.remove("pods", "default", name, at)
				} else {
					s.put("pods", "default", name, fmt.Sprint(n), at)
				}
			}
		})
	}
	final := make(chan storage.Revision)
	for range 4 {
		readers.Go(func() { follow(t, s, stop, final) })
	}
	writers.Wait()
	s.sync()
	close(stop)
	for range 4 {
		final <- s.hub.Through()
	}
	readers.Wait()
}

// follow lists once, then watches, and at the end holds its state to the truth.
func follow(t *testing.T, s *stage, stop <-chan struct{}, final <-chan storage.Revision) {
	r := s.hub.Resource("pods")
	snapshot := r.Snapshot()
	state := map[string]storage.Revision{}
	snapshot.Scan("", "", func(o *Object) bool { state[o.Name] = o.Revision; return true })
	c := r.Watch(snapshot.Revision)
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var end storage.Revision
	for {
		if end == 0 {
			select {
			case <-stop:
				end = <-final
			default:
			}
		}
		if end != 0 && c.Position() >= end {
			break
		}
		wait, done := context.WithTimeout(ctx, 10*time.Millisecond)
		events, err := c.Next(wait)
		done()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
			return
		}
		for _, e := range events {
			if e.Object != nil {
				state[e.Object.Name] = e.Revision
			} else {
				delete(state, e.Previous.Name)
			}
		}
	}
	truth := map[string]storage.Revision{}
	r.Snapshot().Scan("", "", func(o *Object) bool { truth[o.Name] = o.Revision; return true })
	if fmt.Sprint(state) != fmt.Sprint(truth) {
		t.Errorf("followed to %v, the truth is %v", state, truth)
	}
}
