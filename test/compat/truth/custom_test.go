package truth

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/informer"
)

var (
	definitionKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	widgetKind     = schema.GroupVersionKind{Group: "truth.example.com", Version: "v1", Kind: "Widget"}
)

func widgetDefinition() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "widgets.truth.example.com"},
		"spec": map[string]any{
			"group": widgetKind.Group, "scope": "Cluster",
			"names": map[string]any{"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}}
}

// TestACustomKindComesAndGoes: an informer that is there before its kind picks it
// up, loses its objects with it, and picks it up again.
func TestACustomKindComesAndGoes(t *testing.T) {
	for name, start := range map[string]func(*testing.T) *target{"evenkeel": evenkeel, "kube-apiserver": kubernetes} {
		t.Run(name, func(t *testing.T) {
			conn := connect(t, start(t).admin)
			set := informer.NewSet(conn, informer.Config{MaxBackoff: 100 * time.Millisecond})
			defer set.Shutdown()
			set.Start()
			widgets := informer.For[*unstructured.Unstructured](set, informer.Kind(widgetKind))
			told := make(chan string, 10)
			widgets.Handle(func(d informer.Delta[*unstructured.Unstructured]) { told <- d.Type.String() + " " + d.Key.Name })
			until(t, "the kind is missed", func() bool { return client.IsNoKind(widgets.Status().Err) })
			for range 2 {
				comeAndGo(t, conn, told)
			}
		})
	}
}

func comeAndGo(t *testing.T, conn *client.Conn, told <-chan string) {
	t.Helper()
	crds := client.Of[*unstructured.Unstructured](conn, client.Kind(definitionKind))
	made, err := crds.Create(t.Context(), widgetDefinition())
	if err != nil {
		t.Fatal(err)
	}
	objects := client.Of[*unstructured.Unstructured](conn, client.Kind(widgetKind))
	until(t, "a widget is made", func() bool {
		w := &unstructured.Unstructured{}
		w.SetGroupVersionKind(widgetKind)
		w.SetName("left")
		_, err = objects.Create(t.Context(), w)
		return err == nil
	})
	expectTold(t, told, "Added left")
	if err := crds.Delete(t.Context(), client.KeyOf(made)); err != nil {
		t.Fatal(err)
	}
	expectTold(t, told, "Deleted left")
	until(t, "the definition is gone", func() bool {
		_, err := crds.Get(t.Context(), client.KeyOf(made))
		return client.IsNotFound(err)
	})
}

func expectTold(t *testing.T, told <-chan string, want string) {
	t.Helper()
	select {
	case got := <-told:
		if got != want {
			t.Fatalf("the handler was told %q, not %q", got, want)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("the handler was not told %q", want)
	}
}

// until asks until it is so.
func until(t *testing.T, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(30 * time.Second); !so(); {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}
