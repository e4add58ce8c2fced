package cache_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/even-keel/evenkeel/cache"
)

// holds is what all kinds of objects must be able to do in a store.
func holds[T cache.Object](t *testing.T, opts cache.Options[T], named func(name, app string) T) {
	opts.Indexes = map[string]func(T) []string{"byLetter": func(obj T) []string { return []string{obj.GetName()[:1]} }}
	store := cache.New(opts)
	store.Set(named("a1", "web"), named("a2", "db"), named("b1", "web"))
	store.Delete(cache.Key{Namespace: "default", Name: "none"})
	for name, c := range map[string]struct {
		queries []cache.Query
		want    []string
	}{
		"all":             {nil, []string{"a1", "a2", "b1"}},
		"label":           {[]cache.Query{cache.Label("app", "web")}, []string{"a1", "b1"}},
		"index":           {[]cache.Query{cache.Index("byLetter", "a")}, []string{"a1", "a2"}},
		"both":            {[]cache.Query{cache.Label("app", "web"), cache.Index("byLetter", "a")}, []string{"a1"}},
		"other namespace": {[]cache.Query{cache.InNamespace("kube-system")}, nil},
		"no namespace":    {[]cache.Query{cache.InNamespace("")}, []string{"a1", "a2", "b1"}},
		"none of a and b": {[]cache.Query{cache.InNamespace("default"), cache.InNamespace("x")}, nil},
		"nothing":         {[]cache.Query{cache.Selector(labels.Nothing())}, nil},
		"everything":      {[]cache.Query{cache.Selector(labels.Everything())}, []string{"a1", "a2", "b1"}},
		"no value":        {[]cache.Query{cache.Index("byLetter")}, nil},
		"prefixes":        {[]cache.Query{cache.Prefix("a2"), cache.Prefix("a")}, []string{"a2"}},
		"other prefixes":  {[]cache.Query{cache.Prefix("a"), cache.Prefix("b")}, nil},
		"two names":       {[]cache.Query{cache.Field("metadata.name", "a1"), cache.Field("metadata.name", "a2")}, nil},
		"empty namespace": {[]cache.Query{cache.Field("metadata.namespace", "")}, nil},
		"field":           {[]cache.Query{cache.Field("byLetter", "b")}, []string{"b1"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for obj := range store.List(c.queries...) {
				got = append(got, obj.GetName())
			}
			if diff := gocmp.Diff(c.want, got); diff != "" {
				t.Errorf("want (-), got (+):\n%s", diff)
			}
			if n := store.Count(c.queries...); n != len(c.want) {
				t.Errorf("count %d, want %d", n, len(c.want))
			}
		})
	}
}

func TestTypedDynamicAndMetadataObjectsAlike(t *testing.T) {
	meta := func(name, app string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": app}}
	}
	typed := func(name, app string) *corev1.ConfigMap { return &corev1.ConfigMap{ObjectMeta: meta(name, app)} }
	partial := func(name, app string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: meta(name, app)}
	}
	dynamic := func(name, app string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"kind": "Thing", "apiVersion": "v1"}}
		u.SetNamespace("default")
		u.SetName(name)
		u.SetLabels(map[string]string{"app": app})
		return u
	}
	any := func(name, app string) cache.Object {
		if name == "a1" {
			return typed(name, app)
		}
		return dynamic(name, app)
	}
	t.Run("typed", func(t *testing.T) { holds(t, cache.Options[*corev1.ConfigMap]{}, typed) })
	t.Run("metadata", func(t *testing.T) { holds(t, cache.Options[*metav1.PartialObjectMetadata]{}, partial) })
	t.Run("dynamic", func(t *testing.T) { holds(t, cache.Options[*unstructured.Unstructured]{}, dynamic) })
	t.Run("any", func(t *testing.T) { holds(t, cache.Options[cache.Object]{}, any) })
	t.Run("as is", func(t *testing.T) { holds(t, cache.Options[*corev1.ConfigMap]{AsIs: true}, typed) })
	t.Run("typed compact", func(t *testing.T) {
		holds(t, cache.Options[*corev1.ConfigMap]{Compact: cache.Protobuf[corev1.ConfigMap]()}, typed)
	})
	t.Run("metadata compact", func(t *testing.T) {
		holds(t, cache.Options[*metav1.PartialObjectMetadata]{Compact: cache.Protobuf[metav1.PartialObjectMetadata]()}, partial)
	})
	t.Run("dynamic compact", func(t *testing.T) {
		holds(t, cache.Options[*unstructured.Unstructured]{Compact: cache.JSON[unstructured.Unstructured]()}, dynamic)
	})
}

