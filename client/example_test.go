package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/even-keel/evenkeel/client"
)

// example returns a connection to a real server, and a new namespace of it. A
// program has its configuration from [client.LoadConfig].
func example() (*client.Conn, string) {
	conn, err := client.Connect(theServer.Config())
	if err != nil {
		log.Fatal(err)
	}
	ns, err := client.Of[*corev1.Namespace](conn).Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "example-"}})
	if err != nil {
		log.Fatal(err)
	}
	return conn, ns.Name
}

func Example() {
	ctx := context.Background()
	conn, ns := example()
	maps := client.Of[*corev1.ConfigMap](conn).In(ns)

	_, err := maps.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "colors"},
		Data:       map[string]string{"sky": "blue"},
	})
	if err != nil {
		log.Fatal(err)
	}
	colors, err := maps.Get(ctx, client.Key{Name: "colors"})
	if err != nil {
		log.Fatal(err)
	}
	colors.Data["grass"] = "green"
	if _, err = maps.Update(ctx, colors); client.IsConflict(err) {
		log.Fatal("somebody else was faster: read it again")
	}
	for m, err := range maps.List(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(m.Name, m.Data)
	}
	// Output: colors map[grass:green sky:blue]
}

func ExampleLoadConfig() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "admin.kubeconfig")
	if err := os.WriteFile(file, fmt.Appendf(nil, kubeconfig, "127.0.0.1:6443"), 0o600); err != nil {
		log.Fatal(err)
	}

	cfg, err := client.LoadConfig(client.ConfigOptions{Kubeconfig: file})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(cfg.Host)
	// Output: https://127.0.0.1:6443
}

func ExampleConnect() {
	conn, err := client.Connect(theServer.Config(), client.Manager("painter"))
	if err != nil {
		log.Fatal(err)
	}
	ready, err := conn.Get(context.Background(), "/readyz")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(ready))
	// Output: ok
}

func ExampleNew() {
	namespaces, err := client.New[*corev1.Namespace](theServer.Config())
	if err != nil {
		log.Fatal(err)
	}
	system, err := namespaces.Get(context.Background(), client.Key{Name: "kube-system"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(system.Name, system.Status.Phase)
	// Output: kube-system Active
}

// The same methods for objects without a Go type, and for metadata alone.
func ExampleOf() {
	ctx := context.Background()
	conn, _ := example()
	kind := client.Kind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	key := client.Key{Name: "kube-system"}

	dynamic, err := client.Of[*unstructured.Unstructured](conn, kind).Get(ctx, key)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(dynamic.Object["status"])
	partial, err := client.Of[*metav1.PartialObjectMetadata](conn, kind).Get(ctx, key)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(partial.Kind, partial.Name)
	// Output:
	// map[phase:Active]
	// Namespace kube-system
}

// A list, and all that happened after it.
func ExampleClient_Watch() {
	ctx := context.Background()
	conn, ns := example()
	maps := client.Of[*corev1.ConfigMap](conn).In(ns)
	before, revision, err := maps.All(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(before), "before")

	made, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	if err != nil {
		log.Fatal(err)
	}
	if err := maps.Delete(ctx, client.KeyOf(made), client.IfUID(made.UID)); err != nil {
		log.Fatal(err)
	}
	for event, err := range maps.Watch(ctx, client.From(revision)) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(event.Type, event.Object.Name)
		if event.Type == client.Deleted {
			break
		}
	}
	// Output:
	// 0 before
	// ADDED a
	// DELETED a
}

// Pages are of one revision, however much is written between them.
func ExampleClient_List() {
	ctx := context.Background()
	conn, ns := example()
	maps := client.Of[*corev1.ConfigMap](conn).In(ns)
	for _, name := range []string{"a", "b", "c"} {
		_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"old": fmt.Sprint(name < "c")}}})
		if err != nil {
			log.Fatal(err)
		}
	}
	for m, err := range maps.List(ctx, client.Label("old", "true"), client.Chunk(1)) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(m.Name)
	}
	// Output:
	// a
	// b
}

func ExampleClient_Apply() {
	ctx := context.Background()
	conn, ns := example()
	maps := client.Of[*corev1.ConfigMap](conn).In(ns)
	colors := func(data map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "colors"}, Data: data}
	}
	for _, want := range []map[string]string{{"sky": "blue", "sea": "blue"}, {"sky": "grey"}} {
		got, err := maps.Apply(ctx, colors(want), client.FieldManager("painter"))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(got.Data)
	}
	_, err := maps.Apply(ctx, colors(map[string]string{"sky": "red"}), client.FieldManager("vandal"))
	fmt.Println("conflict:", client.IsConflict(err))
	// Output:
	// map[sea:blue sky:blue]
	// map[sky:grey]
	// conflict: true
}

func ExampleClient_Patch() {
	ctx := context.Background()
	conn, ns := example()
	maps := client.Of[*corev1.ConfigMap](conn).In(ns)
	made, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	if err != nil {
		log.Fatal(err)
	}
	got, err := maps.Patch(ctx, client.KeyOf(made), client.MergePatch(map[string]any{"data": map[string]string{"k": "v"}}))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(got.Data)
	// Output: map[k:v]
}

func ExampleSub() {
	ctx := context.Background()
	conn, ns := example()
	deployments := client.Of[*appsv1.Deployment](conn).In(ns)
	web, err := deployments.Create(ctx, deployment("web"))
	if err != nil {
		log.Fatal(err)
	}
	scales := client.Sub[*autoscalingv1.Scale](deployments, "scale")
	scale, err := scales.Patch(ctx, client.KeyOf(web), client.MergePatch(`{"spec":{"replicas":3}}`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(scale.Kind, scale.Spec.Replicas)
	// Output: Scale 3
}

// What an informer does: one goroutine reads, others decode.
func ExampleClient_ListRaw() {
	ctx := context.Background()
	conn, ns := example()
	maps := client.Of[*corev1.ConfigMap](conn).In(ns)
	for _, name := range []string{"a", "b", "c"} {
		if _, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			log.Fatal(err)
		}
	}
	list, err := maps.ListRaw(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer list.Close()
	var decoding []chan string // in order
	for {
		var buf []byte
		raw, err := list.Next(&buf)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			log.Fatal(err)
		}
		done := make(chan string, 1)
		decoding = append(decoding, done)
		go func() {
			m, err := maps.Decode(raw)
			if err != nil {
				log.Fatal(err)
			}
			done <- m.Name
		}()
	}
	var names []string
	for _, done := range decoding {
		names = append(names, <-done)
	}
	fmt.Println(strings.Join(names, " "))
	// Output: a b c
}
