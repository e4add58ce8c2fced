package discovery

import (
	"bufio"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/even-keel/evenkeel/server/kinds"
)

// recordedStep is a step of the recording, see test/wire.
type recordedStep struct {
	Scenario string
	Step     int
	Request  struct {
		Path    string
		Headers map[string]string
		Select  []string
	}
	Response struct {
		Status      int
		ContentType string
		Body        map[string]any
	}
}

func recordedSteps(t *testing.T, scenario string) []recordedStep {
	t.Helper()
	f, err := os.Open("../../test/wire/testdata/transcripts.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var steps []recordedStep
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		if !strings.Contains(lines.Text(), `"`+scenario+`"`) {
			continue
		}
		var s recordedStep
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
		if s.Scenario == scenario {
			steps = append(steps, s)
		}
	}
	return steps
}

func TestRecordedDiscovery(t *testing.T) {
	d := New(FromKinds(kinds.All()), "127.0.0.1:6443")
	steps := recordedSteps(t, "disco")
	if len(steps) < 7 {
		t.Fatalf("%d steps", len(steps))
	}
	for _, s := range steps {
		t.Run(strconv.Itoa(s.Step), func(t *testing.T) {
			form := JSON
			if strings.Contains(s.Request.Headers["Accept"], Aggregated) {
				form = AggregatedJSON
			}
			body, contentType, _, ok := d.Lookup(s.Request.Path, form)
			if ok != (s.Response.Status == 200) {
				t.Fatalf("%s: found is %v, recorded %d", s.Request.Path, ok, s.Response.Status)
			}
			if !ok {
				return
			}
			if contentType != s.Response.ContentType {
				t.Errorf("content type %q, recorded %q", contentType, s.Response.ContentType)
			}
			got := selected(t, body, s.Request.Select)
			if diff := cmp.Diff(s.Response.Body, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// selected picks paths such as a[k=v].0.b out of a document.
func selected(t *testing.T, body []byte, paths []string) map[string]any {
	t.Helper()
	var whole map[string]any
	if err := json.Unmarshal(body, &whole); err != nil {
		t.Fatal(err)
	}
	hideHashes(whole)
	if paths == nil {
		return whole
	}
	picked := map[string]any{}
	for _, p := range paths {
		picked[p] = pick(whole, p)
	}
	return picked
}

func pick(v any, path string) any {
	for path != "" {
		var step string
		if strings.HasPrefix(path, "[") {
			step, path, _ = strings.Cut(path[1:], "]")
			key, want, _ := strings.Cut(step, "=")
			v = first(v, key, want)
		} else {
			end := strings.IndexAny(path, ".[")
			if end < 0 {
				end = len(path)
			}
			step, path = path[:end], path[end:]
			v = child(v, step)
		}
		path = strings.TrimPrefix(path, ".")
	}
	return v
}

func child(v any, step string) any {
	switch v := v.(type) {
	case map[string]any:
		return v[step]
	case []any:
		if i, err := strconv.Atoi(step); err == nil && i < len(v) {
			return v[i]
		}
	}
	return nil
}

func first(v any, key, want string) any {
	list, _ := v.([]any)
	for _, e := range list {
		if pick(e, key) == want {
			return e
		}
	}
	return nil
}

func hideHashes(v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if k == "storageVersionHash" {
				v[k] = "<hash>"
			}
			hideHashes(e)
		}
	case []any:
		for _, e := range v {
			hideHashes(e)
		}
	}
}
