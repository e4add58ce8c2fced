package informer_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/cache"
	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/informer"
)

// gate holds back what watches tell while it is shut.
type gate struct {
	mu   sync.Mutex
	open chan struct{} // nil: nothing is held back
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open == nil {
		g.open = make(chan struct{})
	}
}

func (g *gate) let() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open != nil {
		close(g.open)
		g.open = nil
	}
}

func (g *gate) wait() {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	if open != nil {
		<-open
	}
}

func (g *gate) through(rt http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		resp, err := rt.RoundTrip(r)
		if err == nil && strings.Contains(r.URL.RawQuery, "watch=") {
			resp.Body = gated{resp.Body, g}
		}
		return resp, err
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type gated struct {
	io.ReadCloser
	g *gate
}

func (b gated) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.g.wait()
	return n, err
}

// layered is a source whose clients of ConfigMaps have a layer.
type layered struct {
	client.Source
	layer client.Layer
}

func (l layered) Layer(kind schema.GroupVersionKind, _ client.Form) client.Layer {
	if kind.Kind != "ConfigMap" {
		return nil
	}
	return l.layer
}

// desk is a writer with a layer whose watch can be held back, and somebody else.
type desk struct {
	t      *testing.T
	gate   *gate
	layer  *informer.Layer[*corev1.ConfigMap]
	mine   *client.Client[*corev1.ConfigMap]
	theirs *client.Client[*corev1.ConfigMap]
	space  string
}

func newDesk(t *testing.T, opts ...informer.Option) *desk {
	t.Helper()
	d := &desk{t: t, gate: &gate{}}
	conn := connect(t, d.gate.through)
	d.space = namespace(t, conn)
	set := informer.NewSet(conn, informer.Config{})
	in := informer.For[*corev1.ConfigMap](set, append([]informer.Option{informer.InNamespace(d.space)}, opts...)...)
	set.Start()
	t.Cleanup(set.Shutdown)
	t.Cleanup(func() { d.gate.let() })
	if err := set.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.layer = informer.NewLayer(in)
	d.mine = client.Of[*corev1.ConfigMap](layered{conn, d.layer})
	d.theirs = client.Of[*corev1.ConfigMap](connect(t, nil))
	d.gate.shut()
	return d
}

// A read costs the same however much there is: what adds up the whole cache, as
// Status does, allocates.
func TestReadsOfALayerLookAtOneObject(t *testing.T) {
	d := newDesk(t)
	d.gate.let()
	d.create("a", "web")
	ctx := t.Context()
	for d.layer.Pending() > 0 {
		if err := ctx.Err(); err != nil {
			t.Fatal(err)
		}
	}
	allocs := testing.AllocsPerRun(100, func() {
		if _, err := d.layer.Get(ctx, d.key("a")); err != nil {
			t.Error(err)
		}
	})
	if allocs > 0 {
		t.Errorf("a Get allocates %v times", allocs)
	}
}

func (d *desk) key(name string) client.Key { return client.Key{Namespace: d.space, Name: name} }

func (d *desk) config(name, app string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: d.space, Name: name, Labels: map[string]string{"app": app}}}
}

func (d *desk) create(name, app string) *corev1.ConfigMap {
	d.t.Helper()
	made, err := d.mine.Create(d.t.Context(), d.config(name, app))
	if err != nil {
		d.t.Fatal(err)
	}
	return made
}

func (d *desk) update(obj *corev1.ConfigMap, app string) *corev1.ConfigMap {
	d.t.Helper()
	obj = obj.DeepCopy()
	obj.Labels["app"] = app
	made, err := d.mine.Update(d.t.Context(), obj)
	if err != nil {
		d.t.Fatal(err)
	}
	return made
}

func (d *desk) delete(name string) {
	d.t.Helper()
	if err := d.mine.Delete(d.t.Context(), d.key(name)); err != nil {
		d.t.Fatal(err)
	}
}

// names lists what the writer sees of an app.
func (d *desk) names(app string) string {
	d.t.Helper()
	var names []string
	for obj, err := range d.mine.In(d.space).List(d.t.Context(), client.Label("app", app)) {
		if err != nil {
			d.t.Fatal(err)
		}
		names = append(names, obj.Name)
	}
	return strings.Join(names, " ")
}

