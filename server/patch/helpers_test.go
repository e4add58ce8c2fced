package patch

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

var (
	podKind       = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	configMapKind = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}

	aTime = time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
)

// testFields is an endpoint where it is always aTime.
func testFields(types *Types, gvk schema.GroupVersionKind, reset ...string) *Fields {
	return NewFields(types, scheme.Scheme, Endpoint{Kind: gvk, Reset: reset, Now: func() time.Time { return aTime }})
}

// clientGoTypes are the types that ours are made of.
var clientGoTypes = sync.OnceValue(func() managedfields.TypeConverter {
	return applyconfigurations.NewTypeConverter(scheme.Scheme)
})

// plain returns the same endpoint with nothing but the library: client-go's
// types, every object validated.
func plain(f *Fields) *Fields {
	p := NewFields(f.types, f.scheme, f.endpoint)
	p.once.Do(func() {
		reset := fieldpath.NewSet()
		for _, path := range f.endpoint.Reset {
			reset.Insert(pathOf(path))
		}
		v, version := versions{p}, f.endpoint.Kind.GroupVersion()
		filter := map[fieldpath.APIVersion]fieldpath.Filter{
			fieldpath.APIVersion(version.String()): fieldpath.NewExcludeSetFilter(reset),
		}
		var err error
		p.library, err = managedfields.NewDefaultFieldManager(
			clientGoTypes(), v, v, v, f.endpoint.Kind, version, f.endpoint.Subresource, filter)
		if err != nil {
			panic(err)
		}
	})
	return p
}

// viaLibrary is Update with the library alone.
func viaLibrary(f *Fields, live, obj runtime.Object, manager string) (runtime.Object, error) {
	var err error
	if live == nil {
		if live, err = f.empty(); err != nil {
			return nil, err
		}
	}
	known := times(live, obj)
	if _, err = f.library.Update(live, obj, manager); err != nil {
		keepManagedFields(live, obj)
		return obj, err
	}
	f.stamp(obj, known)
	return obj, nil
}

// bakedKinds returns the kinds of client-go's scheme that the catalog has.
func bakedKinds(types *Types) []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for gvk := range scheme.Scheme.AllKnownTypes() {
		if types.Knows(gvk) {
			kinds = append(kinds, gvk)
		}
	}
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return kinds
}

func seed(t testing.TB) uint64 {
	n := rand.Uint64()
	if s := os.Getenv("EVENKEEL_SEED"); s != "" {
		n, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("EVENKEEL_SEED=%d", n)
	return n
}

func randomObject(t testing.TB, f *filler, gvk schema.GroupVersionKind) runtime.Object {
	t.Helper()
	obj, err := scheme.Scheme.New(gvk)
	if err != nil {
		t.Fatal(err)
	}
	f.fill(reflect.ValueOf(obj).Elem(), 0)
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	return obj
}

// owned renders managed fields, byte for byte.
func owned(obj runtime.Object) []string {
	var all []string
	for _, e := range entriesOf(obj) {
		all = append(all, fmt.Sprintf("%s %s %q %s %s %s", e.Manager, e.Operation, e.Subresource, e.APIVersion,
			e.Time.UTC().Format(time.RFC3339), e.FieldsV1.GetRawString()))
	}
	return all
}

func entriesOf(obj runtime.Object) []metav1.ManagedFieldsEntry {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		panic(err)
	}
	return accessor.GetManagedFields()
}

// paths lists managed fields, a line for each field.
func paths(t testing.TB, entries []metav1.ManagedFieldsEntry) []string {
	t.Helper()
	var all []string
	for _, e := range entries {
		var set fieldpath.Set
		if err := set.FromJSON(e.FieldsV1.GetRawReader()); err != nil {
			t.Fatal(err)
		}
		set.Iterate(func(p fieldpath.Path) {
			all = append(all, strings.Join([]string{e.Manager, string(e.Operation), e.Subresource, e.APIVersion, p.String()}, " "))
		})
	}
	return all
}

// readLines decodes a file of recorded steps, a JSON value a line, with its
// placeholders replaced by what can be decoded.
func readLines[T any](t testing.TB, file string) []T {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []T
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var one T
		if err := json.Unmarshal([]byte(placeholders.Replace(lines.Text())), &one); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, one)
	}
	return all
}

var placeholders = strings.NewReplacer(
	`<time>`, `2024-01-01T00:00:00Z`, `<microtime>`, `2024-01-01T00:00:00.000000Z`,
	`"<nodeport>"`, `0`, `<ip>`, `10.0.0.10`, `<rv>`, `1`, `<uid>`, `u`, `<id>`, `id`, `<gen>`, `gen`, `<token>`, `t`,
)

// recordedObject is an object as the real server returned it when created.
type recordedObject struct {
	Scenario string
	Step     int
	Body     json.RawMessage
}

func recordedObjects(t testing.TB) []recordedObject {
	t.Helper()
	return readLines[recordedObject](t, "testdata/created.jsonl")
}

func decodeTyped(t testing.TB, doc []byte) runtime.Object {
	t.Helper()
	var tm metav1.TypeMeta
	if err := json.Unmarshal(doc, &tm); err != nil {
		t.Fatal(err)
	}
	obj, err := scheme.Scheme.New(schema.FromAPIVersionAndKind(tm.APIVersion, tm.Kind))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(doc, obj); err != nil {
		t.Fatal(err)
	}
	return obj
}

func asMap(t testing.TB, v any) map[string]any {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]any{}
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	return m
}
