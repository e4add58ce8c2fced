package informer_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/informer"
)

type mapClient = *client.Client[*corev1.ConfigMap]

// journal writes down what a handler is told.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (l *journal) add(d informer.Delta[*corev1.ConfigMap]) {
	line := d.Type.String() + " " + d.Key.Name + "=" + d.Object().Data["v"]
	if d.Initial {
		line += " initial"
	}
	if d.Unknown {
		line += " unknown"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

func (l *journal) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}

// eventually waits until f is true.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if f() {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("%s: not within 10 s", what)
		}
	}
}

// expect waits until the handler has been told these things, in this order.
func (l *journal) expect(t testing.TB, want ...string) {
	t.Helper()
	var got []string
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		got = append(got, l.take()...)
		if len(got) >= len(want) || time.Now().After(until) {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("the handler heard\n\t%s\nand not\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

func start(t testing.TB, conn *client.Conn, c informer.Config) *informer.Set {
	t.Helper()
	set := informer.NewSet(conn, c)
	t.Cleanup(set.Shutdown)
	set.Start()
	return set
}

func sync1(t testing.TB, w interface{ WaitForSync(context.Context) error }) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := w.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
}

func put(t testing.TB, c mapClient, name, value string) {
	t.Helper()
	obj, err := c.Get(t.Context(), client.Key{Name: name})
	if client.IsNotFound(err) {
		_, err = c.Create(t.Context(), configMap(name, map[string]string{"v": value}))
	} else if err == nil {
		obj.Data = map[string]string{"v": value}
		_, err = c.Update(t.Context(), obj)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func remove(t testing.TB, c mapClient, name string) {
	t.Helper()
	if err := c.Delete(t.Context(), client.Key{Name: name}); err != nil {
		t.Fatal(err)
	}
}

func TestHandlersHearOfChanges(t *testing.T) {
	conn := connect(t, nil)
	ns := namespace(t, conn)
	c := client.Of[*corev1.ConfigMap](conn).In(ns)
	put(t, c, "a", "1")
	set := start(t, conn, informer.Config{})
	in := informer.For[*corev1.ConfigMap](set, informer.InNamespace(ns))
	var early journal
	reg := in.Handle(early.add)
	sync1(t, set)
	<-reg.Synced()
	early.expect(t, "Added a=1 initial")
	put(t, c, "a", "2")
	put(t, c, "b", "1")
	early.expect(t, "Updated a=2", "Added b=1")

	var late journal
	<-in.Handle(late.add).Synced()
	late.expect(t, "Added a=2 initial", "Added b=1 initial")
	remove(t, c, "a")
	early.expect(t, "Deleted a=2")
	late.expect(t, "Deleted a=2")

	reg.Remove()
	<-reg.Done()
	put(t, c, "b", "2")
	late.expect(t, "Updated b=2")
	if lines := early.take(); lines != nil {
		t.Errorf("a handler that was removed heard %q", lines)
	}
	if got, ok := in.Get(ns, "b"); !ok || got.Data["v"] != "2" {
		t.Errorf("the cache has %v", got)
	}
}

// broken connects through a wire, with a namespace that has a=1, and an informer
// of it that is synced.
func broken(t *testing.T, opts ...informer.Option) (*wire, mapClient, *informer.Informer[*corev1.ConfigMap], *journal) {
	t.Helper()
	direct := connect(t, nil)
	ns := namespace(t, direct)
	c := client.Of[*corev1.ConfigMap](direct).In(ns)
	put(t, c, "a", "1")
	w := &wire{}
	set := start(t, connect(t, w.through), informer.Config{MinBackoff: time.Millisecond, MaxBackoff: 10 * time.Millisecond})
	in := informer.For[*corev1.ConfigMap](set, append(opts, informer.InNamespace(ns))...)
	l := &journal{}
	reg := in.Handle(l.add)
	sync1(t, in)
	<-reg.Synced()
	l.expect(t, "Added a=1 initial")
	return w, c, in, l
}

func refuseAll(*http.Request) (*http.Response, error) {
	return refusal(503, "ServiceUnavailable"), nil
}

func TestABrokenWatchGoesOn(t *testing.T) {
	for name, err := range map[string]error{"reset": errReset, "end": io.EOF} {
		t.Run(name, func(t *testing.T) {
			w, c, in, l := broken(t)
			w.answers(refuseAll)
			w.cut(err)
			remove(t, c, "a")
			put(t, c, "b", "1")
			eventually(t, "the error is shown", func() bool { return in.Status().Err != nil })
			w.requests()
			w.answers(nil)
			l.expect(t, "Deleted a=1", "Added b=1")
			eventually(t, "the error is gone", func() bool { return in.Status().Err == nil })
			for _, r := range w.requests() {
				if !strings.Contains(r, "resourceVersion=") || strings.Contains(r, "sendInitialEvents") {
					t.Errorf("it did not go on, but began again: %s", r)
				}
			}
		})
	}
}

// expired has the next watch be answered with 410.
func expired(w *wire) {
	w.answers(once(func(r *http.Request) bool { return isWatch(r) && r.URL.Query().Get("resourceVersion") != "" },
		func() (*http.Response, error) { return refusal(410, "Expired"), nil }))
}

func TestWhatWasMissedIsToldByAReplace(t *testing.T) {
	for name, opts := range map[string][]informer.Option{"watchlist": nil, "list": {informer.NoWatchList()}} {
		t.Run(name, func(t *testing.T) {
			w, c, _, l := broken(t, opts...)
			put(t, c, "b", "1")
			put(t, c, "c", "1")
			put(t, c, "d", "1")
			l.expect(t, "Added b=1", "Added c=1", "Added d=1")
			w.answers(refuseAll)
			w.cut(errReset)
			remove(t, c, "a")
			put(t, c, "b", "2")
			remove(t, c, "c")
			put(t, c, "c", "new")
			put(t, c, "e", "1")
			expired(w)
			l.expect(t, "Replaced b=2", "Deleted c=1 unknown", "Added c=new", "Added e=1", "Deleted a=1 unknown")
		})
	}
}

func TestRecreatedObjectsAreOthers(t *testing.T) {
	_, c, in, l := broken(t)
	gate, entered := make(chan struct{}), make(chan struct{})
	slow := &journal{}
	var first sync.Once
	in.Handle(func(d informer.Delta[*corev1.ConfigMap]) {
		first.Do(func() {
			close(entered)
			<-gate
		})
		slow.add(d)
	})
	<-entered
	for _, value := range []string{"2", "", "3", "", "4", "5"} {
		if value == "" {
			remove(t, c, "a")
		} else {
			put(t, c, "a", value)
		}
		eventually(t, "a change is seen", func() bool { return len(l.take()) > 0 })
	}
	close(gate)
	slow.expect(t, "Added a=1 initial", "Deleted a=2", "Added a=5")
}
