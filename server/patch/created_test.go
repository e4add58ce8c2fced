package patch

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

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
		if err := json.Unmarshal([]byte(concrete(lines.Text())), &one); err != nil {
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

func concrete(recorded string) string { return placeholders.Replace(recorded) }

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
	for _, step := range readLines[struct {
		Scenario string
		Step     int
		Body     json.RawMessage
	}](t, "testdata/created.jsonl") {
		obj := decodeTyped(t, step.Body)
		gvk := obj.GetObjectKind().GroupVersionKind()
		kinds[gvk.Kind] = true
		accessor, _ := meta.Accessor(obj)
		recorded := accessor.GetManagedFields()
		accessor.SetManagedFields(nil)
		fields := NewFields(types, scheme.Scheme, Endpoint{Kind: gvk, Subresource: recorded[0].Subresource, Reset: append(setLater[gvk.Kind], "status")})
		if _, err := fields.Update(nil, obj, "wire"); err != nil {
			t.Errorf("%s %d: %v", step.Scenario, step.Step, err)
			continue
		}
		if diff := cmp.Diff(paths(t, recorded), paths(t, accessor.GetManagedFields())); diff != "" {
			t.Errorf("%s %d, %s: -recorded +ours\n%s", step.Scenario, step.Step, gvk.Kind, diff)
		}
	}
	if len(kinds) < 20 {
		t.Errorf("only %d kinds", len(kinds))
	}
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

// paths lists managed fields, a line for each field.
func paths(t testing.TB, entries []metav1.ManagedFieldsEntry) []string {
	t.Helper()
	var all []string
	for _, e := range entries {
		var set fieldpath.Set
		if err := set.FromJSON(strings.NewReader(string(e.FieldsV1.Raw))); err != nil {
			t.Fatal(err)
		}
		set.Iterate(func(p fieldpath.Path) {
			all = append(all, strings.Join([]string{e.Manager, string(e.Operation), e.Subresource, e.APIVersion, p.String()}, " "))
		})
	}
	return all
}