func managed() *corev1.Pod {
	pod := newPod("web-1", "web", "n1")
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	return pod
}

func TestManagedFieldsAreDroppedUnlessAskedFor(t *testing.T) {
	for name, c := range map[string]struct {
		opts cache.Options[*corev1.Pod]
		want int
	}{
		"dropped":         {cache.Options[*corev1.Pod]{}, 0},
		"dropped compact": {cache.Options[*corev1.Pod]{Compact: podCodec()}, 0},
		"kept":            {cache.Options[*corev1.Pod]{KeepManagedFields: true}, 1},
		"kept compact":    {cache.Options[*corev1.Pod]{KeepManagedFields: true, Compact: podCodec()}, 1},
		"as is":           {cache.Options[*corev1.Pod]{AsIs: true}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			store := cache.New(c.opts)
			store.Set(managed())
			if pod, _ := store.Get("default", "web-1"); len(pod.ManagedFields) != c.want {
				t.Errorf("%d managers, want %d", len(pod.ManagedFields), c.want)
			}
		})
	}
}

func TestTransformDecidesWhatIsStoredAndIndexed(t *testing.T) {
	store := cache.New(cache.Options[*corev1.Pod]{Transform: func(p *corev1.Pod) *corev1.Pod {
		small := newPod("small-"+p.Name, p.Labels["app"]+"-small", "")
		return small
	}})
	store.Set(newPod("web-1", "web", "n1"))
	if _, ok := store.Get("default", "small-web-1"); !ok || store.Count(cache.Label("app", "web-small")) != 1 {
		t.Error("the transformed object is not found by its name and label")
	}
	if store.Count(cache.Label("app", "web")) != 0 {
		t.Error("the object is found by what it was before")
	}
}

func TestReplaceReportsWhatChangedInOrderOfKeys(t *testing.T) {
	at := func(name, uid, revision string) *corev1.Pod {
		pod := newPod(name, "web", "n1")
		pod.UID, pod.ResourceVersion = types.UID(uid), revision
		return pod
	}
	store := cache.New(cache.Options[*corev1.Pod]{})
	store.Set(at("changed", "1", "1"), at("gone", "2", "1"), at("recreated", "3", "1"), at("same", "4", "1"))
	var b cache.Batch[*corev1.Pod]
	b.Delete(cache.Key{Namespace: "default", Name: "same"}) // forgotten
	b.Replace([]*corev1.Pod{at("same", "4", "1"), at("new", "6", "2"), at("recreated", "5", "2"), at("changed", "1", "2"), at("twice", "7", "1"), at("twice", "7", "2"), at("out", "8", "2")})
	b.Delete(cache.Key{Namespace: "default", Name: "out"})
	var got []string
	for _, c := range store.Apply(&b) {
		line := c.Key().Name
		if c.Old.Exists() {
			line += " from " + string(c.Old.Revision())
		}
		if c.New.Exists() {
			line += " to " + string(c.New.Revision())
		}
		if c.Recreated() {
			line += " recreated"
		}
		got = append(got, line)
	}
	want := []string{"changed from 1 to 2", "gone from 1", "new to 2", "recreated from 1 to 2 recreated", "twice to 2"}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}

func TestAnUnknownIndexIsAMistake(t *testing.T) {
	old := somePods()
	before := old.Snapshot()
	if err := old.AddIndex("byIP", byIP); err != nil {
		t.Fatal(err)
	}
	if err := old.AddIndex("byIP", byIP); !errors.Is(err, cache.ErrIndexExists) {
		t.Errorf("a second index of one name: %v", err)
	}
	defer func() {
		err, _ := recover().(error)
		if !errors.Is(err, cache.ErrNoIndex) || !strings.Contains(err.Error(), "byIP") {
			t.Errorf("a list by an index that the snapshot does not have: %v", err)
		}
	}()
	before.List(cache.Index("byIP", "10.0.0.1"))
}

