package patch

import (
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

var aTime = time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)

func testFields(types *Types, gvk schema.GroupVersionKind, reset ...string) *Fields {
	return NewFields(types, scheme.Scheme, Endpoint{Kind: gvk, Reset: reset, Now: func() time.Time { return aTime }})
}

// bakedKinds returns the kinds of client-go's scheme that the catalog has.
func bakedKinds(types *Types) []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for gvk := range scheme.Scheme.AllKnownTypes() {
		if types.Knows(gvk) {
			kinds = append(kinds, gvk)
		}
	}
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
	obj, err := scheme.Scheme.New(gvk)
	if err != nil {
		t.Fatal(err)
	}
	f.fill(reflect.ValueOf(obj).Elem(), 0)
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	return obj
}

// plain returns the same endpoint with nothing but the library: client-go's
// types, every object validated by it.
func plain(f *Fields) *Fields {
	p := NewFields(f.types, f.scheme, f.endpoint)
	p.once.Do(func() {
		v, version := versions{p}, f.endpoint.Kind.GroupVersion()
		reset := fieldpath.NewSet()
		for _, path := range f.endpoint.Reset {
			reset.Insert(pathOf(path))
		}
		var err error
		p.library, err = managedfields.NewDefaultFieldManager(clientGoTypes(), v, v, v, f.endpoint.Kind, version, f.endpoint.Subresource,
			map[fieldpath.APIVersion]fieldpath.Filter{fieldpath.APIVersion(version.String()): fieldpath.NewExcludeSetFilter(reset)})
		if err != nil {
			panic(err)
		}
	})
	return p
}

var clientGoTypes = sync.OnceValue(func() managedfields.TypeConverter {
	return applyconfigurations.NewTypeConverter(scheme.Scheme)
})

// viaLibrary is Update with the library alone.
func viaLibrary(f *Fields, live, obj runtime.Object, manager string) (runtime.Object, error) {
	var err error
	if live == nil {
		if live, err = f.empty(); err != nil {
			return nil, err
		}
	}
	known := times(live, obj)
	obj, err = f.library.Update(live, obj, manager)
	if err == nil {
		f.stamp(obj, known)
	}
	return obj, err
}

func TestCreateOwnsWhatTheLibrarySays(t *testing.T) {
	n := seed(t)
	types := NewTypes(nil)
	stats := map[string]int{}
	for _, gvk := range bakedKinds(types) {
		both := []*Fields{testFields(types, gvk, "status"), testFields(types, gvk, "spec", "metadata.labels")}
		libraries := []*Fields{plain(both[0]), plain(both[1])}
		for round := range 60 {
			f := &filler{Rand: rand.New(rand.NewPCG(n, uint64(round))), full: []float64{0, .3, .6, .9}[round%4], odd: round%8 > 4}
			obj := randomObject(t, f, gvk)
			for i := range both {
				checkCreate(t, both[i], libraries[i], obj, stats)
			}
		}
	}
	t.Log(stats)
	if stats["fast"] < 10*stats["slow"] {
		t.Errorf("the fast way was gone %d times of %d", stats["fast"], stats["fast"]+stats["slow"])
	}
}

func checkCreate(t *testing.T, fields, library *Fields, obj runtime.Object, stats map[string]int) {
	t.Helper()
	fields.init()
	fast, slow := obj.DeepCopyObject(), obj.DeepCopyObject()
	if !fields.create(fast, "m") {
		stats["slow"]++
		if _, err := viaLibrary(library, nil, slow, "m"); err != nil {
			stats["refused"]++
		}
		return
	}
	stats["fast"]++
	_, err := viaLibrary(library, nil, slow, "m")
	if err != nil {
		t.Fatalf("%v: the library refuses what create takes: %v", fields.endpoint.Kind, err)
	}
	if _, sound := fields.checked().check(obj); !sound {
		t.Fatalf("%v: create takes what is not sound", fields.endpoint.Kind)
	}
	if diff := cmp.Diff(owned(slow), owned(fast)); diff != "" {
		t.Fatalf("%v reset %v: -library +create\n%s", fields.endpoint.Kind, fields.endpoint.Reset, diff)
	}
}

// A sound object is one that the library accepts; few that it accepts are not
// known to be sound.
func TestUpdateOwnsWhatTheLibrarySays(t *testing.T) {
	n := seed(t)
	types := NewTypes(nil)
	for _, gvk := range bakedKinds(types) {
		fields := testFields(types, gvk, "status")
		library := plain(fields)
		for round := range 15 {
			f := &filler{Rand: rand.New(rand.NewPCG(n, uint64(round))), full: .6, odd: round%5 == 4}
			live := randomObject(t, f, gvk)
			fields.Update(nil, live, "creator")
			for step := range 3 {
				obj := randomObject(t, f, gvk)
				ours, theirs := obj.DeepCopyObject(), obj.DeepCopyObject()
				fields.Update(live, ours, fmt.Sprint("m", step))
				if _, err := viaLibrary(library, live, theirs, fmt.Sprint("m", step)); err != nil {
					keepManagedFields(live, theirs)
				}
				if diff := cmp.Diff(owned(theirs), owned(ours)); diff != "" {
					t.Fatalf("%v: -library +ours\n%s", gvk, diff)
				}
				live = ours
			}
		}
	}
}

// owned renders managed fields.
func owned(obj runtime.Object) []string {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return []string{err.Error()}
	}
	var all []string
	for _, e := range accessor.GetManagedFields() {
		all = append(all, fmt.Sprintf("%s %s %q %s %s %s", e.Manager, e.Operation, e.Subresource, e.APIVersion, e.Time.UTC().Format(time.RFC3339), e.FieldsV1.Raw))
	}
	return all
}

var _ = metav1.Now