func (d *desk) sees(name string) bool {
	d.t.Helper()
	_, err := d.mine.Get(d.t.Context(), d.key(name))
	if err != nil && !client.IsNotFound(err) {
		d.t.Fatal(err)
	}
	return err == nil
}

func (d *desk) expect(app, want string) {
	d.t.Helper()
	if got := d.names(app); got != want {
		d.t.Errorf("of app %s the writer sees %q, want %q", app, got, want)
	}
}

func TestAWriterSeesItsWritesBeforeTheWatchDoes(t *testing.T) {
	d := newDesk(t)
	b := d.create("b", "web")
	d.create("a", "web")
	d.create("c", "shop")
	d.expect("web", "a b")
	b = d.update(b, "shop")
	d.expect("web", "a")
	d.expect("shop", "b c")
	if got, err := d.mine.Get(t.Context(), d.key("b")); err != nil || got.Labels["app"] != "shop" || got.ResourceVersion != b.ResourceVersion {
		t.Errorf("b is read as %v, %v", got, err)
	}
	d.delete("a")
	d.expect("web", "")
	if d.sees("a") {
		t.Error("a is deleted and still read")
	}
	again := d.create("a", "web")
	if got, err := d.mine.Get(t.Context(), d.key("a")); err != nil || got.UID != again.UID {
		t.Errorf("the new a is read as %v, %v", got, err)
	}
	d.expect("web", "a")
}

// Others who read at the same time, and find that the watch has told of a write, do
// not take it from a writer that looked at the cache before.
func TestAWriterSeesItsWritesWhileOthersRead(t *testing.T) {
	d := newDesk(t)
	d.gate.let()
	a := d.create("a", "web")
	var readers sync.WaitGroup
	defer readers.Wait()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for range 4 {
		readers.Go(func() {
			for ctx.Err() == nil {
				d.layer.Pending()
			}
		})
	}
	for i := range 300 {
		a = d.update(a, fmt.Sprint("web", i))
		for range 300 {
			got, err := d.mine.Get(t.Context(), d.key("a"))
			if err != nil || got.ResourceVersion != a.ResourceVersion {
				t.Fatalf("after write %d the writer reads %s, %v; want %s", i, got.ResourceVersion, err, a.ResourceVersion)
			}
		}
	}
}

func TestAnswersMayComeInAnyOrder(t *testing.T) {
	d := newDesk(t)
	first := d.create("a", "web")
	second := d.update(first.DeepCopy(), "shop")
	d.layer.Wrote(client.Write{Key: d.key("a"), Object: first})
	d.expect("shop", "a")
	d.delete("a")
	d.layer.Wrote(client.Write{Key: d.key("a"), Object: second})
	d.expect("shop", "")
	d.create("a", "web")
	d.expect("web", "a")
}

func TestWhatTheCacheHasIsHiddenOnceItIsDeleted(t *testing.T) {
	d := newDesk(t)
	d.gate.let()
	d.create("a", "web")
	eventually(t, "it came", func() bool { return d.layer.Pending() == 0 })
	d.gate.shut()
	d.delete("a")
	d.expect("web", "")
	if d.sees("a") {
		t.Error("a is deleted and still read")
	}
	d.create("a", "shop")
	d.expect("web", "")
	d.expect("shop", "a")
}

func TestWhoTookTheNameOfWhatWasDeletedIsSeen(t *testing.T) {
	d := newDesk(t)
	d.gate.let()
	old := d.create("a", "web")
	eventually(t, "it came", func() bool { return d.layer.Pending() == 0 })
	if err := d.theirs.Delete(t.Context(), d.key("a")); err != nil {
		t.Fatal(err)
	}
	now, err := d.theirs.Create(t.Context(), d.config("a", "web"))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other came", func() bool {
		got, err := d.mine.Get(t.Context(), d.key("a"))
		return err == nil && got.UID == now.UID
	})
	d.gate.shut()
	d.layer.Wrote(client.Write{Key: d.key("a"), Delete: true, UID: old.UID}) // an answer that is slower than the watch
	d.expect("web", "a")
	d.layer.Wrote(client.Write{Key: d.key("a"), Delete: true, UID: now.UID})
	d.expect("web", "")
}

