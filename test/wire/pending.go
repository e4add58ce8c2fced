package wire

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
)

// Pending are the scenarios that the server is not held to yet, by name, with
// the reason. The list may only shrink.
type Pending map[string]string

// LoadPending reads a JSON object of names and reasons.
func LoadPending(r io.Reader) (Pending, error) {
	var p Pending
	if err := json.NewDecoder(r).Decode(&p); err != nil {
		return nil, fmt.Errorf("read the pending scenarios: %w", err)
	}
	return p, nil
}

// Check returns what is wrong with the list itself: a scenario that does not
// exist, no reason, or a name that is not among those it once began with.
func (p Pending) Check(scenarios []Scenario, first []string) []string {
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(p)) {
		exists := slices.ContainsFunc(scenarios, func(s Scenario) bool { return s.Name == name })
		switch {
		case !exists:
			wrong = append(wrong, fmt.Sprintf("remove %s from the list: there is no such scenario", name))
		case !slices.Contains(first, name):
			wrong = append(wrong, fmt.Sprintf("remove %s from the list: it may only shrink", name))
		case p[name] == "":
			wrong = append(wrong, fmt.Sprintf("say why %s is on the list", name))
		}
	}
	return wrong
}

// Passed tells whether a pending scenario was played to its end and every
// scored step is equal at level Shape: it then must leave the list.
func Passed(s Scenario, results []Result) bool {
	if len(results) < len(s.Steps) {
		return false
	}
	return !slices.ContainsFunc(results, missed)
}

// missed is true for a scored step that is not equal at level Shape, and for
// another that has not even the recorded status.
func missed(r Result) bool {
	if r.Step.Scored() {
		return r.Level < Shape
	}
	return r.Level < Status
}

// PlayPending is like Play, and ends after the first step that goes wrong: the
// rest would only wait for what never comes.
func (r *Run) PlayPending(ctx context.Context, s Scenario) ([]Result, error) {
	return r.playUntil(ctx, s, missed)
}
