package controller_test

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/even-keel/evenkeel/cache"
	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/informer"
)

// blindfold holds back what watches tell, while it is on.
type blindfold struct {
	mu  sync.Mutex
	off chan struct{} // closed when it comes off; nil if it is not on
}

func (b *blindfold) on() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.off = make(chan struct{})
}

func (b *blindfold) takeOff() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.off != nil {
		close(b.off)
		b.off = nil
	}
}

func (b *blindfold) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if err == nil && r.URL.Query().Has("watch") {
			resp.Body = &blinded{resp.Body, b}
		}
		return resp, err
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type blinded struct {
	io.ReadCloser
	by *blindfold
}

func (b *blinded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.by.mu.Lock()
	off := b.by.off
	b.by.mu.Unlock()
	if off != nil {
		<-off
	}
	return n, err
}

// readsOwnWrites writes in every way while the watch tells nothing, and returns what
// it then did not see.
func readsOwnWrites(t *testing.T, stale bool) (unseen []string) {
	t.Helper()
	s := stage(t, controller.BaseOptions{})
	var b blindfold
	cfg := s.Config()
	cfg.Wrap(b.wrap)
	s.newBaseAs(cfg, controller.BaseOptions{Stale: stale})
	s.Apply(`{apiVersion: v1, kind: Namespace, metadata: {name: elsewhere}}`)
	ctx := t.Context()
	maps := client.Of[*corev1.ConfigMap](s.base)
	kept := must(maps.Create(ctx, configMap("kept", "node", "n1")))
	deleted := must(maps.Create(ctx, configMap("deleted")))
	s.run(controller.New("maps", func(context.Context, controller.Request) (controller.Result, error) { return controller.Done, nil },
		controller.For[*corev1.ConfigMap](controller.With(informer.InNamespace("default", "kube-system"),
			informer.Index("node", func(m *corev1.ConfigMap) []string { return []string{m.Data["node"]} })))))
	if err := controller.WaitFor[*corev1.ConfigMap](ctx, s.base, cache.Revision(deleted.ResourceVersion)); err != nil {
		t.Fatal(err)
	}
	b.on()
	t.Cleanup(b.takeOff)

	check := func(what string, seen bool) {
		if !seen {
			unseen = append(unseen, what)
		}
	}
	listed := func(opts ...client.ReadOption) string {
		var names []string
		for m, err := range maps.List(ctx, opts...) {
			if err != nil {
				t.Fatal(err)
			}
			if m.Name != "kube-root-ca.crt" && m.Namespace != "kube-system" {
				names = append(names, m.Name)
			}
		}
		return strings.Join(names, " ")
	}
	made := configMap("made", "node", "n2")
	made.Labels = map[string]string{"app": "web"}
	made = must(maps.Create(ctx, made))
	got, err := maps.Get(ctx, client.KeyOf(made))
	check("created", err == nil && got.ResourceVersion == made.ResourceVersion)
	check("created, by label", listed(client.Label("app", "web")) == "made")
	check("created, by index", listed(client.Field("node", "n2")) == "made")

	changed := kept.DeepCopy()
	changed.Labels, changed.Data = map[string]string{"app": "web"}, map[string]string{"node": "n2"}
	must(maps.Update(ctx, changed))
	check("updated, by label", listed(client.Label("app", "web")) == "kept made")
	check("updated, left an index", listed(client.Field("node", "n1")) == "")
	must(maps.Patch(ctx, client.KeyOf(kept), client.MergePatch(`{"metadata":{"labels":null}}`)))
	check("patched, left a selector", listed(client.Label("app", "web")) == "made")

	if err := maps.Delete(ctx, client.KeyOf(deleted)); err != nil {
		t.Fatal(err)
	}
	_, err = maps.Get(ctx, client.KeyOf(deleted))
	check("deleted", client.IsNotFound(err))
	check("deleted, in a list", listed(client.Field("metadata.namespace", "default")) == "kept made")
	again := must(maps.Create(ctx, configMap("deleted", "again", "yes")))
	got, err = maps.Get(ctx, client.KeyOf(deleted))
	check("made again", err == nil && got.UID == again.UID)

	out := configMap("outside")
	out.Namespace = "elsewhere"
	must(maps.Create(ctx, out))
	if _, err := maps.Get(ctx, client.KeyOf(out)); err != nil {
		t.Errorf("what is outside of the scope is read from the server: %v", err)
	}
	check("outside, in a list of all", listed() == "deleted kept made")
	b.takeOff()
	return unseen
}