func TestADeletionThatWaitsForAFinalizerIsSeen(t *testing.T) {
	d := newDesk(t)
	held := d.config("a", "web")
	held.Finalizers = []string{"example.com/hold"}
	if _, err := d.mine.Create(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	d.delete("a")
	got, err := d.mine.Get(t.Context(), d.key("a"))
	if err != nil || got.DeletionTimestamp == nil {
		t.Fatalf("it is read as %v, %v", got, err)
	}
	got = got.DeepCopy()
	got.Finalizers = nil
	if _, err := d.mine.Update(t.Context(), got); err != nil {
		t.Fatal(err)
	}
	d.gate.let()
	eventually(t, "it came", func() bool { return !d.sees("a") })
}

func TestWhatLeavesTheScopeIsNotSeen(t *testing.T) {
	d := newDesk(t, informer.Labels("app=web"))
	a := d.create("a", "web")
	d.create("b", "shop")
	if !d.sees("a") || d.sees("b") {
		t.Error("a is in the scope and b is not")
	}
	d.update(a, "shop")
	if d.sees("a") {
		t.Error("a has left the scope")
	}
	d.expect("shop", "")
	d.gate.let()
	eventually(t, "it came", func() bool { return d.layer.Pending() == 0 })
	if d.sees("a") || d.sees("b") {
		t.Error("both are out of the scope")
	}
}

func TestOthersAreSeenOnceTheWatchTellsOfThem(t *testing.T) {
	d := newDesk(t)
	a := d.create("a", "web")
	theirs := a.DeepCopy()
	theirs.Labels["app"] = "theirs"
	if _, err := d.theirs.Update(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	d.expect("web", "a")
	d.gate.let()
	eventually(t, "it came", func() bool { return d.names("theirs") == "a" })
	if n := d.layer.Pending(); n != 0 {
		t.Errorf("%d writes are still shown", n)
	}
}

func TestWhatIsReadIsNotTheWritersOwn(t *testing.T) {
	d := newDesk(t)
	a := d.create("a", "web")
	a.Labels["app"] = "changed by its writer"
	d.expect("web", "a")
}

func TestOwnRevisionsAreKnown(t *testing.T) {
	d := newDesk(t)
	a := d.create("a", "web")
	theirs, err := d.theirs.Get(t.Context(), d.key("a"))
	if err != nil {
		t.Fatal(err)
	}
	theirs.Labels["app"] = "theirs"
	if theirs, err = d.theirs.Update(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	if !d.layer.Mine(cache.Revision(a.ResourceVersion)) || d.layer.Mine(cache.Revision(theirs.ResourceVersion)) {
		t.Error("one's own writes are not told from those of others")
	}
}

func TestWhatTheCacheCannotTellIsAskedOfTheServer(t *testing.T) {
	d := newDesk(t)
	d.create("a", "web")
	var names []string
	for obj, err := range d.mine.In(d.space).List(t.Context(), client.Field("metadata.name", "a"), client.NotOlderThan("0")) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, obj.Name)
	}
	if !slices.Equal(names, []string{"a"}) {
		t.Errorf("the server was not asked: %v", names)
	}
}

// A writer that is the only one always reads what is stored, whether the watch
// is held back or not.
func TestALonelyWriterReadsWhatIsStored(t *testing.T) {
	d := newDesk(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	stored := map[string]string{}
	shut := true
	for i := range 400 {
		name, app := fmt.Sprint("n", random.IntN(8)), fmt.Sprint("app", random.IntN(3))
		switch _, there := stored[name]; {
		case random.IntN(10) == 0:
			if shut = !shut; shut {
				d.gate.shut()
			} else {
				d.gate.let()
			}
		case !there:
			d.create(name, app)
			stored[name] = app
		case random.IntN(3) == 0:
			d.delete(name)
			delete(stored, name)
		default:
			now, err := d.mine.Get(t.Context(), d.key(name))
			if err != nil {
				t.Fatalf("step %d: %v", i, err)
			}
			d.update(now, app)
			stored[name] = app
		}
		for n := range 3 {
			app := fmt.Sprint("app", n)
			var want []string
			for name, of := range stored {
				if of == app {
					want = append(want, name)
				}
			}
			slices.Sort(want)
			if got := d.names(app); got != strings.Join(want, " ") {
				t.Fatalf("step %d: of %s the writer sees %q, want %q", i, app, got, want)
			}
		}
	}
}
