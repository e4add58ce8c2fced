package patch

import (
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
)

func TestCatalogHasTheTypesOfClientGo(t *testing.T) {
	value, err := clientGoTypes().ObjectToTyped(aConfigMap())
	if err != nil {
		t.Fatal(err)
	}
	c := &catalog{types: map[string]*node{}}
	keys := map[string]bool{}
	for _, want := range value.Schema().Types {
		got := c.nodeLocked(want.Name).TypeDef
		listKeys(want.Atom, keys)
		if diff := cmp.Diff(asMap(t, comparable(want)), asMap(t, comparable(got))); diff != "" {
			t.Errorf("%s: -client-go +ours\n%s", want.Name, diff)
		}
	}
	for _, want := range value.Schema().Types {
		for _, f := range fieldsOfMap(want) {
			got, _ := c.nodeLocked(want.Name).FindField(f.Name)
			if keys[want.Name+"."+f.Name] && f.Default != got.Default {
				t.Errorf("%s.%s: default %v, want %v", want.Name, f.Name, got.Default, f.Default)
			}
		}
	}
	if len(c.types) < 900 || len(keys) < 50 {
		t.Errorf("only %d types and %d keys", len(c.types), len(keys))
	}
}

// comparable leaves out what the library does not look at: unions, and
// defaults of what is no key.
func comparable(t smd.TypeDef) smd.TypeDef {
	if t.Map == nil {
		return t
	}
	m := &smd.Map{ElementType: t.Map.ElementType, ElementRelationship: t.Map.ElementRelationship}
	for _, f := range t.Map.Fields {
		m.Fields = append(m.Fields, smd.StructField{Name: f.Name, Type: f.Type})
	}
	return smd.TypeDef{Name: t.Name, Atom: smd.Atom{Scalar: t.Scalar, List: t.List, Map: m}}
}

func fieldsOfMap(t smd.TypeDef) []smd.StructField {
	if t.Map == nil {
		return nil
	}
	return t.Map.Fields
}

func listKeys(a smd.Atom, keys map[string]bool) {
	if a.List != nil {
		for _, key := range a.List.Keys {
			keys[*a.List.ElementType.NamedType+"."+key] = true
		}
		listKeys(a.List.ElementType.Inlined, keys)
	}
	if a.Map != nil {
		for _, f := range a.Map.Fields {
			listKeys(f.Type.Inlined, keys)
		}
	}
}

func TestTypesSeeObjectsAsClientGoDoes(t *testing.T) {
	types := NewTypes(nil)
	kinds := map[string]bool{}
	for _, step := range recordedObjects(t) {
		obj := decodeTyped(t, step.Body)
		gvk := obj.GetObjectKind().GroupVersionKind()
		if !types.Knows(gvk) {
			continue
		}
		kinds[gvk.Kind] = true
		ours, err := types.ObjectToTyped(obj)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := clientGoTypes().ObjectToTyped(obj)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := ours.ToFieldSet()
		want, _ := theirs.ToFieldSet()
		if want.Size() < 5 || !got.Equals(want) {
			t.Errorf("%s %d, %s: got\n%s\nwant\n%s", step.Scenario, step.Step, gvk.Kind, got, want)
		}
		back, err := types.TypedToObject(ours)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(asMap(t, obj), asMap(t, back)); diff != "" {
			t.Errorf("%s: there and back\n%s", gvk.Kind, diff)
		}
	}
	if len(kinds) < 15 {
		t.Errorf("only %d kinds", len(kinds))
	}
}

func TestOtherKindsHaveTheFallback(t *testing.T) {
	widget := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "spec": map[string]any{"sizes": []any{int64(1)}},
	}}
	value, err := NewTypes(nil).ObjectToTyped(widget)
	if err != nil {
		t.Fatal(err)
	}
	set, err := value.ToFieldSet()
	if err != nil {
		t.Fatal(err)
	}
	if !set.Has(pathOf("spec.sizes")) {
		t.Errorf("got %v", set)
	}
}

// All kinds at once, from many goroutines: run with -race.
func TestFirstUseIsSafe(t *testing.T) {
	types := NewTypes(nil)
	kinds := bakedKinds(NewTypes(nil))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for _, gvk := range kinds {
				if !types.Knows(gvk) {
					t.Errorf("%v is not known", gvk)
				}
			}
		})
	}
	wg.Wait()
	for _, gvk := range []schema.GroupVersionKind{{}, {Version: "v1", Kind: "Po"}, {Group: "zzz", Version: "v1", Kind: "Z"}} {
		if types.Knows(gvk) {
			t.Errorf("%v is known", gvk)
		}
	}
	if !slices.Contains(kinds, podKind) || len(kinds) < 100 {
		t.Errorf("%d kinds", len(kinds))
	}
}
