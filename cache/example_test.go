package cache_test

import (
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/even-keel/evenkeel/cache"
)

// newPod makes a pod of an application, on a node.
func newPod(name, app, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{NodeName: node},
	}
}

// somePods is a store with three pods and an index.
func somePods() *cache.Store[*corev1.Pod] {
	pods := cache.New(cache.Options[*corev1.Pod]{
		Indexes: map[string]func(*corev1.Pod) []string{"byNode": byNode},
	})
	pods.Set(newPod("web-1", "web", "n1"), newPod("web-2", "web", "n2"), newPod("db-1", "db", "n1"))
	return pods
}

func Example() {
	pods := cache.New(cache.Options[*corev1.Pod]{
		Indexes: map[string]func(*corev1.Pod) []string{
			"byNode": func(p *corev1.Pod) []string { return []string{p.Spec.NodeName} },
		},
	})
	pods.Set(newPod("web-1", "web", "n1"), newPod("web-2", "web", "n2"), newPod("db-1", "db", "n1"))

	for pod := range pods.List(cache.InNamespace("default"), cache.Label("app", "web")) {
		fmt.Println(pod.Name, "on", pod.Spec.NodeName)
	}
	for pod := range pods.List(cache.Label("app", "web"), cache.Index("byNode", "n1")) {
		fmt.Println("on n1:", pod.Name)
	}
	// Output:
	// web-1 on n1
	// web-2 on n2
	// on n1: web-1
}

func ExampleStore_Get() {
	pods := somePods()
	if shared, ok := pods.Get("default", "web-1"); ok {
		pod := shared.DeepCopy() // the road to change
		pod.Spec.NodeName = "n3"
		fmt.Println(shared.Spec.NodeName, pod.Spec.NodeName)
	}
	_, ok := pods.Get("default", "web-9")
	fmt.Println(ok)
	// Output:
	// n1 n3
	// false
}

func ExampleStore_Apply() {
	pods := somePods()

	var b cache.Batch[*corev1.Pod]
	b.Set(newPod("web-3", "web", "n3"))
	b.Delete(cache.Key{Namespace: "default", Name: "db-1"})
	b.Complete("1007")
	for _, c := range pods.Apply(&b) {
		fmt.Println(c.Key(), "was there:", c.Old.Exists(), "is there:", c.New.Exists())
	}
	// Output:
	// default/web-3 was there: false is there: true
	// default/db-1 was there: true is there: false
}

func ExampleStore_Replace() {
	pods := somePods()
	pods.Replace("2000", []*corev1.Pod{newPod("web-7", "web", "n1")})
	fmt.Println(pods.Count(), "pod at revision", pods.Snapshot().Revision())
	// Output: 1 pod at revision 2000
}

func ExampleStore_AddIndex() {
	pods := somePods()
	err := pods.AddIndex("byLength", func(p *corev1.Pod) []string { return []string{strconv.Itoa(len(p.Name))} })
	fmt.Println(err, pods.Count(cache.Index("byLength", "5")))
	// Output: <nil> 2
}

func ExampleStore_Snapshot() {
	pods := somePods()
	before := pods.Snapshot()
	pods.Delete(cache.Key{Namespace: "default", Name: "web-1"})
	fmt.Println(before.Count(cache.Label("app", "web")), pods.Count(cache.Label("app", "web")))
	// Output: 2 1
}

func ExampleSnapshot_Entries() {
	for e := range somePods().Snapshot().Entries(cache.Prefix("web-")) { // decodes nothing
		fmt.Println(e.Key(), e.Labels().Get("app"))
	}
	// Output:
	// default/web-1 web
	// default/web-2 web
}

