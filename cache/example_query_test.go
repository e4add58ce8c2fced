package cache_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/even-keel/evenkeel/cache"
)

func ExampleNew() {
	nodes := cache.New(cache.Options[*corev1.Node]{
		Transform: func(n *corev1.Node) *corev1.Node {
			n.Status.Images = nil // large, and of no interest here
			return n
		},
	})
	nodes.Set(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{Images: make([]corev1.ContainerImage, 50)}})
	n1, _ := nodes.Get("", "n1")
	fmt.Println(len(n1.Status.Images))
	// Output: 0
}

func ExampleInNamespace() {
	fmt.Println(somePods().Count(cache.InNamespace("default")), somePods().Count(cache.InNamespace("a", "b")))
	// Output: 3 0
}

func ExampleLabel() {
	for pod := range somePods().List(cache.Label("app", "db")) {
		fmt.Println(pod.Name)
	}
	// Output: db-1
}

func ExampleIndex() {
	for pod := range somePods().List(cache.Index("byNode", "n1")) {
		fmt.Println(pod.Name)
	}
	// Output:
	// db-1
	// web-1
}

func ExamplePrefix() {
	fmt.Println(somePods().Count(cache.Prefix("web-")))
	// Output: 2
}

func ExampleStore_Set() {
	pods := somePods()
	pods.Set(newPod("web-3", "web", "n3"), newPod("web-4", "web", "n3")) // both at once
	fmt.Println(pods.Count(cache.Index("byNode", "n3")))
	// Output: 2
}

func ExampleStore_List() {
	pods := somePods()
	for pod := range pods.List(cache.Label("app", "web")) {
		pods.Delete(cache.KeyOf(pod)) // the list stays what it was
		fmt.Println(pod.Name)
	}
	fmt.Println(pods.Count())
	// Output:
	// web-1
	// web-2
	// 1
}

// Several changes, which readers see all or none of.
func ExampleBatch() {
	pods := somePods()
	var b cache.Batch[*corev1.Pod]
	b.Set(newPod("web-3", "web", "n3"))
	b.Delete(cache.Key{Namespace: "default", Name: "web-1"})
	b.Complete("1042")
	pods.Apply(&b)
	fmt.Println(pods.Count(), pods.Snapshot().Revision())
	// Output: 3 1042
}

// An object that was deleted and made again is told apart by its UID.
func ExampleChange_Recreated() {
	pods := cache.New(cache.Options[*corev1.Pod]{})
	for _, uid := range []types.UID{"first", "second"} {
		pod := newPod("web-1", "web", "n1")
		pod.UID = uid
		var b cache.Batch[*corev1.Pod]
		b.Set(pod)
		for _, c := range pods.Apply(&b) {
			fmt.Println(c.Key().Name, c.Recreated())
		}
	}
	// Output:
	// web-1 false
	// web-1 true
}

func ExampleGroup_View() {
	var group cache.Group
	pods := cache.New(cache.Options[*corev1.Pod]{Group: &group})
	services := cache.New(cache.Options[*corev1.Service]{Group: &group})
	before := group.View()
	pods.Set(newPod("web-1", "web", "n1"))
	services.Set(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}})
	now := group.View()
	fmt.Println(pods.At(before).Count(), services.At(before).Count(), "then", pods.At(now).Count(), services.At(now).Count())
	// Output: 0 0 then 1 1
}

func ExampleSnapshot_Get() {
	pods := somePods()
	now := pods.Snapshot()
	pods.Delete(cache.Key{Namespace: "default", Name: "db-1"})
	_, ok := now.Get("default", "db-1")
	fmt.Println(ok)
	// Output: true
}

func ExampleSnapshot_Entry() {
	e := somePods().Snapshot().Entry("default", "web-1")
	fmt.Println(e.Exists(), e.Key().Name, e.Labels().Get("app"), e.Object().Spec.NodeName)
	// Output: true web-1 web n1
}

func ExampleNewInterner() {
	shared := cache.NewInterner()
	a, b := shared.String(string([]byte("web"))), shared.String(string([]byte("web")))
	fmt.Println(a == b) // and they are the same in memory
	// Output: true
}
