package patch

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/managedfields"
)

// FuzzJSON: no panic, only our errors, and the library's results.
func FuzzJSON(f *testing.F) {
	for _, test := range jsonPatches {
		f.Add([]byte(aDocument), []byte(test.patch))
	}
	f.Fuzz(func(t *testing.T, doc, patch []byte) {
		if !json.Valid(doc) || !startsObject(doc) {
			return
		}
		got, err := JSON(doc, patch)
		if err != nil {
			checkRefusal(t, err)
		}
		// What JSON writes in two ways, the library takes for two things.
		both := append(bytes.Clone(doc), patch...)
		if !utf8.Valid(both) || bytes.ContainsAny(both, `\`) || errors.Is(err, ErrInvalid) || errors.Is(err, ErrTooLarge) {
			return
		}
		want, wantErr, panicked := libraryJSON(doc, patch)
		if panicked {
			return
		}
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%s on %s: got %s, %v; the library %s, %v", patch, doc, got, err, want, wantErr)
		}
		if err == nil && !cmp.Equal(decoded(t, want), decoded(t, got)) {
			t.Fatalf("%s on %s: got %s; the library %s", patch, doc, got, want)
		}
	})
}

// FuzzMerge: no panic, only our errors, and the library's results.
func FuzzMerge(f *testing.F) {
	for _, test := range mergePatches {
		f.Add([]byte(aDocument), []byte(test.patch))
	}
	f.Fuzz(func(t *testing.T, doc, patch []byte) {
		if !json.Valid(doc) || !startsObject(doc) {
			return
		}
		got, err := Merge(doc, patch)
		if err != nil {
			checkRefusal(t, err)
			return
		}
		want, err := jsonpatch.MergePatch(doc, patch)
		if err != nil {
			t.Fatalf("%s on %s: got %s; the library %v", patch, doc, got, err)
		}
		if !cmp.Equal(decoded(t, want), decoded(t, got)) {
			t.Fatalf("%s on %s: got %s; the library %s", patch, doc, got, want)
		}
	})
}

// FuzzStrategic: no panic, and what comes out is JSON.
func FuzzStrategic(f *testing.F) {
	doc, err := json.Marshal(aPod())
	if err != nil {
		f.Fatal(err)
	}
	for _, patch := range []string{
		`{"spec":{"containers":[{"name":"c","env":[{"name":"A","$patch":"delete"}]}]}}`,
		`{"spec":{"$setElementOrder/containers":[{"name":"n"},{"name":"c"}],"containers":[{"name":"n","image":"x"}]}}`,
		`{"spec":{"volumes":[{"name":"v","$retainKeys":["name","emptyDir"],"emptyDir":{}}]}}`,
		`{"metadata":{"finalizers":["a"],"$deleteFromPrimitiveList/finalizers":["b"]}}`,
		`{"spec":{"$patch":"replace","containers":[]}}`,
		`{"spec":{"containers":[{"$patch":"replace"},{"name":"x"}]}}`,
		`{"spec":{"containers":[{"ports":[{"containerPort":1}]}]}}`,
		`{"spec":[],"metadata":1,"kind":{}}`, `null`, `[]`, `{"spec":{"containers":[[]]}}`, `{"spec":null}`,
	} {
		f.Add([]byte(patch))
	}
	f.Fuzz(func(t *testing.T, patch []byte) {
		got, err := Strategic(doc, patch, &corev1.Pod{})
		if err == nil && !json.Valid(got) {
			t.Fatalf("%s: got %s", patch, got)
		}
	})
}

// FuzzApply: no panic, and what comes out has managed fields that can be read.
func FuzzApply(f *testing.F) {
	for _, doc := range []string{
		"apiVersion: v1\nkind: Pod\nmetadata:\n  name: web-0\nspec:\n  containers:\n  - name: c\n    image: other\n",
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0"},"spec":{"containers":[{"name":"d"},{"name":"d"}]}}`,
		`{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{}],"tolerations":null,"volumes":{}}}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"managedFields":[{}],"finalizers":[null,1,[]]}}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"creationTimestamp":"x","labels":{"a":1}},"status":{"phase":{}}}`,
		"apiVersion: v1\nkind: Pod\nspec: &a\n  nodeSelector: *a\n", "a: [", "- 1", "", "null", "{", "\x00", "!!binary x",
		`{"apiVersion":"v1","kind":"Pod","spec":{"terminationGracePeriodSeconds":1e400,"containers":[{"name":"c","ports":[{"containerPort":1.5}]}]}}`,
	} {
		f.Add([]byte(doc), false)
	}
	fields := testFields(NewTypes(nil), podKind, "status")
	live := aPod()
	live.UID = "u"
	if _, err := fields.Update(nil, live, "creator"); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, doc []byte, force bool) {
		for _, on := range []*corev1.Pod{live, nil} {
			got, err := applyTo(fields, on, doc, force)
			if err != nil {
				continue
			}
			if err := managedfields.ValidateManagedFields(entriesOf(got)); err != nil {
				t.Fatalf("%s: %v", doc, err)
			}
		}
		if before := aPod(); !cmp.Equal(before.Spec, live.Spec) {
			t.Fatalf("%s changed the live object", doc)
		}
	})
}

func startsObject(doc []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(doc, " \t\r\n"), []byte("{"))
}

func checkRefusal(t *testing.T, err error) {
	t.Helper()
	var refused *Error
	if !errors.As(err, &refused) || refused.Status().Code < 400 || refused.Status().Code >= 500 {
		t.Fatalf("%v is no refusal", err)
	}
}
