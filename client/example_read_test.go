package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/client"
)

// colors is a namespace of three config maps, and a client of it.
func colors() (context.Context, *client.Client[*corev1.ConfigMap]) {
	conn, ns := example()
	maps := client.Of[*corev1.ConfigMap](conn).In(ns)
	for _, name := range []string{"blue", "green", "red"} {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"warm": fmt.Sprint(name == "red")}}}
		if _, err := maps.Create(context.Background(), m); err != nil {
			log.Fatal(err)
		}
	}
	return context.Background(), maps
}

func ExampleClient_Get() {
	ctx, maps := colors()
	red, err := maps.Get(ctx, client.Key{Name: "red"})
	fmt.Println(red.Kind, red.Name, err)
	_, err = maps.Get(ctx, client.Key{Name: "pink"})
	fmt.Println(client.IsNotFound(err))
	// Output:
	// ConfigMap red <nil>
	// true
}

func ExampleClient_All() {
	ctx, maps := colors()
	all, revision, err := maps.All(ctx)
	fmt.Println(len(all), revision != "", err) // a watch from the revision misses nothing
	// Output: 3 true <nil>
}

func ExampleClient_In() {
	ctx, maps := colors()
	everywhere := maps.In("")
	some := 0
	for m, err := range everywhere.List(ctx, client.Labels("warm")) {
		if err != nil {
			log.Fatal(err)
		}
		if m.Name == "red" {
			some++
		}
	}
	fmt.Println(some >= 1)
	// Output: true
}

func ExampleLabels() {
	ctx, maps := colors()
	for m, err := range maps.List(ctx, client.Labels("warm in (true), !old")) {
		fmt.Println(m.Name, err)
	}
	// Output: red <nil>
}

func ExampleFields() {
	ctx, maps := colors()
	for m, err := range maps.List(ctx, client.Fields("metadata.name!=red")) {
		fmt.Println(m.Name, err)
	}
	// Output:
	// blue <nil>
	// green <nil>
}

// A read of the past, as long as the server remembers it.
func ExampleAt() {
	ctx, maps := colors()
	_, before, err := maps.All(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := maps.Delete(ctx, client.Key{Name: "red"}); err != nil {
		log.Fatal(err)
	}
	now, _, err := maps.All(ctx)
	if err != nil {
		log.Fatal(err)
	}
	then, _, err := maps.All(ctx, client.At(before))
	fmt.Println(len(now), len(then), err)
	// Output: 2 3 <nil>
}

// What a list and a watch do, in one.
func ExampleInitialEvents() {
	ctx, maps := colors()
	for event, err := range maps.Watch(ctx, client.InitialEvents()) {
		if err != nil {
			log.Fatal(err)
		}
		if event.InitialEnd() {
			fmt.Println("that is the state; what follows are changes")
			break
		}
		fmt.Println(event.Type, event.Object.Name)
	}
	// Output:
	// ADDED blue
	// ADDED green
	// ADDED red
	// that is the state; what follows are changes
}

func ExampleClient_WatchRaw() {
	ctx, maps := colors()
	watch, err := maps.WatchRaw(ctx, client.Field("metadata.name", "red"))
	if err != nil {
		log.Fatal(err)
	}
	defer watch.Close()
	var buf []byte
	frame, err := watch.Next(&buf)
	if err != nil && !errors.Is(err, io.EOF) {
		log.Fatal(err)
	}
	m, err := maps.Decode(frame.Object)
	fmt.Println(frame.Type, frame.Object.Encoding, m.Name, err)
	// Output: ADDED protobuf red <nil>
}

func ExampleConn_Resolve() {
	conn, _ := example()
	r, err := conn.Resolve(context.Background(), schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	fmt.Println(r.Resource, r.Namespaced, err)
	// Output: deployments true <nil>
}

// A client may be made before its kind exists.
func ExampleIsNoKind() {
	conn, ns := example()
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	widgets := client.Of[*unstructured.Unstructured](conn, client.Kind(kind)).In(ns)
	_, err := widgets.Get(context.Background(), client.Key{Name: "a"})
	fmt.Println(client.IsNoKind(err))
	// Output: true
}

// Types that are not of k8s.io/api are known by a scheme.
func ExampleScheme() {
	scheme := runtime.NewScheme()
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	scheme.AddKnownTypeWithName(kind, &palette{})
	conn, err := client.Connect(theServer.Config(), client.Scheme(scheme))
	if err != nil {
		log.Fatal(err)
	}
	_, maps := colors()
	red, err := maps.Get(context.Background(), client.Key{Name: "red"})
	if err != nil {
		log.Fatal(err)
	}
	mine, err := client.Of[*palette](conn).Get(context.Background(), client.KeyOf(red))
	fmt.Println(mine.Name, err)
	// Output: red <nil>
}

// palette is a type of somebody's own.
type palette struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
}

func (p *palette) DeepCopyObject() runtime.Object {
	c := *p
	c.ObjectMeta = *p.ObjectMeta.DeepCopy()
	return &c
}

// shelf is a layer that answers reads by itself, and sees what was written.
type shelf struct {
	conn    *client.Conn
	objects map[string]*corev1.ConfigMap
}

func (m *shelf) Conn() *client.Conn { return m.conn }

func (m *shelf) Layer(kind schema.GroupVersionKind, form client.Form) client.Layer {
	if kind.Kind != "ConfigMap" || form != client.Typed {
		return nil
	}
	return m
}

func (m *shelf) Get(_ context.Context, key client.Key) (client.Object, error) {
	return m.objects[key.Name], nil
}

func (m *shelf) List(context.Context, client.ReadOptions) iter.Seq2[client.Object, error] {
	return func(yield func(client.Object, error) bool) {
		for _, o := range m.objects {
			if !yield(o, nil) {
				return
			}
		}
	}
}

func (m *shelf) Wrote(w client.Write) { m.objects[w.Key.Name] = w.Object.(*corev1.ConfigMap) }

// A source with a layer has the same clients, which read from it.
func ExampleLayered() {
	conn, ns := example()
	source := &shelf{conn: conn, objects: map[string]*corev1.ConfigMap{}}
	maps := client.Of[*corev1.ConfigMap](source).In(ns)
	if _, err := maps.Create(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "red"}}); err != nil {
		log.Fatal(err)
	}
	red, err := maps.Get(context.Background(), client.Key{Name: "red"})
	fmt.Println(red == source.objects["red"], err)
	_, err = maps.Live().Get(context.Background(), client.Key{Name: "red"}) // from the server
	fmt.Println(err)
	// Output:
	// true <nil>
	// <nil>
}