func ExampleGroup() {
	var group cache.Group
	pods := cache.New(cache.Options[*corev1.Pod]{Group: &group})
	nodes := cache.New(cache.Options[*corev1.Node]{Group: &group})
	nodes.Set(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	pods.Set(newPod("web-1", "web", "n1"))

	view := group.View()
	nodes.Delete(cache.Key{Name: "n1"})

	for pod := range pods.At(view).List() {
		_, ok := nodes.At(view).Get("", pod.Spec.NodeName)
		fmt.Println(pod.Name, "has its node:", ok)
	}
	// Output: web-1 has its node: true
}

func ExampleSelector() {
	selector, err := labels.Parse("app in (web, db), app != db")
	if err != nil {
		fmt.Println(err)
	}
	for pod := range somePods().List(cache.Selector(selector)) {
		fmt.Println(pod.Name)
	}
	// Output:
	// web-1
	// web-2
}

func ExampleIndexPrefix() {
	fmt.Println(somePods().Count(cache.IndexPrefix("byNode", "n")))
	// Output: 3
}

func ExampleField() {
	fmt.Println(somePods().Count(cache.Field("metadata.name", "db-1"), cache.Field("metadata.namespace", "default")))
	// Output: 1
}

func ExampleAfter() {
	now := somePods().Snapshot()
	var last cache.Key
	for now.Count(cache.After(last)) > 0 {
		page := 0
		for e := range now.Entries(cache.After(last)) {
			last = e.Key()
			fmt.Print(last.Name, " ")
			if page++; page == 2 {
				break
			}
		}
		fmt.Println("| next page")
	}
	// Output:
	// db-1 web-1 | next page
	// web-2 | next page
}

func ExampleDescending() {
	for pod := range somePods().List(cache.Descending()) {
		fmt.Println(pod.Name)
	}
	// Output:
	// web-2
	// web-1
	// db-1
}

// A compact store keeps its objects encoded.
func ExampleProtobuf() {
	pods := cache.New(cache.Options[*corev1.Pod]{Compact: cache.Protobuf[corev1.Pod]()})
	pods.Set(newPod("web-1", "web", "n1"))
	first, _ := pods.Get("default", "web-1")
	second, _ := pods.Get("default", "web-1")
	fmt.Println(first.Spec.NodeName, second.Spec.NodeName, first == second)
	// Output: n1 n1 false
}

func ExampleJSON() {
	things := cache.New(cache.Options[*unstructured.Unstructured]{Compact: cache.JSON[unstructured.Unstructured]()})
	things.Set(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Thing",
		"metadata": map[string]any{"name": "one", "labels": map[string]any{"size": "big"}},
	}})
	for thing := range things.List(cache.Label("size", "big")) {
		fmt.Println(thing.GetKind(), thing.GetName())
	}
	// Output: Thing one
}

func ExampleStore_Verify() {
	pods := cache.New(cache.Options[*corev1.Pod]{DetectMutations: true})
	pods.Set(newPod("web-1", "web", "n1"))

	shared, _ := pods.Get("default", "web-1")
	shared.Spec.NodeName = "n2" // a mistake

	var m *cache.Mutation
	if errors.As(pods.Verify(), &m) {
		fmt.Println(m.Key, m.Fields)
	}
	// Output: default/web-1 [spec.nodeName: "n1" -> "n2"]
}

func ExampleStore_Stats() {
	stats := somePods().Stats()
	fmt.Println(stats.Objects, "objects,", stats.Labels["app"].Values, "applications,", stats.Indexes["byNode"].Values, "nodes")
	// Output: 3 objects, 2 applications, 2 nodes
}

func ExampleRevision_Includes() {
	written := cache.Revision("1007")
	fmt.Println(cache.Revision("999").Includes(written), cache.Revision("1010").Includes(written))
	// Output: false true
}

// Two kinds whose objects have much in common can share it.
func ExampleInterner() {
	shared := cache.NewInterner()
	pods := cache.New(cache.Options[*corev1.Pod]{Interner: shared})
	services := cache.New(cache.Options[*corev1.Service]{Interner: shared})
	pods.Set(newPod("web-1", "web", "n1"))
	services.Set(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"app": "web"}}})
	fmt.Println(pods.Count(cache.Label("app", "web")), services.Count(cache.Label("app", "web")))
	// Output: 1 1
}
