package evenkeeltest_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
)

const widgets = `
apiVersion: example.com/v1
kind: Widget
metadata: {name: a}
spec: {size: 3}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer}, color: {type: string, default: red}}}
`

var widgetKind = client.Kind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"})

func config(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"a": "1"}}
}

func TestDefinitionsAreAppliedFirst(t *testing.T) {
	t.Parallel()
	env := evenkeeltest.Start(t)
	env.Apply(widgets)
	evenkeeltest.Eventually(env, client.Key{Namespace: "default", Name: "a"}, func(w *unstructured.Unstructured) error {
		color, _, _ := unstructured.NestedString(w.Object, "spec", "color")
		if color != "red" {
			return fmt.Errorf("it is %s", color)
		}
		return nil
	}, widgetKind)
}

func TestASnapshotIsRestored(t *testing.T) {
	t.Parallel()
	env := evenkeeltest.Start(t)
	maps := client.Of[*corev1.ConfigMap](env.Conn())
	for _, name := range []string{"kept", "changed", "deleted"} {
		if _, err := maps.Create(t.Context(), config(name)); err != nil {
			t.Fatal(err)
		}
	}
	before := env.Snapshot()
	changed := config("changed")
	changed.Data["a"] = "2"
	if _, err := maps.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	if err := maps.Delete(t.Context(), client.KeyOf(config("deleted"))); err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Create(t.Context(), config("new")); err != nil {
		t.Fatal(err)
	}
	env.Restore(before)
	for name, want := range map[string]string{"kept": "1", "changed": "1", "deleted": "1"} {
		got, err := maps.Get(t.Context(), client.KeyOf(config(name)))
		if err != nil || got.Data["a"] != want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if _, err := maps.Get(t.Context(), client.KeyOf(config("new"))); !client.IsNotFound(err) {
		t.Errorf("what is new is still there: %v", err)
	}
}

func TestARestartKeepsStateAndAddress(t *testing.T) {
	t.Parallel()
	env := evenkeeltest.Start(t)
	maps := client.Of[*corev1.ConfigMap](env.Conn())
	if _, err := maps.Create(t.Context(), config("a")); err != nil {
		t.Fatal(err)
	}
	hasty, err := client.Connect(env.Config(), client.Retries(0))
	if err != nil {
		t.Fatal(err)
	}
	env.Restart(func() {
		if _, err := client.Of[*corev1.ConfigMap](hasty).Get(t.Context(), client.KeyOf(config("a"))); err == nil {
			t.Error("the server answers while it is down")
		}
	})
	if _, err := maps.Get(t.Context(), client.KeyOf(config("a"))); err != nil {
		t.Error(err)
	}
}

func TestCutBreaksWatches(t *testing.T) {
	t.Parallel()
	env := evenkeeltest.Start(t)
	cut := false
	for event, err := range client.Of[*corev1.ConfigMap](env.Conn()).Watch(t.Context(), client.InitialEvents()) {
		if err != nil {
			if !cut {
				t.Fatal(err)
			}
			return
		}
		if event.InitialEnd() {
			cut = true
			env.Cut()
		}
	}
	if !cut {
		t.Error("the watch ended by itself")
	}
}

func TestOthersAreRefused(t *testing.T) {
	t.Parallel()
	env := evenkeeltest.Start(t)
	maps, err := client.New[*corev1.ConfigMap](env.ConfigFor("jane", "developers"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := maps.All(t.Context()); !client.IsForbidden(err) {
		t.Errorf("jane may list: %v", err)
	}
}

func BenchmarkStart(b *testing.B) {
	evenkeeltest.Start(b)
	for b.Loop() {
		evenkeeltest.Start(b)
	}
}
