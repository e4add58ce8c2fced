package patch

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// The short way of counting a new object's fields must be the library's, in all
// kinds and for all that they can hold; it must also be the way that is taken.
func TestCreateOwnsWhatTheLibrarySays(t *testing.T) {
	n := seed(t)
	types := NewTypes(nil)
	short, long := 0, 0
	for _, gvk := range bakedKinds(types) {
		both := []*Fields{testFields(types, gvk, "status"), testFields(types, gvk, "spec", "metadata.labels")}
		libraries := []*Fields{plain(both[0]), plain(both[1])}
		for round := range 24 {
			f := &filler{
				Rand: rand.New(rand.NewPCG(n, uint64(round))),
				full: []float64{0, .3, .6, .9}[round%4],
				odd:  round%8 > 4,
			}
			obj := randomObject(t, f, gvk)
			for i := range both {
				if checkCreate(t, both[i], libraries[i], obj) {
					short++
				} else {
					long++
				}
			}
		}
	}
	t.Logf("%d objects the short way, %d the library's", short, long)
	if short < 30*long {
		t.Error("the short way is taken too rarely")
	}
}

// checkCreate reports whether the short way was taken.
func checkCreate(t *testing.T, fields, library *Fields, obj runtime.Object) bool {
	t.Helper()
	fields.init()
	ours, theirs := obj.DeepCopyObject(), obj.DeepCopyObject()
	short := fields.create(ours, "m")
	if !short {
		ours = obj.DeepCopyObject()
		fields.Update(nil, ours, "m")
	}
	_, err := viaLibrary(library, nil, theirs, "m")
	if _, sound := fields.checked().check(obj); (short || sound) && err != nil {
		t.Fatalf("%v: the library refuses what we take: %v", fields.endpoint.Kind, err)
	} else if short && !sound {
		t.Fatalf("%v: the fields of an object that is not sound are counted", fields.endpoint.Kind)
	}
	if diff := cmp.Diff(owned(theirs), owned(ours)); diff != "" {
		t.Fatalf("%v reset %v: -library +ours\n%s", fields.endpoint.Kind, fields.endpoint.Reset, diff)
	}
	return short
}

func TestUpdateOwnsWhatTheLibrarySays(t *testing.T) {
	n := seed(t)
	types := NewTypes(nil)
	for _, gvk := range bakedKinds(types) {
		fields := testFields(types, gvk, "status")
		library := plain(fields)
		for round := range 4 {
			f := &filler{Rand: rand.New(rand.NewPCG(n, uint64(round))), full: .6, odd: round == 3}
			live := randomObject(t, f, gvk)
			fields.Update(nil, live, "creator")
			for step := range 3 {
				manager := fmt.Sprint("m", step)
				ours := randomObject(t, f, gvk)
				theirs := ours.DeepCopyObject()
				fields.Update(live, ours, manager)
				viaLibrary(library, live, theirs, manager)
				if diff := cmp.Diff(owned(theirs), owned(ours)); diff != "" {
					t.Fatalf("%v: -library +ours\n%s", gvk, diff)
				}
				live = ours
			}
		}
	}
}

// So must the short way for a manager that owns all there is.
func TestLonelyUpdateOwnsWhatTheLibrarySays(t *testing.T) {
	n := seed(t)
	types := NewTypes(nil)
	short := 0
	for _, gvk := range bakedKinds(types) {
		fields := testFields(types, gvk, "status")
		library := plain(fields)
		for round := range 6 {
			f := &filler{Rand: rand.New(rand.NewPCG(n, uint64(round))), full: .6}
			live := randomObject(t, f, gvk)
			fields.Update(nil, live, "m")
			ours := live.DeepCopyObject()
			f.tweak(reflect.ValueOf(ours).Elem(), float64(round)/20)
			if round == 5 { // as clients do that send no managed fields
				accessor, _ := meta.Accessor(ours)
				accessor.SetManagedFields(nil)
			}
			theirs := ours.DeepCopyObject()
			if fields.keep(live, ours.DeepCopyObject(), "m") {
				short++
			}
			fields.Update(live, ours, "m")
			viaLibrary(library, live, theirs, "m")
			if diff := cmp.Diff(withoutTimes(theirs), withoutTimes(ours)); diff != "" {
				t.Fatalf("%v: -library +ours\n%s", gvk, diff)
			}
		}
	}
	if short == 0 {
		t.Error("no update went the short way")
	}
	t.Logf("%d updates the short way", short)
}

