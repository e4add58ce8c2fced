package wire

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A server that answers as the recorded one did is equal in everything. This
// is what makes a difference a fault of the server and not of the harness.
func TestRecordingEqualsItself(t *testing.T) {
	var scores Scores
	for _, s := range loadScenarios(t) {
		results := playRecorded(t, s, nil)
		for _, r := range results {
			if r.Level != Exact {
				t.Error(r.Report())
			}
		}
		if len(results) != len(s.Steps) {
			t.Errorf("%s: %d results of %d steps", s.Name, len(results), len(s.Steps))
		}
		scores.Add(results)
	}
	t.Logf("\n%s", &scores)
	if total := scores.Total(); total != (Score{268, 268, 268, 268}) {
		t.Errorf("scores are %+v", total)
	}
}

// What was normalised when it was recorded stays as it is.
func TestRecordingIsNormalised(t *testing.T) {
	for _, s := range loadScenarios(t) {
		normal := normaliser{}
		for _, step := range s.Steps {
			if got := normal.body(step.Response.Body); len(step.Request.Select) == 0 {
				if diff := cmp.Diff(step.Response.Body, got); diff != "" {
					t.Errorf("%s (-recorded +normalised):\n%s", step, diff)
				}
			}
		}
	}
}

// spoilt is one way for a server to be wrong, and the level that is left.
type spoilt struct {
	scenario string
	step     int
	change   func(*reply)
	want     Level
}

// setting sets a path of a reply's body.
func setting(path string, value any) func(*reply) {
	return func(r *reply) { r.body = put(r.body, mustSplit(path), value) }
}

func removing(path, key string) func(*reply) {
	return func(r *reply) {
		found, _ := lookup(r.body, path)
		delete(found.(map[string]any), key)
	}
}

func TestEachLevelCanFail(t *testing.T) {
	tests := map[string]spoilt{
		"nothing":                        {"crud-dryrun", 3, func(*reply) {}, Exact},
		"another HTTP status":            {"crud-dryrun", 3, func(r *reply) { r.status = 200 }, None},
		"another reason":                 {"crud-precondition", 2, setting("reason", "AlreadyExists"), None},
		"no reason":                      {"crud-precondition", 2, removing("", "reason"), None},
		"another reason of a watch":      {"watch-compacted", 7, setting("events.0.object.reason", "Gone"), None},
		"a field of the object":          {"crud-dryrun", 3, setting("data.k", "2"), Status},
		"a field too many":               {"crud-dryrun", 3, setting("status.phase", "Active"), Status},
		"a field too few":                {"crud-dryrun", 3, removing("metadata", "uid"), Status},
		"a number that is a string":      {"crud-generation", 1, setting("metadata.generation", "1"), Status},
		"a time that the client sent":    {"def-others", 9, setting("firstTimestamp", "2020-01-02T03:04:06Z"), Status},
		"an object that is a Status":     {"crud-dryrun", 3, func(r *reply) { r.body = map[string]any{"kind": "Status", "apiVersion": "v1"} }, Status},
		"a content type":                 {"crud-dryrun", 3, func(r *reply) { r.header.Set("Content-Type", "application/json; charset=utf-8") }, Status},
		"a missing warning":              {"crud-fieldvalidation", 2, func(r *reply) { r.header.Del("Warning") }, Status},
		"a warning too many":             {"crud-dryrun", 3, func(r *reply) { r.header.Set("Warning", `299 - "x"`) }, Status},
		"the words of a warning":         {"crud-fieldvalidation", 2, func(r *reply) { r.header.Set("Warning", `299 - "x"`) }, Shape},
		"a comparison":                   {"crud-dryrun", 6, setting("metadata.resourceVersion", "999"), Status},
		"the kind in a Status":           {"crud-precondition", 2, setting("details.kind", "configmaps"), Status},
		"the code in a Status":           {"crud-precondition", 2, setting("code", 400), Status},
		"the field of a cause":           {"val-workloads", 1, setting("details.causes.0.field", "spec"), Status},
		"the message of a Status":        {"crud-precondition", 2, setting("message", "no"), Shape},
		"the message of a cause":         {"val-workloads", 1, setting("details.causes.0.message", "no"), Shape},
		"the uid in a Status":            {"crud-precondition", 5, removing("details", "uid"), Shape},
		"a manager":                      {"crud-dryrun", 3, setting("metadata.managedFields.0.manager", "me"), Shape},
		"no managedFields":               {"crud-dryrun", 3, removing("metadata", "managedFields"), Shape},
		"a selected list of managers":    {"sub-scale", 6, setting("metadata.managedFields.0.manager", "me"), Shape},
		"a selected field":               {"sub-scale", 6, setting("spec.replicas", 77), Status},
		"a column's description":         {"neg-table", 3, setting("columnDefinitions.0.description", "prose"), Shape},
		"a column's name":                {"neg-table", 3, setting("columnDefinitions.0.name", "NAME"), Status},
		"the delay to retry after":       {"list-rv", 9, func(r *reply) { r.header.Del("Retry-After") }, Shape},
		"the words of a text":            {"err-notfound", 1, func(r *reply) { r.body = "what?\n" }, Shape},
		"no text":                        {"err-notfound", 1, func(r *reply) { r.body = nil }, Status},
		"text in place of JSON":          {"crud-dryrun", 3, func(r *reply) { r.body = "{" }, Status},
		"an event's type":                {"watch-events", 5, setting("events.0.type", "ADDED"), Status},
		"an event's object":              {"watch-events", 5, setting("events.0.object.data.k", "9"), Status},
		"a manager in an event":          {"watch-events", 5, setting("events.0.object.metadata.managedFields.0.manager", "me"), Shape},
		"an event too few":               {"watch-events", 5, func(r *reply) { dropEvent(r) }, Status},
		"a watch that does not end":      {"watch-events", 6, func(r *reply) { r.ended = "timeout" }, Status},
		"a watch that ends early":        {"watch-list", 3, func(r *reply) { dropEvent(r); r.ended = "eof" }, Status},
		"a watch without its event":      {"watch-compacted", 7, func(r *reply) { dropEvent(r); r.ended = "eof" }, None},
		"a protobuf answer that is none": {"neg-table", 11, func(r *reply) { r.header.Set("Content-Type", "application/json") }, Status},
	}
	scenarios := loadScenarios(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			i := slices.IndexFunc(scenarios, func(s Scenario) bool { return s.Name == tt.scenario })
			s := shortened(scenarios[i], tt.step)
			results := playRecorded(t, s, func(step Step, r *reply) {
				if step.Number == tt.step {
					tt.change(r)
				}
			})
			result := results[tt.step]
			if result.Level != tt.want || (result.Diff == "") != (tt.want == Exact) {
				t.Errorf("got level %s, want %s; %s", result.Level, tt.want, result.Report())
			}
		})
	}
}

// shortened ends a scenario after a step, and hurries its watch.
func shortened(s Scenario, step int) Scenario {
	s.Steps = slices.Clone(s.Steps[:step+1])
	last := &s.Steps[step]
	if last.Request.Stream != nil {
		last.Request.Stream = &stream{Events: last.Request.Stream.Events, Timeout: 0.2}
	}
	return s
}

func dropEvent(r *reply) {
	m := r.body.(map[string]any)
	events := m["events"].([]any)
	m["events"] = events[:len(events)-1]
}
