package client_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/server/kinds"
)

// foo is a type of a user, in no scheme.
type foo struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              fooSpec `json:"spec"`
}

type fooSpec struct {
	Replicas int            `json:"replicas"`
	Free     map[string]any `json:"free,omitempty"`
}

func (f *foo) DeepCopyObject() runtime.Object {
	c := *f
	c.ObjectMeta = *f.ObjectMeta.DeepCopy()
	return &c
}

// kindedFoo knows its kind.
type kindedFoo struct{ foo }

func (*kindedFoo) APIKind() schema.GroupVersionKind { return fooKind }

func (f *kindedFoo) DeepCopyObject() runtime.Object {
	return &kindedFoo{*f.foo.DeepCopyObject().(*foo)}
}

var fooKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Foo"}

// TestBuiltinKindsNeedNoDiscovery holds the table of built-in kinds against what
// the server serves.
func TestBuiltinKindsNeedNoDiscovery(t *testing.T) {
	conn, _ := connect(t)
	scheme := kinds.Scheme()
	for _, k := range kinds.All() {
		goType, ok := scheme.AllKnownTypes()[k.GVK]
		if !ok || !strings.HasPrefix(goType.PkgPath(), "k8s.io/api/") {
			continue
		}
		want, err := conn.Resolve(t.Context(), k.GVK)
		if err != nil {
			t.Errorf("%s: %v", k.GVK, err)
			continue
		}
		got, ok := client.BuiltinResource(reflect.PointerTo(goType))
		if !ok || got != want {
			t.Errorf("%s is served as %+v, and taken for %+v", k.GVK, want, got)
		}
	}
}

// fooServer serves a custom resource once it is installed: what it keeps is one
// object.
type fooServer struct {
	plural    atomic.Pointer[string]
	discovers atomic.Int32
}

func (f *fooServer) handle(w http.ResponseWriter, r *http.Request, server http.Handler) {
	plural := f.plural.Load()
	switch {
	case !strings.HasPrefix(r.URL.Path, "/apis/example.com/"):
		server.ServeHTTP(w, r)
	case r.URL.Path == "/apis/example.com/v1":
		f.discovers.Add(1)
		if plural == nil {
			http.NotFound(w, r)
			return
		}
		answer(w, metav1.APIResourceList{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{
			{Name: *plural + "/status", Kind: "Foo", Namespaced: true}, {Name: *plural, Kind: "Foo", Namespaced: true},
		}})
	case plural != nil && r.URL.Path == "/apis/example.com/v1/namespaces/default/"+*plural+"/a":
		answer(w, map[string]any{
			"apiVersion": "example.com/v1", "kind": "Foo",
			"metadata": map[string]any{"name": "a", "namespace": "default", "uid": "1"},
			"spec":     map[string]any{"replicas": 3, "REPLICAS": 4, "free": map[string]any{"n": 1, "f": 1.5}},
		})
	default:
		http.NotFound(w, r)
	}
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func TestAKindIsPickedUpWhenItAppears(t *testing.T) {
	var f fooServer
	conn, err := client.Connect(theServer.InFront(t, f.handle))
	if err != nil {
		t.Fatal(err)
	}
	foos := client.Of[*foo](conn, client.Kind(fooKind)).In("default")
	key := client.Key{Name: "a"}
	for range 2 {
		if _, err := foos.Get(t.Context(), key); !client.IsNoKind(err) {
			t.Fatalf("before it is installed: %v", err)
		}
	}
	install := func(plural string) { f.plural.Store(&plural) }
	install("foos")
	for range 3 {
		got, err := foos.Get(t.Context(), key)
		if err != nil || got.Spec.Replicas != 3 {
			t.Fatalf("once it is installed: %+v, %v", got, err)
		}
		if n, f := got.Spec.Free["n"], got.Spec.Free["f"]; n != int64(1) || f != 1.5 {
			t.Errorf("numbers without a type are %T and %T", n, f)
		}
	}
	if n := f.discovers.Load(); n != 3 {
		t.Errorf("the server was asked %d times, not once per missing kind and once more", n)
	}
	install("fooes") // removed, and made again under another name
	if _, err := foos.Get(t.Context(), key); !client.IsNotFound(err) {
		t.Errorf("the old path: %v", err)
	}
	if _, err := foos.Get(t.Context(), key); err != nil {
		t.Errorf("the new path: %v", err)
	}
}

func TestAMissingObjectIsNoMissingKind(t *testing.T) {
	var asked atomic.Int32
	conn, ns := connectAs(t, theServer.InFront(t, func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		if r.URL.Path == "/api/v1" {
			asked.Add(1)
		}
		server.ServeHTTP(w, r)
	}))
	dynamic := client.Of[*unstructured.Unstructured](conn, client.Kind(configMaps)).In(ns)
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if _, err := dynamic.Get(t.Context(), client.Key{Name: "none"}); !client.IsNotFound(err) {
				t.Errorf("the error is %v", err)
			}
		})
	}
	all.Wait()
	if _, err := dynamic.Get(t.Context(), client.Key{Name: "none"}); !client.IsNotFound(err) {
		t.Errorf("the error is %v", err)
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("the server was asked %d times", n)
	}
}

func TestTypesTellTheirKind(t *testing.T) {
	var f fooServer
	plural := "foos"
	f.plural.Store(&plural)
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(fooKind, &foo{})
	conn, err := client.Connect(theServer.InFront(t, f.handle), client.Scheme(scheme))
	if err != nil {
		t.Fatal(err)
	}
	key := client.Key{Namespace: "default", Name: "a"}
	if got, err := client.Of[*foo](conn).Get(t.Context(), key); err != nil || got.Kind != "Foo" {
		t.Errorf("by the scheme: %+v, %v", got, err)
	}
	if got, err := client.Of[*kindedFoo](conn).Get(t.Context(), key); err != nil || got.Kind != "Foo" {
		t.Errorf("by its method: %+v, %v", got, err)
	}
	got, err := client.Of[*unstructured.Unstructured](conn, client.Kind(fooKind)).Get(t.Context(), key)
	if n, _, _ := unstructured.NestedInt64(got.Object, "spec", "replicas"); err != nil || n != 3 {
		t.Errorf("unstructured: %v, %v", got, err)
	}
	if r, err := client.Of[*corev1.Pod](conn, client.Kind(fooKind)).Resource(t.Context()); err != nil || r.Resource != "foos" {
		t.Errorf("an option goes before the type: %v, %v", r, err)
	}
}

func TestAnObjectTellsItsKind(t *testing.T) {
	conn, _ := connect(t)
	for name, test := range map[string]struct {
		object client.Object
		want   string
	}{
		"built in":      {&appsv1.Deployment{}, "apps/v1, Kind=Deployment"},
		"by a method":   {&kindedFoo{}, fooKind.String()},
		"as it says":    {&metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "a.io/v2", Kind: "A"}}, "a.io/v2, Kind=A"},
		"not what says": {&corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Half"}}, "/v1, Kind=Pod"},
		"nothing tells": {&metav1.PartialObjectMetadata{}, ""},
	} {
		kind, err := conn.KindOf(test.object)
		if test.want == "" {
			if err == nil {
				t.Errorf("%s: it is %s", name, kind)
			}
			continue
		}
		if err != nil || kind.String() != test.want {
			t.Errorf("%s: it is %s, %v", name, kind, err)
		}
	}
}