func TestReadsSeeTheirOwnWrites(t *testing.T) {
	if unseen := readsOwnWrites(t, false); len(unseen) > 0 {
		t.Errorf("unseen: %q", unseen)
	}
}

// Without the overlay, all of it is stale: the test above can fail.
func TestWithoutTheOverlayReadsAreStale(t *testing.T) {
	want := []string{
		"created", "created, by label", "created, by index", "updated, by label", "updated, left an index", "patched, left a selector",
		"deleted", "deleted, in a list", "made again", "outside, in a list of all",
	}
	if unseen := readsOwnWrites(t, true); strings.Join(unseen, ";") != strings.Join(want, ";") {
		t.Errorf("unseen: %q", unseen)
	}
}

// counted counts how often a key is looked at.
type counted struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *counted) add(key controller.Key) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[key.String()]++
	return c.n[key.String()]
}

func (c *counted) of(key string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[key]
}

var notTheCA = controller.Where(func(old, now *corev1.ConfigMap) bool {
	return (now == nil || now.Name != "kube-root-ca.crt") && (old == nil || old.Name != "kube-root-ca.crt")
})

func TestReconcilesForOnesOwnWritesCanBeLeftOut(t *testing.T) {
	s := stage(t, controller.BaseOptions{})
	ctx := t.Context()
	maps, secrets := client.Of[*corev1.ConfigMap](s.base), client.Of[*corev1.Secret](s.base)
	others := client.Of[*corev1.ConfigMap](s.Conn())
	var n counted
	// It writes what is not yet so: the object twice, and an owned one.
	c := controller.NewTyped("maps", func(ctx context.Context, req controller.Request, m *corev1.ConfigMap) (controller.Result, error) {
		n.add(req.Key)
		if m == nil || m.Data["wanted"] == m.Data["seen"] {
			return controller.Done, nil
		}
		m.Data["half"] = m.Data["wanted"]
		m = must(maps.Update(ctx, m)).DeepCopy()
		m.Data["seen"] = m.Data["wanted"]
		must(maps.Update(ctx, m))
		_, _, err := controller.CreateOrUpdate(ctx, secrets, secret(m.Name), func(s *corev1.Secret) error {
			s.StringData = nil
			s.Data = map[string][]byte{"seen": []byte(m.Data["seen"])}
			return controller.SetController(maps.Conn(), m, s)
		})
		return controller.Done, err
	}, controller.For[*corev1.ConfigMap](notTheCA), controller.Owns[*corev1.Secret](), controller.IgnoreOwnWrites())
	s.run(c)
	for i := range 20 {
		name := "m" + strconv.Itoa(i)
		must(others.Create(ctx, configMap(name, "wanted", "1")))
		until(t, "it is seen", func() bool {
			m, err := maps.Get(ctx, controller.Key{Namespace: "default", Name: name})
			return err == nil && m.Data["seen"] == "1"
		})
	}
	// What others write is heard, also if it comes between one's own writes.
	for i := range 20 {
		key := controller.Key{Namespace: "default", Name: "m" + strconv.Itoa(i)}
		must(others.Patch(ctx, key, client.MergePatch(`{"data":{"wanted":"2"}}`)))
		must(others.Patch(ctx, key, client.MergePatch(`{"data":{"wanted":"3"}}`)))
		until(t, "it is seen", func() bool {
			m, err := maps.Get(ctx, key)
			return err == nil && m.Data["seen"] == "3"
		})
	}
	until(t, "all is quiet", func() bool { st := c.Status().Queue; return st.Ready+st.Running+st.Delayed == 0 })
	if st := c.Status(); st.Ignored == 0 || len(st.Hot) > 0 {
		t.Errorf("%d were left out, %v are hot", st.Ignored, st.Hot)
	}
	for i := range 20 {
		if got := n.of("default/m" + strconv.Itoa(i)); got > 5 {
			t.Errorf("m%d was looked at %d times, for three changes", i, got)
		}
	}
}

