package patch

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
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
