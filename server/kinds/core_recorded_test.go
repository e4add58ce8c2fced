package kinds

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// coreStep is a step of the recording, see test/wire.
type coreStep struct {
	Scenario string
	Step     int
	Request  struct {
		Method, Path string
		Body         json.RawMessage
		Headers      map[string]any
	}
	Response struct {
		Status int
		Body   json.RawMessage
	}
}

// coreSteps are the recorded steps, with the namespace of each filled in.
func coreSteps(t *testing.T) []coreStep {
	t.Helper()
	f, err := os.Open("../../test/wire/testdata/transcripts.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var steps []coreStep
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var s coreStep
		if err := json.Unmarshal([]byte(strings.ReplaceAll(lines.Text(), "${id}", "<id>")), &s); err != nil {
			continue // a header with several values, an action
		}
		s.Request.Body = json.RawMessage(strings.ReplaceAll(string(s.Request.Body), "${ns}", s.Scenario+"-<id>"))
		steps = append(steps, s)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return steps
}

// coreCreateOf returns the kind that a step creates, if it is one of this share.
func coreCreateOf(s coreStep, all []*Kind) *Kind {
	path, _, _ := strings.Cut(s.Request.Path, "?")
	for _, k := range all {
		base := "/api/v1/"
		if k.GVK.Group != "" {
			base = "/apis/" + k.GVK.Group + "/"
		}
		if s.Request.Method == "POST" && strings.HasPrefix(path, base) && strings.HasSuffix(path, "/"+k.Resource) {
			return k
		}
	}
	return nil
}

func TestCoreRecordedCreates(t *testing.T) {
	n, all := 0, core()
	for _, s := range coreSteps(t) {
		k := coreCreateOf(s, all)
		if k == nil {
			continue
		}
		switch s.Response.Status {
		case 201:
			t.Run(s.Scenario+"/"+k.Resource, func(t *testing.T) { coreAnswers(t, k, s) })
		case 422:
			if strings.Contains(s.Request.Path, "?") {
				continue // a fault of the query
			}
			t.Run(s.Scenario+"/"+k.Resource, func(t *testing.T) { coreRefuses(t, k, s) })
		default:
			continue
		}
		n++
	}
	if n < 50 {
		t.Errorf("only %d recorded creates", n)
	}
}

// coreAnswers compares all but what the server puts into any object's metadata.
func coreAnswers(t *testing.T, k *Kind, s coreStep) {
	obj := coreCreated(t, k, string(s.Request.Body))
	if m, err := meta.Accessor(obj); err == nil && k.Namespaced {
		m.SetNamespace(s.Scenario + "-<id>")
	}
	if errs := coreCreateErrors(k, obj); len(errs) > 0 {
		t.Error(errs)
	}
	got, want := coreJSON(t, obj), map[string]any{}
	if err := json.Unmarshal(s.Response.Body, &want); err != nil {
		t.Fatal(err)
	}
	for _, m := range []map[string]any{got, want} {
		kept := map[string]any{}
		for _, key := range []string{"labels", "annotations", "finalizers"} {
			if v, has := m["metadata"].(map[string]any)[key]; has {
				kept[key] = v
			}
		}
		m["metadata"] = kept
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// coreRefuses compares causes; those of names come from ValidName, those of the
// rest of the metadata from the server.
func coreRefuses(t *testing.T, k *Kind, s coreStep) {
	var status struct {
		Details struct {
			Causes []struct{ Field, Message, Reason string }
		}
	}
	if err := json.Unmarshal(s.Response.Body, &status); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, c := range status.Details.Causes {
		if !strings.HasPrefix(c.Field, "metadata.") || c.Field == "metadata.name" && !strings.Contains(c.Message, "<gen>") && !strings.HasPrefix(c.Message, "Required") {
			want = append(want, c.Reason+" "+c.Field+": "+c.Message)
		}
	}
	slices.Sort(want)
	obj := coreCreated(t, k, string(s.Request.Body))
	errs := coreCreateErrors(k, obj)
	m, _ := meta.Accessor(obj)
	if m.GetName() != "" {
		for _, fault := range coreNameFaults(k, m.GetName()) {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), m.GetName(), fault))
		}
	}
	if d := cmp.Diff(want, coreCauses(errs)); d != "" {
		t.Error(d)
	}
}

func TestCoreRecordedTable(t *testing.T) {
	k := coreKindOf(t, "pods")
	pod := coreCreated(t, k, `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"nginx:1.25"}]}}`)
	n := 0
	for _, s := range coreSteps(t) {
		var table metav1.Table
		if s.Scenario != "neg-table" || !strings.Contains(s.Request.Path, "/pods") ||
			json.Unmarshal(s.Response.Body, &table) != nil || table.Kind != "Table" {
			continue
		}
		n++
		columns := slices.Clone(k.Columns)
		for i := range columns {
			columns[i].Description, table.ColumnDefinitions[i].Description = "", ""
		}
		if d := cmp.Diff(table.ColumnDefinitions, columns); d != "" {
			t.Error(d)
		}
		row := k.Cells(pod, coreNow)
		row[4] = "<age>"
		if d := cmp.Diff(table.Rows[0].Cells, row); d != "" {
			t.Error(d)
		}
	}
	if n < 2 {
		t.Errorf("only %d recorded tables", n)
	}
}

func TestCoreRecordedDiscovery(t *testing.T) {
	type entry struct {
		Resource, SingularResource string
		ShortNames, Categories     []string
		Verbs                      []string
		Subresources               []struct {
			Subresource  string
			ResponseKind struct{ Group, Version, Kind string }
			Verbs        []string
		}
	}
	n := 0
	for _, s := range coreSteps(t) {
		var body map[string]json.RawMessage
		if s.Scenario != "disco" || s.Request.Path != "/api" || json.Unmarshal(s.Response.Body, &body) != nil {
			continue
		}
		for key, raw := range body {
			if !strings.Contains(key, "resource=") {
				continue
			}
			n++
			var want entry
			if err := json.Unmarshal(raw, &want); err != nil {
				t.Fatal(err)
			}
			k := coreKindOf(t, want.Resource)
			if k.Singular != want.SingularResource || !slices.Equal(k.ShortNames, want.ShortNames) || !slices.Equal(k.Categories, want.Categories) {
				t.Errorf("%s: names %v, want %+v", want.Resource, k, want)
			}
			if slices.Contains(want.Verbs, "deletecollection") == k.NoDeleteCollection {
				t.Errorf("%s: deletecollection", want.Resource)
			}
			got := map[string][]string{}
			if k.HasStatus {
				got["status//"+k.GVK.Kind] = []string{"get", "patch", "update"}
			}
			for _, r := range k.Subresources {
				got[r.Name+"/"+r.GVK.Group+"/"+r.GVK.Kind] = r.Verbs
			}
			expected := map[string][]string{}
			for _, r := range want.Subresources {
				expected[r.Subresource+"/"+r.ResponseKind.Group+"/"+r.ResponseKind.Kind] = r.Verbs
			}
			if d := cmp.Diff(expected, got); d != "" {
				t.Errorf("%s: %s", want.Resource, d)
			}
		}
	}
	if n != 3 {
		t.Errorf("%d recorded resources", n)
	}
}
