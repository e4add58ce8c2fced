package informer_test

import (
	"context"
	"fmt"
	"log"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/cache"
	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/informer"
	"github.com/even-keel/evenkeel/workqueue"
)

// shop connects to a server with a namespace of three config maps.
func shop(namespace string) *client.Conn {
	conn, err := client.Connect(theServer.Config())
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := client.Of[*corev1.Namespace](conn).Create(ctx, ns); err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"cart", "search", "web"} {
		m := configMap(name, map[string]string{"size": fmt.Sprint(len(name))})
		if _, err := client.Of[*corev1.ConfigMap](conn).In(namespace).Create(ctx, m); err != nil {
			log.Fatal(err)
		}
	}
	return conn
}

// synced waits for informers for up to ten seconds.
func synced(set *informer.Set) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := set.WaitForSync(ctx); err != nil {
		log.Fatal(err)
	}
}

func Example() {
	conn := shop("example")
	set := informer.NewSet(conn, informer.Config{})
	defer set.Shutdown()
	maps := informer.For[*corev1.ConfigMap](set, informer.InNamespace("example"))
	handled := maps.Handle(func(d informer.Delta[*corev1.ConfigMap]) {
		fmt.Println(d.Type, d.Key.Name, d.Object().Data["size"])
	})
	set.Start()
	synced(set)
	<-handled.Synced()

	for m := range maps.List(cache.Label("app", "web")) {
		fmt.Println("listed", m.Name)
	}
	// Output:
	// Added cart 4
	// Added search 6
	// Added web 3
	// listed web
}

func ExampleFor_dynamic() {
	set := informer.NewSet(shop("example-dynamic"), informer.Config{})
	defer set.Shutdown()
	set.Start()
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	whole := informer.For[*unstructured.Unstructured](set, informer.Kind(kind), informer.InNamespace("example-dynamic"))
	slim := informer.For[*metav1.PartialObjectMetadata](set, informer.Kind(kind), informer.InNamespace("example-dynamic"))
	synced(set)

	cart, _ := whole.Get("example-dynamic", "cart")
	size, _, _ := unstructured.NestedString(cart.Object, "data", "size")
	web, _ := slim.Get("example-dynamic", "web")
	fmt.Println(size, web.Kind, web.Labels["app"])
	// Output:
	// 4 ConfigMap web
}

func ExampleIndex() {
	set := informer.NewSet(shop("example-index"), informer.Config{})
	defer set.Shutdown()
	set.Start()
	maps := informer.For[*corev1.ConfigMap](set, informer.InNamespace("example-index"),
		informer.Index("size", func(m *corev1.ConfigMap) []string { return []string{m.Data["size"]} }))
	synced(set)
	for m := range maps.List(cache.Index("size", "6")) {
		fmt.Println(m.Name)
	}
	// Output:
	// search
}

func ExampleInformer_HandleWith() {
	set := informer.NewSet(shop("example-filter"), informer.Config{})
	defer set.Shutdown()
	maps := informer.For[*corev1.ConfigMap](set, informer.InNamespace("example-filter"))
	handled := maps.HandleWith(informer.HandlerOptions[*corev1.ConfigMap]{
		Filter:        func(m *corev1.ConfigMap) bool { return len(m.Name) > 3 },
		SkipUnchanged: true,
		Resync:        time.Hour,
	}, func(d informer.Delta[*corev1.ConfigMap]) { fmt.Println(d.Type, d.Key.Name, "initial:", d.Initial) })
	set.Start()
	<-handled.Synced()
	handled.Remove()
	// Output:
	// Added cart initial: true
	// Added search initial: true
}

func ExampleInformer_HandleBatch() {
	set := informer.NewSet(shop("example-batch"), informer.Config{})
	defer set.Shutdown()
	set.Start()
	maps := informer.For[*corev1.ConfigMap](set, informer.InNamespace("example-batch"))
	synced(set)
	handled := maps.HandleBatch(informer.HandlerOptions[*corev1.ConfigMap]{}, func(batch []informer.Delta[*corev1.ConfigMap]) {
		fmt.Println(len(batch), "at once")
	})
	<-handled.Synced()
	// Output:
	// 3 at once
}

// A handler that does nothing but add keys to a queue is the beginning of a
// controller.
func ExampleInformer_Handle() {
	set := informer.NewSet(shop("example-queue"), informer.Config{})
	defer set.Shutdown()
	queue := workqueue.New(workqueue.Options[client.Key]{})
	maps := informer.For[*corev1.ConfigMap](set, informer.InNamespace("example-queue"))
	handled := maps.Handle(func(d informer.Delta[*corev1.ConfigMap]) { queue.Add(d.Key) })
	set.Start()
	<-handled.Synced()
	fmt.Println(queue.Len(), "keys to work on")
	queue.ShutDown()
	// Output:
	// 3 keys to work on
}

func ExampleNewScope() {
	conn := shop("example-scope-a")
	shop("example-scope-b")
	scope, err := informer.NewScope(informer.Selection{Namespace: "example-scope-a"})
	if err != nil {
		log.Fatal(err)
	}
	set := informer.NewSet(conn, informer.Config{})
	defer set.Shutdown()
	set.Start()
	maps := informer.For[*corev1.ConfigMap](set, scope)
	synced(set)
	fmt.Println(maps.Count())

	more := make(chan struct{}, 10)
	maps.HandleWith(informer.HandlerOptions[*corev1.ConfigMap]{
		Filter: func(m *corev1.ConfigMap) bool { return m.Namespace == "example-scope-b" },
	}, func(informer.Delta[*corev1.ConfigMap]) { more <- struct{}{} })
	if err := scope.Add(informer.Selection{Namespace: "example-scope-b", Labels: "app in (cart,web)"}); err != nil {
		log.Fatal(err)
	}
	<-more
	<-more
	fmt.Println(maps.Count())
	// Output:
	// 3
	// 5
}

func ExampleSet_Status() {
	set := informer.NewSet(shop("example-status"), informer.Config{})
	defer set.Shutdown()
	set.Start()
	informer.For[*corev1.ConfigMap](set, informer.InNamespace("example-status"))
	synced(set)
	for _, s := range set.Status() {
		fmt.Println(s.Kind, s.Synced, s.Objects, s.Err, s.Parts[0].Selection)
	}
	// Output:
	// ConfigMap true 3 <nil> namespace example-status
}

func ExampleSet_View() {
	set := informer.NewSet(shop("example-view"), informer.Config{})
	defer set.Shutdown()
	set.Start()
	maps := informer.For[*corev1.ConfigMap](set, informer.InNamespace("example-view"))
	names := informer.For[*corev1.Namespace](set, informer.Fields("metadata.name=example-view"))
	synced(set)
	now := set.View() // both kinds at one point in time
	fmt.Println(maps.At(now).Count(), names.At(now).Count())
	// Output:
	// 3 1
}
