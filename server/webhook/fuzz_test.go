package webhook

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Whatever a webhook answers, it does not stop the server or change who an
// object is.
func FuzzAnswer(f *testing.F) {
	const start = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":{"uid":"u","result":{"status":"Success"},"convertedObjects":[`
	for _, obj := range []string{
		`{"apiVersion":"g/v2","kind":"K","metadata":{"name":"n","uid":"i","labels":{"a":"b"}}}`,
		`{"apiVersion":"g/v2","kind":"K","metadata":{"name":"n","uid":"i","labels":{"a":1},"annotations":[]}}`,
		`{"apiVersion":1,"kind":{},"metadata":[]}`,
		`null`, `[]`, `1`, ``,
	} {
		f.Add([]byte(start + obj + "]}}"))
	}
	original := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "g/v1", "kind": "K", "metadata": map[string]any{"name": "n", "uid": "i"},
	}}
	to := schema.GroupVersion{Group: "g", Version: "v2"}
	c := &Converter{hook: new(Hook), review: schema.GroupVersion{Group: "apiextensions.k8s.io", Version: "v1"}}
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := c.decodeReview(data, "u")
		if err != nil {
			return
		}
		for _, raw := range all {
			got, err := c.accept(raw, original, to, words{})
			if err == nil && (got.GetName() != "n" || got.GetUID() != "i" || got.GetKind() != "K" || got.GetAPIVersion() != "g/v2") {
				t.Errorf("%s became %v", data, got)
			}
		}
	})
}