// An index function runs while its writer has not got its turn yet: just then
// another index is added.
func TestAnIndexThatComesInBetweenIsFilled(t *testing.T) {
	var store *cache.Store[*corev1.Pod]
	var once sync.Once
	store = cache.New(cache.Options[*corev1.Pod]{Indexes: map[string]func(*corev1.Pod) []string{
		"first": func(*corev1.Pod) []string {
			once.Do(func() {
				if err := store.AddIndex("late", byNode); err != nil {
					t.Error(err)
				}
			})
			return nil
		},
	}})
	store.Set(newPod("web-1", "web", "n1"))
	if n := store.Count(cache.Index("late", "n1")); n != 1 {
		t.Errorf("%d pods by the late index, want 1", n)
	}
}

func TestListStopsWhenItsReaderDoes(t *testing.T) {
	for name, query := range map[string]cache.Query{
		"scan": cache.InNamespace("default"), "bucket": cache.Label("app", "web"),
		"union": cache.Index("byNode", "n1", "n2"), "descending": cache.Descending(),
	} {
		t.Run(name, func(t *testing.T) {
			seen := 0
			for range somePods().List(query) {
				seen++
				break
			}
			if seen != 1 {
				t.Errorf("%d objects", seen)
			}
		})
	}
}

func TestALateObjectIsFoundWhateverThePlan(t *testing.T) {
	store := somePods()
	for i := range 2000 { // so many that indexes pay, and buckets are trees
		store.Set(newPod("x"+strconv.Itoa(i), "app"+strconv.Itoa(i%7), "n"+strconv.Itoa(i%50)))
	}
	selector, err := labels.Parse("app in (app1, app2), app")
	if err != nil {
		t.Fatal(err)
	}
	want := 0
	for pod := range store.List() {
		if selector.Matches(labels.Set(pod.Labels)) && pod.Spec.NodeName == "n3" {
			want++
		}
	}
	if got := store.Count(cache.Selector(selector), cache.Index("byNode", "n3")); got != want || got == 0 {
		t.Errorf("%d pods, want %d", got, want)
	}
}

func TestAnObjectWithTwoValuesIsListedOnce(t *testing.T) {
	store := cache.New(cache.Options[*corev1.Pod]{Indexes: map[string]func(*corev1.Pod) []string{"byIP": byIP}})
	for i := range 200 { // so many that the index pays
		pod := newPod("x"+strconv.Itoa(i), "web", "n1")
		pod.Status.PodIPs = []corev1.PodIP{{IP: "10.0.0." + strconv.Itoa(i)}, {IP: "fd00::" + strconv.Itoa(i)}}
		store.Set(pod)
	}
	for name, queries := range map[string][]cache.Query{
		"two values":           {cache.Index("byIP", "10.0.0.7", "fd00::7")},
		"one value twice":      {cache.Index("byIP", "10.0.0.7", "10.0.0.7")},
		"two values, reversed": {cache.Index("byIP", "10.0.0.7", "fd00::7"), cache.Descending()},
	} {
		listed := 0
		for range store.List(queries...) {
			listed++
		}
		if count := store.Count(queries...); listed != 1 || count != 1 {
			t.Errorf("%s: listed %d times, counted %d", name, listed, count)
		}
	}
}

// One writer moves a token from pods to nodes and back, always adding before it
// removes. At no point in time is it nowhere.
func TestAViewIsOnePointInTime(t *testing.T) {
	var group cache.Group
	pods := cache.New(cache.Options[*corev1.Pod]{Group: &group})
	nodes := cache.New(cache.Options[*corev1.Node]{Group: &group})
	token := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "token"}}
	nodes.Set(token)
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 3 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				view := group.View()
				_, inPods := pods.At(view).Get("default", "token")
				_, inNodes := nodes.At(view).Get("", "token")
				if !inPods && !inNodes {
					t.Error("the token is nowhere")
					return
				}
			}
		})
	}
	for range 2000 {
		pods.Set(newPod("token", "", ""))
		nodes.Delete(cache.Key{Name: "token"})
		nodes.Set(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "token"}})
		pods.Delete(cache.Key{Namespace: "default", Name: "token"})
	}
	close(stop)
	readers.Wait()
}

