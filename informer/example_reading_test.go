package informer_test

import (
	"context"
	"errors"
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
)

// watched is an informer of a shop's config maps, which is synced.
func watched(namespace string, opts ...informer.Option) (*informer.Set, *informer.Informer[*corev1.ConfigMap]) {
	set := informer.NewSet(shop(namespace), informer.Config{})
	set.Start()
	maps := informer.For[*corev1.ConfigMap](set, append(opts, informer.InNamespace(namespace))...)
	synced(set)
	return set, maps
}

func ExampleNewSet() {
	set := informer.NewSet(shop("example-set"), informer.Config{
		OnError:  func(f informer.Failure) { log.Printf("%s: %v, again in %s", f.Kind, f.Err, f.Wait) },
		PageSize: 500,
	})
	maps := informer.For[*corev1.ConfigMap](set, informer.InNamespace("example-set"))
	set.Start() // before it, nothing is sent
	defer set.Shutdown()
	synced(set)
	fmt.Println(maps.Count())
	// Output: 3
}

func ExampleSet_Run() {
	set := informer.NewSet(shop("example-run"), informer.Config{})
	maps := informer.For[*corev1.ConfigMap](set, informer.InNamespace("example-run"))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- set.Run(ctx) }()
	synced(set)
	cancel()
	fmt.Println(<-ended, maps.Count()) // caches stay readable
	// Output: <nil> 3
}

// The error names what is not synced, and why.
func ExampleSet_WaitForSync() {
	set := informer.NewSet(shop("example-wait"), informer.Config{})
	defer set.Shutdown()
	set.Start()
	widgets := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	informer.For[*unstructured.Unstructured](set, informer.Kind(widgets))
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	err := set.WaitForSync(ctx)
	fmt.Println(errors.Is(err, informer.ErrNotSynced), client.IsNoKind(err))
	// Output: true true
}

func ExampleInformer_Get() {
	set, maps := watched("example-get")
	defer set.Shutdown()
	web, ok := maps.Get("example-get", "web")
	fmt.Println(web.Name, ok)
	// Output: web true
}

func ExampleInformer_List() {
	set, maps := watched("example-list")
	defer set.Shutdown()
	for m := range maps.List(cache.Prefix("s")) {
		fmt.Println(m.Name)
	}
	// Output: search
}

func ExampleInformer_Snapshot() {
	set, maps := watched("example-snapshot")
	defer set.Shutdown()
	now := maps.Snapshot() // never changes
	fmt.Println(now.Count(), now.Revision() != "")
	// Output: 3 true
}

func ExampleInformer_AddIndex() {
	set, maps := watched("example-add-index")
	defer set.Shutdown()
	err := maps.AddIndex("size", func(m *corev1.ConfigMap) []string { return []string{m.Data["size"]} })
	fmt.Println(maps.Count(cache.Index("size", "3")), err)
	// Output: 1 <nil>
}

// The watch ends with the last who uses it.
func ExampleInformer_Close() {
	set, one := watched("example-close")
	defer set.Shutdown()
	two := informer.For[*corev1.ConfigMap](set, informer.InNamespace("example-close"))
	one.Close()
	fmt.Println(len(set.Status()))
	two.Close()
	fmt.Println(len(set.Status()))
	// Output:
	// 1
	// 0
}

func ExampleInformer_Status() {
	set, maps := watched("example-informer-status")
	defer set.Shutdown()
	st := maps.Status()
	fmt.Println(st.Synced, st.Objects, st.Err, st.Parts[0].Phase)
	// Output: true 3 <nil> watching
}

func ExampleInformer_Stats() {
	set, maps := watched("example-stats")
	defer set.Shutdown()
	stats := maps.Stats()
	fmt.Println(stats.Objects, stats.Bytes() > 0)
	// Output: 3 true
}

func ExampleInformer_Verify() {
	set := informer.NewSet(shop("example-verify"), informer.Config{DetectMutations: true}) // in tests
	defer set.Shutdown()
	set.Start()
	maps := informer.For[*corev1.ConfigMap](set, informer.InNamespace("example-verify"))
	synced(set)
	web, _ := maps.Get("example-verify", "web")
	web.Data["size"] = "9" // a mistake: it is everybody's
	var m *cache.Mutation
	fmt.Println(errors.As(maps.Verify(), &m), m.Key.Name)
	// Output: true web
}

func ExampleTransform() {
	set, maps := watched("example-transform", informer.Transform(func(m *corev1.ConfigMap) *corev1.ConfigMap {
		m.Annotations, m.Data = nil, nil
		return m
	}))
	defer set.Shutdown()
	web, _ := maps.Get("example-transform", "web")
	fmt.Println(web.Name, len(web.Data))
	// Output: web 0
}

