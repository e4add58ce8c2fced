package explore

import (
	"slices"
	"strings"
	"testing"
)

// find returns the names of plans that failed, and of those that did not happen.
func find(t *testing.T, s Scenario) (failed, idle []string) {
	t.Helper()
	s.Server = server
	s.explore(t, func(t *testing.T, v verdict) {
		switch {
		case v.failure != "":
			failed = append(failed, v.plan.name())
		case !v.out.fired:
			idle = append(idle, v.plan.name())
		}
	})
	return failed, idle
}

func TestBugsAreFound(t *testing.T) {
	tests := map[string]struct {
		wrong, right Scenario
		// finds are plans that have to fail if it is wrong.
		finds []string
	}{
		"a generated name that is noted later": {
			wrong: Scenario{Controller: program(ofMaps, recorded(false)), Steps: []Step{create("1")}},
			right: Scenario{Controller: program(ofMaps, recorded(true)), Steps: []Step{create("1")}},
			finds: []string{"crash-after:create:secrets:default.app-~:1", "lost-answer-of:create:secrets:default.app-~:1", "crash-before:patch:configmaps:default.app:1"},
		},
		"a deletion for what is not in the cache": {
			wrong: Scenario{Controller: program(ofMaps, swept(false)), Steps: []Step{both}},
			right: Scenario{Controller: program(ofMaps, swept(true)), Steps: []Step{both}},
			finds: []string{"stale:configmaps:step:1"},
		},
		"the same after a start that lists the past": {
			wrong: Scenario{Controller: program(ofListedMaps, swept(false)), Steps: []Step{both}},
			right: Scenario{Controller: program(ofListedMaps, swept(true)), Steps: []Step{both}},
			finds: []string{"behind-after:create:secrets:default.app:1"},
		},
		"the same after a start that streams the past": {
			wrong: Scenario{Controller: program(ofAnyMaps, swept(false)), Steps: []Step{both}},
			right: Scenario{Controller: program(ofAnyMaps, swept(true)), Steps: []Step{both}},
			finds: []string{"behind-after:create:secrets:default.app:1"},
		},
		"a finalizer that goes before the rest": {
			wrong: Scenario{Controller: program(ofMaps, finalized(false)), Steps: []Step{create("1"), remove}},
			right: Scenario{Controller: program(ofMaps, finalized(true)), Steps: []Step{create("1"), remove}},
			finds: []string{"crash-after:patch:configmaps:default.app:2", "crash-before:delete:secrets:default.app:1"},
		},
		"a change that is taken for nothing": {
			wrong: Scenario{Controller: program(ofMaps, mirrored(false)), Steps: []Step{create("1"), remove, create("2")}},
			right: Scenario{Controller: program(ofMaps, mirrored(true)), Steps: []Step{create("1"), remove, create("2")}},
			finds: []string{"skipped:configmaps:step:2"},
		},
		"one too many for a moment": {
			wrong: Scenario{Controller: program(ofMaps, rolled(false)), Steps: []Step{create("1"), change("2")}, Always: atMostOne},
			right: Scenario{Controller: program(ofMaps, rolled(true)), Steps: []Step{create("1"), change("2")}, Always: atMostOne},
			finds: []string{"failed-at:delete:secrets:default.app-1:1"},
		},
		"a generation that is not told": {
			wrong: Scenario{Controller: program(ofDeployments, observed(false)), Steps: []Step{deploy(1), deploy(2)}},
			right: Scenario{Controller: program(ofDeployments, observed(true)), Steps: []Step{deploy(1), deploy(2)}},
			finds: []string{"crash-after:create:secrets:default.web:1", "crash-after:update:secrets:default.web:1", "crash-before:update:deployments.status:default.web:1", "conflict-at:update:deployments.status:default.web:2"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, want := range test.finds {
				fault, _, _ := strings.Cut(want, ":")
				test.wrong.Faults = append(test.wrong.Faults, Fault(fault))
			}
			test.right.Faults = test.wrong.Faults
			failed, _ := find(t, test.wrong)
			for _, want := range test.finds {
				if !slices.Contains(failed, want) {
					t.Errorf("%s was not found, but %v", want, failed)
				}
			}
			if failed, _ := find(t, test.right); len(failed) > 0 {
				t.Errorf("of the right one, %v failed", failed)
			}
		})
	}
}
