package wire

import (
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// Level says how close an answer comes to the recorded one. Each level
// includes those before it.
type Level int

// The levels, in order.
const (
	// None: not even the status is equal.
	None Level = iota
	// Status: HTTP status and the Status's reason (in a watch: that of an ERROR
	// event at its end) are equal.
	Status
	// Shape: also content type, whether there are warnings, comparisons, and
	// the body: of a Status what programs read, of others everything but
	// managedFields and prose.
	Shape
	// Exact: the whole answer, messages and managedFields included.
	Exact
)

var levelNames = [...]string{None: "none", Status: "status", Shape: "shape", Exact: "exact"}

// String is the level's name.
func (l Level) String() string { return levelNames[l] }

// ParseLevel returns the level of a name.
func ParseLevel(name string) (Level, error) {
	for l, n := range levelNames {
		if n == name {
			return Level(l), nil
		}
	}
	return None, fmt.Errorf("level %q: want one of %s", name, strings.Join(levelNames[:], ", "))
}

// Compare returns the highest level at which two normalised answers are equal,
// and what differs at the next one ("" at Exact).
func Compare(want, got Response) (Level, string) {
	views := []func(Response) any{Status: statusView, Shape: shapeView, Exact: exactView}
	for level := Status; level <= Exact; level++ {
		if diff := cmp.Diff(views[level](want), views[level](got)); diff != "" {
			return level - 1, diff
		}
	}
	return Exact, ""
}

func statusView(r Response) any {
	return map[string]any{"status": r.Status, "reason": reasonOf(r.Body)}
}

// reasonOf is the reason of a Status, or of the ERROR event that ends a watch.
func reasonOf(body any) string {
	if isStatus(body) {
		return member(body, "reason")
	}
	events, _, ok := watchOf(body)
	if !ok || len(events) == 0 || member(events[len(events)-1], "type") != "ERROR" {
		return ""
	}
	object, _ := lookup(events[len(events)-1], "object")
	return member(object, "reason")
}

// watchOf takes the body of a watch apart.
func watchOf(body any) (events []any, ended string, ok bool) {
	m, isMap := body.(map[string]any)
	events, hasEvents := m["events"].([]any)
	ended, hasEnded := m["ended"].(string)
	return events, ended, isMap && hasEvents && hasEnded && len(m) == 2
}

func shapeView(r Response) any {
	return map[string]any{
		"status":      r.Status,
		"contentType": r.ContentType,
		"warned":      len(r.Warnings) > 0,
		"compare":     r.Compare,
		"body":        shapeOf(r.Body),
	}
}

func shapeOf(body any) any {
	if _, ok := body.(string); ok {
		return "<text>"
	}
	if isStatus(body) {
		return statusShape(body.(map[string]any))
	}
	if events, ended, ok := watchOf(body); ok {
		shapes := make([]any, len(events))
		for i, e := range events {
			object, _ := lookup(e, "object")
			shapes[i] = map[string]any{"type": member(e, "type"), "object": shapeOf(object)}
		}
		return map[string]any{"events": shapes, "ended": ended}
	}
	return bare(body, "")
}

// statusShape keeps what programs act on.
func statusShape(status map[string]any) any {
	out := map[string]any{"kind": "Status"}
	keep(out, status, "status", "code", "reason")
	details, _ := status["details"].(map[string]any)
	kept := map[string]any{}
	keep(kept, details, "kind", "group", "name")
	var causes []any
	for _, c := range causesOf(status) {
		cause := map[string]any{}
		m, _ := c.(map[string]any)
		keep(cause, m, "reason", "field")
		causes = append(causes, cause)
	}
	sortBy(causes, "field", "reason") // the messages, which may differ, sorted them
	kept["causes"] = causes
	out["details"] = kept
	return out
}

func keep(to, from map[string]any, keys ...string) {
	for _, k := range keys {
		if v, ok := from[k]; ok {
			to[k] = v
		}
	}
}

// bare copies a value without managedFields and without the description of
// table columns; key is where it stands.
func bare(v any, key string) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			// A selected body has paths for keys.
			if k == "managedFields" || strings.HasSuffix(k, ".managedFields") ||
				k == "description" && key == "columnDefinitions" {
				continue
			}
			out[k] = bare(e, k)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = bare(e, key)
		}
		return out
	}
	return v
}

func exactView(r Response) any {
	warnings := r.Warnings
	if len(warnings) == 0 {
		warnings = nil
	}
	retry := "none"
	if r.RetryAfter != nil {
		retry = *r.RetryAfter
	}
	return map[string]any{
		"status":      r.Status,
		"contentType": r.ContentType,
		"warnings":    warnings,
		"retryAfter":  retry,
		"compare":     r.Compare,
		"body":        r.Body,
	}
}
