package informer_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/cache"
	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/informer"
)

type options = informer.HandlerOptions[*corev1.ConfigMap]

func TestFilter(t *testing.T) {
	_, c, in, _ := broken(t)
	var l journal
	in.HandleWith(options{Filter: func(m *corev1.ConfigMap) bool { return m.Data["v"] != "hidden" }}, l.add)
	l.expect(t, "Added a=1 initial")
	put(t, c, "a", "hidden")
	l.expect(t, "Deleted a=hidden")
	put(t, c, "b", "hidden")
	put(t, c, "a", "2")
	l.expect(t, "Added a=2")
	remove(t, c, "b")
	remove(t, c, "a")
	l.expect(t, "Deleted a=2")
}

func TestBatchesHaveAllThatIsPending(t *testing.T) {
	_, c, in, l := broken(t)
	gate, entered := make(chan struct{}), make(chan struct{}, 10)
	batches := make(chan string, 10)
	in.HandleBatch(options{AtMost: 3}, func(batch []informer.Delta[*corev1.ConfigMap]) {
		entered <- struct{}{}
		<-gate
		var names []string
		for _, d := range batch {
			names = append(names, d.Type.String()+" "+d.Key.Name)
		}
		batches <- strings.Join(names, ", ")
	})
	<-entered
	for _, name := range []string{"b", "c", "d", "e"} {
		put(t, c, name, "1")
	}
	remove(t, c, "c")
	put(t, c, "b", "2")
	eventually(t, "all is seen", func() bool { return slices.Contains(l.take(), "Updated b=2") })
	close(gate)
	for _, want := range []string{"Added a", "Added b, Added d, Added e"} {
		if got := <-batches; got != want {
			t.Errorf("a batch was %q, not %q", got, want)
		}
	}
}

func TestWhatCameAndWentUnseenIsToldToThoseWhoAsk(t *testing.T) {
	_, c, in, l := broken(t)
	gate, entered := make(chan struct{}), make(chan struct{}, 10)
	var told journal
	in.HandleWith(options{Brief: true, Filter: func(m *corev1.ConfigMap) bool { return m.Data["v"] != "hidden" }}, func(d informer.Delta[*corev1.ConfigMap]) {
		entered <- struct{}{}
		<-gate
		told.add(d)
	})
	<-entered
	put(t, c, "b", "1")
	put(t, c, "c", "1")
	put(t, c, "d", "hidden")
	for _, name := range []string{"b", "c", "d"} {
		remove(t, c, name)
	}
	put(t, c, "c", "2")
	eventually(t, "all is seen", func() bool { return slices.Contains(l.take(), "Added c=2") })
	close(gate)
	told.expect(t, "Added a=1 initial", "Deleted b=1 unknown", "Added c=2")
}

