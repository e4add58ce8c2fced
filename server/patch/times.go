package patch

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// times returns the times that the managed fields of objects have.
func times(objs ...runtime.Object) []time.Time {
	var known []time.Time
	for _, obj := range objs {
		if u, ok := obj.(*unstructured.Unstructured); ok {
			for _, entry := range rawEntries(u) {
				if t, ok := rawTime(entry); ok {
					known = append(known, t)
				}
			}
			continue
		}
		accessor, err := meta.Accessor(obj)
		if err != nil {
			continue
		}
		for _, entry := range accessor.GetManagedFields() {
			if entry.Time != nil {
				known = append(known, entry.Time.Time)
			}
		}
	}
	return known
}

// stamp sets the times that the library has just made: those not known before.
// The library passes known ones on as they are.
func (f *Fields) stamp(obj runtime.Object, known []time.Time) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		f.stampRaw(u, known)
		return
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return
	}
	entries := accessor.GetManagedFields()
	for i := range entries {
		if t := entries[i].Time; t != nil && !slices.ContainsFunc(known, t.Time.Equal) {
			now := f.now()
			entries[i].Time = &now
		}
	}
	accessor.SetManagedFields(entries)
}

// stampRaw does as stamp. Managed fields are not decoded for it, since that is
// as much work as all else; the library has just made those of u.
func (f *Fields) stampRaw(u *unstructured.Unstructured, known []time.Time) {
	for _, entry := range rawEntries(u) {
		if t, ok := rawTime(entry); ok && !slices.ContainsFunc(known, t.Equal) {
			entry.(map[string]any)["time"] = f.now().Format(time.RFC3339)
		}
	}
}

// rawEntries returns the managed fields of an object as they are.
func rawEntries(u *unstructured.Unstructured) []any {
	metadata, _ := u.Object["metadata"].(map[string]any)
	entries, _ := metadata["managedFields"].([]any)
	return entries
}

func rawTime(entry any) (time.Time, bool) {
	fields, _ := entry.(map[string]any)
	text, _ := fields["time"].(string)
	t, err := time.Parse(time.RFC3339, text)
	return t, err == nil
}

// now has whole seconds, as the time has when it is read back from JSON.
func (f *Fields) now() metav1.Time {
	now := f.endpoint.Now
	if now == nil {
		now = time.Now
	}
	return metav1.Time{Time: now().UTC().Truncate(time.Second)}
}