// withoutTimes is owned for objects that may not have changed: then the library
// keeps the time, and whoever stores the object finds that out anyway.
func withoutTimes(obj runtime.Object) []string {
	entries := entriesOf(obj)
	for i := range entries {
		entries[i].Time = &metav1.Time{}
	}
	return owned(obj)
}

// tweak changes some of the values of an object, and removes some, but leaves its
// managed fields alone.
func (f *filler) tweak(v reflect.Value, some float64) {
	if _, ok := v.Addr().Interface().(json.Marshaler); ok {
		return // its parts are not what is seen of it
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && v.Type().Field(i).Name != "ManagedFields" && v.Type().Field(i).Name != "TypeMeta" {
				f.tweak(v.Field(i), some)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			f.tweak(v.Index(i), some)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			switch {
			case v.Type().Elem().Kind() == reflect.String && f.Float64() < some:
				v.SetMapIndex(key, reflect.ValueOf(f.text()).Convert(v.Type().Elem()))
			case f.Float64() < some/10:
				v.SetMapIndex(key, reflect.Value{})
			}
		}
	case reflect.Pointer:
		if !v.IsNil() && f.Float64() < some/10 {
			v.SetZero()
		} else if !v.IsNil() {
			f.tweak(v.Elem(), some)
		}
	case reflect.String:
		if v.String() != "" && f.Float64() < some {
			v.SetString(f.text())
		}
	case reflect.Int32, reflect.Int64:
		if v.Int() != 0 && f.Float64() < some {
			v.SetInt(v.Int() + 1)
		}
	}
}

// setLater are fields that the real server fills in after it has counted who
// owns what: in the kind's strategy, or by admission.
var setLater = map[string][]string{
	"Namespace":             {"spec.finalizers"},
	"Service":               {"spec.clusterIP", "spec.clusterIPs", "spec.ipFamilies", "spec.ipFamilyPolicy"},
	"PersistentVolumeClaim": {"metadata.finalizers"},
	"Pod":                   {"spec.priority", "spec.preemptionPolicy", "spec.tolerations"},
	"Job":                   {"metadata.labels", "spec.selector", "spec.template.metadata.labels"},
	"TokenRequest":          {"spec.audiences"},
}

func TestCreateOwnsWhatWasRecorded(t *testing.T) {
	types := NewTypes(nil)
	kinds := map[string]bool{}
	for _, step := range recordedObjects(t) {
		obj := decodeTyped(t, step.Body)
		gvk := obj.GetObjectKind().GroupVersionKind()
		kinds[gvk.Kind] = true
		accessor, _ := meta.Accessor(obj)
		recorded := accessor.GetManagedFields()
		accessor.SetManagedFields(nil)
		fields := NewFields(types, scheme.Scheme, Endpoint{
			Kind: gvk, Subresource: recorded[0].Subresource, Reset: append(setLater[gvk.Kind], "status"),
		})
		if _, err := fields.Update(nil, obj, "wire"); err != nil {
			t.Errorf("%s %d: %v", step.Scenario, step.Step, err)
		}
		if diff := cmp.Diff(paths(t, recorded), paths(t, accessor.GetManagedFields())); diff != "" {
			t.Errorf("%s %d, %s: -recorded +ours\n%s", step.Scenario, step.Step, gvk.Kind, diff)
		}
	}
	if len(kinds) < 20 {
		t.Errorf("only %d kinds", len(kinds))
	}
}