func TestSkipUnchanged(t *testing.T) {
	direct := connect(t, nil)
	ns := namespace(t, direct)
	gvk := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	typed := client.Of[*corev1.ConfigMap](direct).In(ns)
	put(t, typed, "a", "1")
	set := start(t, direct, informer.Config{})
	var l journal
	in := informer.For[*corev1.ConfigMap](set, informer.InNamespace(ns), informer.KeepManagedFields())
	in.HandleWith(options{SkipUnchanged: true}, l.add)
	dynamic := make(chan string, 10)
	un := informer.For[*unstructured.Unstructured](set, informer.Kind(gvk), informer.InNamespace(ns), informer.KeepManagedFields())
	un.HandleWith(informer.HandlerOptions[*unstructured.Unstructured]{SkipUnchanged: true}, func(d informer.Delta[*unstructured.Unstructured]) {
		v, _, _ := unstructured.NestedString(d.Object().Object, "data", "v")
		dynamic <- d.Type.String() + " " + v
	})
	sync1(t, set)
	l.expect(t, "Added a=1 initial")

	// Another manager takes a field, with the value that it has.
	obj, err := typed.Get(t.Context(), client.Key{Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	before := obj.ResourceVersion
	applied := configMap("a", map[string]string{"v": "1"})
	applied.Namespace = ns
	if obj, err = typed.Apply(t.Context(), applied, client.FieldManager("another"), client.Force()); err != nil {
		t.Fatal(err)
	}
	if obj.ResourceVersion == before {
		t.Fatal("the test wants a new revision")
	}
	put(t, typed, "a", "2")
	l.expect(t, "Updated a=2")
	for _, want := range []string{"Added 1", "Updated 2"} {
		if got := <-dynamic; got != want {
			t.Errorf("the dynamic informer told %q, not %q", got, want)
		}
	}
}

func TestTransformIndexAndCompact(t *testing.T) {
	direct := connect(t, nil)
	ns := namespace(t, direct)
	c := client.Of[*corev1.ConfigMap](direct).In(ns)
	put(t, c, "a", "1")
	put(t, c, "b", "2")
	set := start(t, direct, informer.Config{})
	byValue := func(m *corev1.ConfigMap) []string { return []string{m.Data["v"]} }
	in := informer.For[*corev1.ConfigMap](set, informer.InNamespace(ns),
		informer.Index("value", byValue), informer.Compact(cache.Protobuf[corev1.ConfigMap]()),
		informer.Transform(func(m *corev1.ConfigMap) *corev1.ConfigMap {
			m.Data["v"] = "t" + m.Data["v"]
			return m
		}))
	var l journal
	in.Handle(l.add)
	sync1(t, in)
	l.expect(t, "Added a=t1 initial", "Added b=t2 initial")
	if got := slices.Collect(in.List(cache.Index("value", "t2"))); len(got) != 1 || got[0].Name != "b" {
		t.Errorf("the index gives %v", got)
	}
	if err := in.AddIndex("first", func(m *corev1.ConfigMap) []string { return []string{m.Name[:1]} }); err != nil {
		t.Fatal(err)
	}
	if in.Count(cache.Index("first", "a")) != 1 {
		t.Error("an index that was added later finds nothing")
	}
	remove(t, c, "a")
	l.expect(t, "Deleted a=t1")
	// With another index, an informer is shared all the same; this one is its own.
	shared := informer.For[*corev1.ConfigMap](set, informer.InNamespace(ns))
	again := informer.For[*corev1.ConfigMap](set, informer.InNamespace(ns), informer.Index("value", byValue))
	sync1(t, set)
	if n := len(set.Status()); n != 2 {
		t.Errorf("there are %d informers", n)
	}
	if shared.Count(cache.Index("value", "2")) != 1 || again.Count() != 1 {
		t.Error("the shared informer has not got the index")
	}
}

func TestDynamicAndMetadataOnly(t *testing.T) {
	direct := connect(t, nil)
	ns := namespace(t, direct)
	gvk := appsv1.SchemeGroupVersion.WithKind("Deployment")
	c := client.Of[*unstructured.Unstructured](direct, client.Kind(gvk)).In(ns)
	labels := map[string]any{"app": "web"}
	deployment := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "web", "labels": labels},
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}},
			},
		},
	}}
	if _, err := c.Create(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	set := start(t, direct, informer.Config{})
	dynamic := informer.For[*unstructured.Unstructured](set, informer.Kind(gvk), informer.InNamespace(ns))
	meta := informer.For[*metav1.PartialObjectMetadata](set, informer.Resource(gvk.GroupVersion().WithResource("deployments")), informer.InNamespace(ns))
	typed := informer.For[*appsv1.Deployment](set, informer.InNamespace(ns))
	sync1(t, set)
	query := cache.Label("app", "web")
	for got := range dynamic.List(query) {
		if n, _, _ := unstructured.NestedInt64(got.Object, "spec", "replicas"); n != 1 || got.GetKind() != "Deployment" || got.GetManagedFields() != nil {
			t.Errorf("the dynamic informer has %v", got)
		}
	}
	for got := range meta.List(query) {
		if got.Name != "web" || got.Kind != "Deployment" || got.ManagedFields != nil {
			t.Errorf("the metadata informer has %v", got)
		}
	}
	if dynamic.Count(query) != 1 || meta.Count(query) != 1 || typed.Count(query) != 1 {
		t.Error("an informer has not got it")
	}
	if d, _ := typed.Get(ns, "web"); d == nil || d.ManagedFields != nil || d.Kind != "Deployment" || d.Spec.Template.Spec.Containers[0].Image != "i" {
		t.Errorf("the typed informer has %v", d)
	}
	view := set.View()
	if dynamic.At(view).Count() != 1 || typed.At(view).Count() != 1 {
		t.Error("the view of the set has not got it")
	}
}