func TestAKeyThatKeepsCausingItselfIsNamed(t *testing.T) {
	s := stage(t, controller.BaseOptions{})
	ctx := t.Context()
	maps := client.Of[*corev1.ConfigMap](s.base)
	var calm atomic.Bool
	c := controller.NewTyped("maps", func(ctx context.Context, req controller.Request, m *corev1.ConfigMap) (controller.Result, error) {
		if m == nil || m.Name != "hot" || calm.Load() {
			return controller.Done, nil
		}
		m.Data = map[string]string{"again": req.ID} // there is always something to write
		_, err := maps.Update(ctx, m)
		return controller.Done, err
	}, controller.For[*corev1.ConfigMap](notTheCA))
	s.run(c)
	must(maps.Create(ctx, configMap("calm")))
	must(maps.Create(ctx, configMap("hot")))
	until(t, "a hot loop is named", func() bool { return len(c.Status().Hot) > 0 })
	if st := c.Status(); len(st.Hot) != 1 || st.Hot[0].Key != "default/hot" || st.HotTotal != 1 {
		t.Errorf("%+v", st.Hot)
	}
	if log := s.log.String(); !strings.Contains(log, "hot loop") || !strings.Contains(log, "key=default/hot") {
		t.Error(log)
	}
	recent := c.Recent()[0]
	if len(recent.Causes) != 1 || !strings.HasPrefix(recent.Causes[0].Writer, "maps.") || len(recent.Writes) != 1 || recent.Writes[0].Verb != "update" || recent.Writes[0].Kind != "configmaps" {
		t.Errorf("%+v", recent)
	}
	calm.Store(true)
	until(t, "it has ended", func() bool { return len(c.Status().Hot) == 0 })
}

// What a cache with selectors does not have is read from the server: it says nothing
// about the rest.
func TestACacheOfSomeSaysNothingOfOthers(t *testing.T) {
	s := stage(t, controller.BaseOptions{})
	ctx := t.Context()
	got := make(requests, 100)
	s.run(controller.New("web", got.reconcile, controller.For[*corev1.ConfigMap](controller.With(informer.Labels("app=web"), informer.Fields("metadata.namespace=default")))))
	maps := client.Of[*corev1.ConfigMap](s.base)
	web, other := configMap("web"), configMap("other")
	web.Labels = map[string]string{"app": "web"}
	must(maps.Create(ctx, web))
	must(maps.Create(ctx, other))
	for _, m := range []*corev1.ConfigMap{web, other} {
		if _, err := maps.Get(ctx, client.KeyOf(m)); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
	for name, test := range map[string]struct {
		opts []client.ReadOption
		want int
	}{
		"what is cached": {[]client.ReadOption{client.Label("app", "web"), client.Field("metadata.namespace", "default")}, 1},
		"a part of it":   {[]client.ReadOption{client.Labels("app=web,!old"), client.Field("metadata.namespace", "default")}, 1},
		"all":            {nil, 2},
		"others":         {[]client.ReadOption{client.Labels("app!=web")}, 1},
	} {
		n := 0
		for m, err := range maps.In("default").List(ctx, test.opts...) {
			if err != nil {
				t.Fatal(err)
			}
			if m.Name != "kube-root-ca.crt" {
				n++
			}
		}
		if n != test.want {
			t.Errorf("%s: %d are listed", name, n)
		}
	}
	delete(web.Labels, "app")
	must(maps.Update(ctx, web))
	if m, err := maps.Get(ctx, client.KeyOf(web)); err != nil || m.Labels["app"] != "" {
		t.Errorf("one that left the selection: %v, %v", m, err)
	}
}
