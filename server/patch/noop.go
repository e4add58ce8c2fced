package patch

import (
	"maps"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
)

// KeepTimes undoes in obj the new times of managed fields if they are all that
// distinguishes it from live, so that a write that changes nothing stays one.
// Both objects must have managed fields. It reports whether it did so.
func KeepTimes(obj, live runtime.Object) bool {
	now, err := meta.Accessor(obj)
	if err != nil {
		return false
	}
	was, err := meta.Accessor(live)
	if err != nil {
		return false
	}
	entries, old := now.GetManagedFields(), was.GetManagedFields()
	if len(entries) == 0 || len(entries) != len(old) || !SameButForTimes(obj, live) {
		return false
	}
	for i := range entries {
		entries[i].Time = old[i].Time
	}
	now.SetManagedFields(entries)
	return true
}

// SameButForTimes reports whether two objects differ at most in the times of
// their managed fields. In Go structs, empty and missing lists and maps are the
// same, as is a quantity written in two ways.
func SameButForTimes(a, b runtime.Object) bool {
	first, err := meta.Accessor(a)
	if err != nil {
		return false
	}
	second, err := meta.Accessor(b)
	if err != nil {
		return false
	}
	// Managed fields first: a write that changes something mostly changes them.
	if !sameEntries(first.GetManagedFields(), second.GetManagedFields()) {
		return false
	}
	// Then what else writes change most, and what is compared fastest.
	if !maps.Equal(first.GetAnnotations(), second.GetAnnotations()) || !maps.Equal(first.GetLabels(), second.GetLabels()) {
		return false
	}
	u, ok := a.(*unstructured.Unstructured)
	if !ok {
		return timeless().DeepEqual(a, b)
	}
	v, ok := b.(*unstructured.Unstructured)
	return ok && sameBut(u.Object, v.Object, "metadata", "managedFields")
}

func sameEntries(a, b []metav1.ManagedFieldsEntry) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !sameEntry(a[i], b[i]) {
			return false
		}
	}
	return true
}

func sameEntry(a, b metav1.ManagedFieldsEntry) bool {
	return a.Manager == b.Manager && a.Operation == b.Operation && a.APIVersion == b.APIVersion &&
		a.FieldsType == b.FieldsType && a.Subresource == b.Subresource && reflect.DeepEqual(a.FieldsV1, b.FieldsV1)
}

// timeless is the equality of Go structs but for the times of managed fields.
var timeless = sync.OnceValue(func() conversion.Equalities {
	e := equality.Semantic.Copy()
	if err := e.AddFunc(sameEntry); err != nil {
		panic("patch: " + err.Error())
	}
	return e
})

// sameBut compares two unstructured objects but for the value at a path.
func sameBut(a, b map[string]any, path ...string) bool {
	if len(a) != len(b) {
		return false
	}
	for key, v := range a {
		w, ok := b[key]
		if !ok {
			return false
		}
		if key != path[0] {
			if !equality.Semantic.DeepEqualWithNilDifferentFromEmpty(v, w) {
				return false
			}
			continue
		}
		if len(path) == 1 {
			continue
		}
		m, isMap := v.(map[string]any)
		n, alsoMap := w.(map[string]any)
		if !isMap || !alsoMap || !sameBut(m, n, path[1:]...) {
			return false
		}
	}
	return true
}