func TestStoresOfAGroupPublishAtTheSameTime(t *testing.T) {
	var group cache.Group
	var stores []*cache.Store[*corev1.Pod]
	var writers sync.WaitGroup
	for range 4 {
		stores = append(stores, cache.New(cache.Options[*corev1.Pod]{Group: &group}))
	}
	for _, store := range stores {
		writers.Go(func() {
			for i := range 300 {
				store.Set(newPod(strconv.Itoa(i), "web", "n1"))
			}
		})
	}
	writers.Wait()
	for i, store := range stores {
		if n := store.At(group.View()).Count(); n != 300 {
			t.Errorf("store %d has %d of 300 pods", i, n)
		}
	}
}

func TestAStoreThatLeavesItsGroupLivesOn(t *testing.T) {
	var group cache.Group
	first := cache.New(cache.Options[*corev1.Pod]{Group: &group})
	second := cache.New(cache.Options[*corev1.Pod]{Group: &group})
	first.Set(newPod("a", "web", "n1"))
	second.Set(newPod("b", "web", "n1"))
	before := group.View()
	first.Leave()
	first.Set(newPod("c", "web", "n1"))
	second.Set(newPod("d", "web", "n1"))
	got := fmt.Sprint(first.Count(), second.Count(), first.At(before).Count(), first.At(group.View()).Count(), second.At(group.View()).Count())
	if got != "2 2 1 0 2" {
		t.Errorf("counts are %s", got)
	}
}

func TestRevisions(t *testing.T) {
	for name, c := range map[string]struct {
		state, written cache.Revision
		want           bool
	}{
		"same":          {"12", "12", true},
		"later":         {"100", "99", true},
		"earlier":       {"99", "100", false},
		"nothing yet":   {"", "1", false},
		"no write":      {"", "", true},
		"not a number":  {"b", "a", false},
		"not, but same": {"a", "a", true},
	} {
		if got := c.state.Includes(c.written); got != c.want {
			t.Errorf("%s: %q includes %q: %t", name, c.state, c.written, got)
		}
	}
}

func TestEntriesKnowWhatTheirObjectsAre(t *testing.T) {
	for name, opts := range kept() {
		t.Run(name, func(t *testing.T) {
			store := cache.New(opts)
			pod := newPod("web-1", "web", "n1")
			pod.UID, pod.ResourceVersion = "u-1", "17"
			store.Set(pod)
			e := store.Snapshot().Entry("default", "web-1")
			got := []string{e.Key().String(), string(e.Revision()), string(e.UID()), e.Labels().Get("app"), fmt.Sprint(e.Labels().Has("x")), e.Object().Name}
			if want := []string{"default/web-1", "17", "u-1", "web", "false", "web-1"}; !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestStatsFollowTheObjects(t *testing.T) {
	for name, opts := range kept() {
		t.Run(name, func(t *testing.T) {
			store := cache.New(opts)
			empty := store.Stats()
			for i := range 100 {
				store.Set(newPod("web-"+strconv.Itoa(i), "web", "n"+strconv.Itoa(i%10)))
			}
			full := store.Stats()
			if full.Objects != 100 || full.ObjectBytes < 100*100 || full.TreeBytes < 100*8 {
				t.Errorf("100 pods: %+v", full)
			}
			if full.Indexes["byNode"] != (cache.IndexStats{Values: 10, Entries: 100}) || full.Labels["app"] != (cache.IndexStats{Values: 1, Entries: 100}) {
				t.Errorf("indexes: %+v %+v", full.Indexes, full.Labels)
			}
			for i := range 100 {
				store.Delete(cache.Key{Namespace: "default", Name: "web-" + strconv.Itoa(i)})
			}
			if left := store.Stats(); left.ObjectBytes != empty.ObjectBytes || left.TreeBytes != empty.TreeBytes {
				t.Errorf("all pods are gone: %+v", left)
			}
		})
	}
}
