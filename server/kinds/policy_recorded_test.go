package kinds

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// policyRecorded is a step of the recording, see test/wire.
type policyRecorded struct {
	Scenario string
	Step     int
	Request  struct {
		Method, Path string
		Body         json.RawMessage
	}
	Response struct {
		Status int
		Body   map[string]any
	}
}

// policyRecordings returns the creates of kinds of this share.
func policyRecordings(t *testing.T) map[*Kind][]policyRecorded {
	t.Helper()
	f, err := os.Open("../../test/wire/testdata/transcripts.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	steps := map[*Kind][]policyRecorded{}
	all := policy()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var s policyRecorded
		if json.Unmarshal([]byte(strings.NewReplacer("${id}", "id", "<id>", "id").Replace(lines.Text())), &s) != nil || s.Request.Method != "POST" {
			continue
		}
		for _, k := range all {
			if strings.HasPrefix(s.Request.Path, "/apis/"+k.GVK.Group+"/") && strings.HasSuffix(s.Request.Path, "/"+k.Resource) {
				steps[k] = append(steps[k], s)
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return steps
}

func TestPolicyRecordedCreates(t *testing.T) {
	n := 0
	for k, steps := range policyRecordings(t) {
		for _, s := range steps {
			switch s.Response.Status {
			case 201:
				t.Run(s.Scenario+"/"+k.Resource, func(t *testing.T) { policyCreated(t, k, s) })
			case 422:
				t.Run(s.Scenario+"/"+k.Resource, func(t *testing.T) { policyRefused(t, k, s) })
			default:
				continue
			}
			n++
		}
	}
	if n < 11 {
		t.Errorf("only %d recorded creates", n)
	}
}

func policyCreated(t *testing.T, k *Kind, s policyRecorded) {
	obj := policyObject(t, k, strings.ReplaceAll(string(s.Request.Body), "${ns}", s.Scenario+"-id"))
	if k.PrepareCreate != nil {
		k.PrepareCreate(obj)
	}
	if errs := policyCreateErrors(k, obj); len(errs) > 0 {
		t.Error(errs)
	}
	got, want := policyJSON(t, obj), s.Response.Body
	for _, m := range []map[string]any{got, want} {
		delete(m, "metadata")
		if k.CreateOnly {
			delete(m, "status") // the server's answer
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func policyRefused(t *testing.T, k *Kind, s policyRecorded) {
	var want []string
	for _, c := range s.Response.Body["details"].(map[string]any)["causes"].([]any) {
		cause := c.(map[string]any)
		want = append(want, cause["field"].(string)+": "+cause["message"].(string))
	}
	slices.Sort(want)
	got := policyCauses(policyCreateErrors(k, policyObject(t, k, string(s.Request.Body))))
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