// Objects that are read rarely are kept encoded.
func ExampleCompact() {
	set, maps := watched("example-compact", informer.Compact(cache.Protobuf[corev1.ConfigMap]()))
	defer set.Shutdown()
	web, _ := maps.Get("example-compact", "web") // decodes it
	fmt.Println(web.Data["size"])
	// Output: 3
}

func ExampleLabels() {
	set, maps := watched("example-labels", informer.Labels("app in (cart, web)"))
	defer set.Shutdown()
	fmt.Println(maps.Count())
	// Output: 2
}

func ExampleFields() {
	set, maps := watched("example-fields", informer.Fields("metadata.name!=web"))
	defer set.Shutdown()
	fmt.Println(maps.Count())
	// Output: 2
}

// The union of several selections, each of which is watched by itself.
func ExampleSelect() {
	conn := shop("example-select-a")
	shop("example-select-b")
	set := informer.NewSet(conn, informer.Config{})
	defer set.Shutdown()
	set.Start()
	maps := informer.For[*corev1.ConfigMap](set, informer.Select(
		informer.Selection{Namespace: "example-select-a"},
		informer.Selection{Namespace: "example-select-b", Labels: "app=web"},
		informer.Selection{Namespace: "example-select-b", Fields: "metadata.name=cart"},
	))
	synced(set)
	fmt.Println(maps.Count())
	// Output: 5
}

// The same, by the name of the resource.
func ExampleResource() {
	set := informer.NewSet(shop("example-resource"), informer.Config{})
	defer set.Shutdown()
	set.Start()
	maps := informer.For[*unstructured.Unstructured](set, informer.InNamespace("example-resource"),
		informer.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}))
	synced(set)
	fmt.Println(maps.Count())
	// Output: 3
}

// What a handler is told of an object that is changed and then deleted.
func ExampleDelta() {
	conn := shop("example-delta")
	set := informer.NewSet(conn, informer.Config{})
	defer set.Shutdown()
	told := make(chan informer.Delta[*corev1.ConfigMap])
	maps := informer.For[*corev1.ConfigMap](set, informer.InNamespace("example-delta"), informer.Labels("app=web"))
	maps.Handle(func(d informer.Delta[*corev1.ConfigMap]) { told <- d })
	set.Start()
	show := func() {
		d := <-told
		old := "-"
		if d.Old() != nil {
			old = d.Old().Data["size"]
		}
		fmt.Println(d.Type, d.Key.Name, old, d.Object().Data["size"], d.Revision().Includes(d.OldRevision()))
	}
	show()
	c, key := client.Of[*corev1.ConfigMap](conn).In("example-delta"), client.Key{Name: "web"}
	if _, err := c.Patch(context.Background(), key, client.MergePatch(`{"data":{"size":"4"}}`)); err != nil {
		log.Fatal(err)
	}
	show()
	if err := c.Delete(context.Background(), key); err != nil {
		log.Fatal(err)
	}
	show()
	// Output:
	// Added web - 3 true
	// Updated web 3 4 true
	// Deleted web 4 4 true
}

// A handler can go while the informer stays.
func ExampleRegistration() {
	set, maps := watched("example-registration")
	defer set.Shutdown()
	handled := maps.Handle(func(informer.Delta[*corev1.ConfigMap]) {})
	<-handled.Synced() // it has been told of all that there is
	fmt.Println(handled.Pending())
	handled.Remove()
	<-handled.Done()
	fmt.Println(maps.Status().Handlers)
	// Output:
	// 0
	// 0
}

func ExampleScope_Set() {
	scope, err := informer.NewScope(informer.Selection{Namespace: "a"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(scope.Set(informer.Selection{Namespace: "b"}, informer.Selection{Labels: "app = web"}))
	fmt.Println(scope.Selections())
	fmt.Println(scope.Remove(informer.Selection{Namespace: "b"}), scope.Selections())
	// Output:
	// <nil>
	// [namespace b labels app=web]
	// <nil> [labels app=web]
}

// A layer lets clients read from an informer's cache, and see what they have just
// written.
func ExampleNewLayer() {
	const space = "example-layer"
	conn := shop(space)
	set := informer.NewSet(conn, informer.Config{})
	layer := informer.NewLayer(informer.For[*corev1.ConfigMap](set, informer.InNamespace(space)))
	set.Start()
	defer set.Shutdown()

	configs := client.Of[*corev1.ConfigMap](layered{conn, layer})
	made, err := configs.Create(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "new"}})
	if err != nil {
		panic(err)
	}
	read, err := configs.Get(context.Background(), client.KeyOf(made))
	fmt.Println(read.UID == made.UID, err)
	// Output: true <nil>
}