func TestInformersAreSharedAndEnd(t *testing.T) {
	w := &wire{}
	conn := connect(t, w.through)
	ns := namespace(t, conn)
	set := start(t, conn, informer.Config{})
	one := informer.For[*corev1.ConfigMap](set, informer.InNamespace(ns), informer.Labels("x=y"))
	two := informer.For[*corev1.ConfigMap](set, informer.Labels("x = y"), informer.InNamespace(ns))
	other := informer.For[*corev1.ConfigMap](set, informer.InNamespace(ns))
	sync1(t, set)
	if n := len(set.Status()); n != 2 {
		t.Errorf("%d informers run where two are enough", n)
	}
	reg := one.Handle(func(informer.Delta[*corev1.ConfigMap]) {})
	one.Close()
	<-reg.Done()
	if late := one.Handle(func(informer.Delta[*corev1.ConfigMap]) {}); !closed(late.Done()) {
		t.Error("an informer that was given back takes handlers")
	}
	one.Close() // again, without harm
	if n := len(set.Status()); n != 2 {
		t.Errorf("%d informers run while two are in use", n)
	}
	two.Close()
	if n := len(set.Status()); n != 1 {
		t.Errorf("%d informers run while one is in use", n)
	}
	same := func(m *corev1.ConfigMap) *corev1.ConfigMap { return m }
	informer.For[*corev1.ConfigMap](set, informer.InNamespace(ns), informer.Transform(same))
	informer.For[*corev1.ConfigMap](set, informer.InNamespace(ns), informer.Transform(same))
	if n := len(set.Status()); n != 3 {
		t.Errorf("%d informers run where two transform for themselves", n)
	}
	last := other.Handle(func(informer.Delta[*corev1.ConfigMap]) {})
	set.Shutdown()
	if !closed(last.Done()) {
		t.Error("a handler runs after Shutdown")
	}
	late := informer.For[*corev1.ConfigMap](set)
	if err := late.WaitForSync(t.Context()); err == nil {
		t.Error("an informer of a set that is shut down syncs")
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestOptionsThatDoNotFitAreNamed(t *testing.T) {
	set := start(t, connect(t, nil), informer.Config{})
	scope, err := informer.NewScope()
	if err != nil {
		t.Fatal(err)
	}
	for name, opts := range map[string][]informer.Option{
		"label selector":          {informer.Labels("a in")},
		"field selector":          {informer.Fields("a")},
		"exclude each other":      {scope, informer.InNamespace("a")},
		`index "x"`:               {informer.Index("x", func(*corev1.Pod) []string { return nil })},
		"*cache.Codec[":           {informer.Compact(cache.Protobuf[corev1.Pod]())},
		"a transformation func(*": {informer.Transform(func(p *corev1.Pod) *corev1.Pod { return p })},
	} {
		in := informer.For[*corev1.ConfigMap](set, opts...)
		if err := in.WaitForSync(t.Context()); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: the error is %v", name, err)
		}
		in.Close()
	}
}

// keysOf are the names in an informer, ordered.
func keysOf(in *informer.Informer[*corev1.ConfigMap]) string {
	var names []string
	for m := range in.List() {
		names = append(names, m.Name)
	}
	return strings.Join(names, " ")
}

func TestScopesChangeWithoutLosingWhatStays(t *testing.T) {
	conn := connect(t, nil)
	a, b := namespace(t, conn), namespace(t, conn)
	for letter, ns := range map[string]string{"a": a, "b": b} {
		c := client.Of[*corev1.ConfigMap](conn).In(ns)
		for _, name := range []string{"x", "y", "z"} {
			m := configMap(name+letter, nil)
			m.Labels = map[string]string{"app": name, "all": "yes", "of": ns}
			if _, err := c.Create(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
	}
	const xa, ya, za = "xa", "ya", "za"
	scope, err := informer.NewScope(informer.Selection{Namespace: a, Labels: "app=x"}, informer.Selection{Namespace: a, Labels: "app in (x,y)"})
	if err != nil {
		t.Fatal(err)
	}
	set := start(t, conn, informer.Config{DetectMutations: true})
	in := informer.For[*corev1.ConfigMap](set, scope)
	var mu sync.Mutex
	seen := map[string]int{}
	heard := func(what string) int {
		mu.Lock()
		defer mu.Unlock()
		return seen[what]
	}
	reg := in.HandleBatch(options{}, func(batch []informer.Delta[*corev1.ConfigMap]) {
		mu.Lock()
		defer mu.Unlock()
		for _, d := range batch {
			seen[d.Type.String()+" "+d.Key.Name]++
		}
	})
	sync1(t, in)
	<-reg.Synced()
	if got := keysOf(in); got != xa+" "+ya {
		t.Errorf("the union of two selections has %s", got)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(scope.Remove(informer.Selection{Namespace: a, Labels: "app in (x,y)"}))
	eventually(t, "a selection goes", func() bool { return keysOf(in) == xa && heard("Deleted "+ya) == 1 })
	must(scope.Set(informer.Selection{Namespace: a, Labels: "all=yes"}))
	eventually(t, "another selection comes", func() bool { return keysOf(in) == xa+" "+ya+" "+za })
	must(scope.Add(informer.Selection{Namespace: b, Labels: "app=x"}))
	eventually(t, "a namespace comes", func() bool { return in.Count() == 4 && in.Count(cache.InNamespace(b)) == 1 })
	must(scope.Set(informer.Selection{Labels: "all=yes, of in (" + a + "," + b + ")"}))
	eventually(t, "both namespaces whole", func() bool { return in.Count() == 6 && len(in.Status().Parts) == 1 })
	if err := scope.Add(informer.Selection{Labels: "=="}); err == nil {
		t.Error("a bad selector is accepted")
	}
	put(t, client.Of[*corev1.ConfigMap](conn).In(a), xa, "changed")
	eventually(t, "changes are followed", func() bool { m, _ := in.Get(a, xa); return m.Data["v"] == "changed" })
	if err := in.Verify(); err != nil {
		t.Error(err)
	}
	in.Close()
	<-reg.Done()
	if seen["Added "+xa] != 1 || seen["Deleted "+xa] != 0 || seen["Added "+ya] != 2 || seen["Deleted "+ya] != 1 {
		t.Errorf("the handler heard %v", slices.Sorted(maps.Keys(seen)))
	}
}

func TestAKindThatIsMissingIsWaitedFor(t *testing.T) {
	w := &wire{}
	conn := connect(t, w.through)
	ns := namespace(t, conn)
	w.answers(notServed)
	set := start(t, conn, informer.Config{MinBackoff: time.Millisecond, MaxBackoff: 10 * time.Millisecond})
	gvk := appsv1.SchemeGroupVersion.WithKind("Deployment")
	in := informer.For[*unstructured.Unstructured](set, informer.Kind(gvk), informer.InNamespace(ns))
	good := informer.For[*corev1.ConfigMap](set, informer.InNamespace(ns))
	sync1(t, good)
	eventually(t, "the kind is named", func() bool {
		err := in.Status().Err
		return client.IsNoKind(err) && strings.Contains(err.Error(), "Deployment")
	})
	if in.HasSynced() {
		t.Error("it is synced")
	}
	w.answers(nil)
	sync1(t, set)
}

func TestARefusalIsNamedAndRetried(t *testing.T) {
	w := &wire{}
	conn := connect(t, w.through)
	ns := namespace(t, conn)
	w.answers(forbidden)
	failures := make(chan informer.Failure, 100)
	set := start(t, conn, informer.Config{
		MinBackoff: time.Millisecond, MaxBackoff: 10 * time.Millisecond,
		OnError: func(f informer.Failure) {
			select {
			case failures <- f:
			default:
			}
		},
	})
	in := informer.For[*corev1.ConfigMap](set, informer.InNamespace(ns))
	if f := <-failures; !client.IsForbidden(f.Err) || f.Selection.Namespace != ns || !strings.Contains(f.Kind, "ConfigMap") {
		t.Errorf("the failure is %+v", f)
	}
	eventually(t, "the status names it", func() bool {
		return client.IsForbidden(in.Status().Err) && in.Status().Parts[0].Phase == informer.Waiting
	})
	w.answers(nil)
	sync1(t, in)
	eventually(t, "the status is good", func() bool { return in.Status().Err == nil && in.Status().Parts[0].Phase == informer.Watching })
}

// A prompt handler is called in the same order, ends like others, and one that is
// slow holds up only the watch.
func TestPromptHandlers(t *testing.T) {
	conn := connect(t, nil)
	ns := namespace(t, conn)
	maps := client.Of[*corev1.ConfigMap](conn).In(ns)
	set := start(t, conn, informer.Config{})
	in := informer.For[*corev1.ConfigMap](set, informer.InNamespace(ns))
	var mu sync.Mutex
	var heard []string
	reg := in.HandleWith(options{Prompt: true}, func(d informer.Delta[*corev1.ConfigMap]) {
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, d.Type.String()+" "+d.Key.Name)
	})
	sync1(t, in)
	<-reg.Synced()
	for i := range 50 {
		name := "m" + strconv.Itoa(i)
		if _, err := maps.Create(t.Context(), configMap(name, nil)); err != nil {
			t.Fatal(err)
		}
		want := "Added " + name
		eventually(t, "it is heard", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(heard) == i+1 && heard[i] == want
		})
	}
	reg.Remove()
	<-reg.Done()
	put(t, maps, "m0", "changed")
	eventually(t, "changes are followed", func() bool { m, _ := in.Get(ns, "m0"); return m.Data["v"] == "changed" })
	if len(heard) != 50 {
		t.Errorf("it heard %d after it was removed", len(heard)-50)
	}
}
