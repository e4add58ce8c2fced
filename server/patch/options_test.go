package patch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestManagerName(t *testing.T) {
	tests := map[string]struct{ manager, agent, want string }{
		"given":           {"m", "kubectl/v1.36", "m"},
		"user agent":      {"", "kubectl/v1.36 (linux)", "kubectl"},
		"no slash":        {"", "curl 8", "curl 8"},
		"unprintable":     {"", "a\x00b\nc/1", "abc"},
		"too long":        {"", strings.Repeat("x", 200), strings.Repeat("x", 128)},
		"cut at a letter": {"", strings.Repeat("x", 127) + "é", strings.Repeat("x", 127)},
		"none":            {"", "", ""},
	}
	for name, test := range tests {
		if got := ManagerName(test.manager, test.agent); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestOptions(t *testing.T) {
	yes := true
	long := strings.Repeat("x", 129)
	tests := map[string]struct {
		errs field.ErrorList
		want string
	}{
		"apply without manager": {ValidatePatch(&metav1.PatchOptions{}, types.ApplyYAMLPatchType), "fieldManager: Required value: is required for apply patch"},
		"apply":                 {ValidatePatch(&metav1.PatchOptions{FieldManager: "m", Force: &yes}, types.ApplyYAMLPatchType), ""},
		"forced merge":          {ValidatePatch(&metav1.PatchOptions{Force: &yes}, types.MergePatchType), "force: Forbidden: may not be specified for non-apply patch"},
		"long manager":          {ValidateCreate(&metav1.CreateOptions{FieldManager: long}), "fieldManager: Too long: may not be more than 128 bytes"},
		"unprintable manager":   {ValidateUpdate(&metav1.UpdateOptions{FieldManager: "a\x07"}), `fieldManager: Invalid value: "a\a": invalid character U+0007 (at position 1)`},
		"dry run":               {ValidateUpdate(&metav1.UpdateOptions{DryRun: []string{"Some"}}), `dryRun: Unsupported value: ["Some"]: supported values: "All"`},
	}
	for name, test := range tests {
		got := ""
		if len(test.errs) > 0 {
			got = test.errs.ToAggregate().Error()
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestStrict(t *testing.T) {
	tests := map[string]struct {
		kind types.PatchType
		doc  string
		want []string
	}{
		"JSON":         {types.JSONPatchType, `[{"op":"add","op":"add","path":"/a","foo":1}]`, []string{`json patch duplicate field "[0].op"`, `json patch unknown field "[0].foo"`}},
		"merge":        {types.MergePatchType, `{"a":{"b":1,"b":2}}`, []string{`duplicate field "a.b"`}},
		"strategic":    {types.StrategicMergePatchType, `{"a":1,"a":2}`, []string{`duplicate field "a"`}},
		"apply":        {types.ApplyYAMLPatchType, "a: 1\na: 2\n", []string{"error converting YAML to JSON: yaml: unmarshal errors:\n  line 2: key \"a\" already set in map"}},
		"nothing":      {types.ApplyYAMLPatchType, "a: 1\n", nil},
		"not a patch":  {types.JSONPatchType, `{}`, []string{"error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"}},
		"not a patch2": {types.StrategicMergePatchType, `[]`, []string{"json: cannot unmarshal array into Go value of type map[string]interface {}"}},
	}
	for name, test := range tests {
		found, err := Strict(test.kind, []byte(test.doc))
		if err != nil {
			found = append(found, err)
		}
		var got []string
		for _, f := range found {
			got = append(got, fmt.Sprint(f))
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
