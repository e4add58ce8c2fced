package kinds

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestWorkloadRecordedCreates(t *testing.T) {
	n, all := 0, workloads()
	for _, s := range coreSteps(t) {
		k := coreCreateOf(s, all)
		if k == nil {
			continue
		}
		switch s.Response.Status {
		case 201:
			t.Run(s.Scenario+"/"+k.Resource, func(t *testing.T) { workloadAnswers(t, k, s) })
		case 422:
			t.Run(s.Scenario+"/"+k.Resource, func(t *testing.T) { workloadRefuses(t, k, s) })
		default:
			continue
		}
		n++
	}
	if n < 15 {
		t.Errorf("only %d recorded creates", n)
	}
}

// workloadAnswers compares all but what the server puts into any metadata.
func workloadAnswers(t *testing.T, k *Kind, s coreStep) {
	obj, err := workloadCreated(t, k, string(s.Request.Body))
	if err != nil {
		t.Fatal(err)
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
	if d := cmp.Diff(want, hideRandom(got)); d != "" {
		t.Error(d)
	}
}

// hideRandom writes what is handed out the way the recording does.
func hideRandom(v any) any {
	switch v := v.(type) {
	case string:
		return strings.ReplaceAll(v, workloadUID, "<uid>")
	case map[string]any:
		for key, x := range v {
			switch key {
			case "clusterIP":
				v[key] = "<ip>"
			case "clusterIPs":
				v[key] = []any{"<ip>"}
			case "nodePort":
				v[key] = "<nodeport>"
			default:
				v[key] = hideRandom(x)
			}
		}
	case []any:
		for i := range v {
			v[i] = hideRandom(v[i])
		}
	}
	return v
}

func workloadRefuses(t *testing.T, k *Kind, s coreStep) {
	var status metav1.Status
	if err := json.Unmarshal(s.Response.Body, &status); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, c := range status.Details.Causes {
		want = append(want, string(c.Type)+" "+c.Field+": "+c.Message)
	}
	slices.Sort(want)
	obj, err := workloadCreated(t, k, string(s.Request.Body))
	if err != nil {
		t.Fatal(err)
	}
	errs := coreCreateErrors(k, obj)
	m, _ := meta.Accessor(obj)
	for _, fault := range coreNameFaults(k, m.GetName()) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), m.GetName(), fault))
	}
	if d := cmp.Diff(want, coreCauses(errs)); d != "" {
		t.Error(d)
	}
}

func TestWorkloadRecordedTable(t *testing.T) {
	k, n := workloadKindOf(t, "deployments"), 0
	for _, s := range coreSteps(t) {
		var table metav1.Table
		if s.Scenario != "neg-table" || !strings.Contains(s.Request.Path, "/deployments") ||
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
		row := k.Cells(coreObject(t, k, strings.ReplaceAll(string(table.Rows[0].Object.Raw), "<time>", coreAgo(0))), coreNow)
		row[4] = "<age>"
		if d := cmp.Diff(table.Rows[0].Cells, coreJSON(t, map[string]any{"row": row})["row"]); d != "" {
			t.Error(d)
		}
	}
	if n != 1 {
		t.Errorf("%d recorded tables of deployments", n)
	}
}

func TestWorkloadRecordedScale(t *testing.T) {
	k, n := workloadKindOf(t, "deployments"), 0
	var last string
	for _, s := range coreSteps(t) {
		if s.Scenario != "sub-scale" || s.Response.Status >= 300 {
			continue
		}
		if s.Request.Method == "POST" {
			last = string(s.Request.Body)
			continue
		}
		var want struct {
			Kind   string
			Spec   struct{ Replicas int32 }
			Status struct {
				Replicas int32
				Selector string
			}
		}
		if json.Unmarshal(s.Response.Body, &want) != nil || want.Kind != "Scale" {
			continue
		}
		n++
		obj := coreObject(t, k, last)
		k.Scale.Set(obj, want.Spec.Replicas)
		spec, status, selector := k.Scale.Get(obj)
		if spec != want.Spec.Replicas || status != want.Status.Replicas || selector != want.Status.Selector {
			t.Errorf("scale %d %d %q, want %+v", spec, status, selector, want)
		}
	}
	if n < 2 {
		t.Errorf("only %d recorded scales", n)
	}
}
