package explore

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

// Scenario is what is run again and again.
type Scenario struct {
	// Server starts a server for one run, which ends with the test that it is given.
	// Whatever else is to be there, such as nodes that run pods, is started with it.
	Server func(t *testing.T) *rest.Config
	// Controller runs what is tested until its context ends. When a plan has it crash,
	// its context ends, no request of it succeeds any more, and once it has returned it
	// is called again: what it keeps has to be made in it.
	Controller func(ctx context.Context, cfg *rest.Config) error
	// Steps are taken one after the other, each when the controller has come to rest.
	Steps []Step
	// Always is asked after each write of the controller, and when it has come to rest:
	// for what must be true at any time. It may be nil.
	Always Step
	// End is asked after the last step, for what must be true in the end. It may be nil.
	End Step
	// Keep may change an object before it is compared, and have it left out: for what
	// differs for good reasons. Nil keeps all as they are.
	Keep func(*unstructured.Unstructured) bool
	// Faults are those to be tried; none means all but [Skipped].
	Faults []Fault
	// Max bounds the number of plans, 100 by default, and Seed chooses which. The
	// variable EVENKEEL_EXPLORE=all has all tried.
	Max  int
	Seed uint64
	// Quiet is how long nothing is written when a controller has come to rest: a minute
	// in a bubble, two seconds outside.
	Quiet time.Duration
	// NoBubble is for servers that cannot be in a bubble of [testing/synctest].
	NoBubble bool
}

func (s Scenario) withDefaults() *Scenario {
	s.Max = cmp.Or(s.Max, 100)
	if os.Getenv("EVENKEEL_EXPLORE") == "all" {
		s.Max = 1 << 30
	}
	switch {
	case s.Quiet > 0:
	case s.NoBubble:
		s.Quiet = 2 * time.Second
	default:
		s.Quiet = time.Minute
	}
	return &s
}

// Run takes the steps without a fault, and then once for each plan, as a subtest that is
// named for it. One fails if the state after a step is not that of the run without a
// fault, if Always or End say so, or if the controller does not come to rest; it is
// skipped if its fault did not happen.
func Run(t *testing.T, s Scenario) {
	t.Helper()
	s.explore(t, func(t *testing.T, v verdict) {
		t.Helper()
		switch {
		case v.failure != "":
			t.Errorf("explore: %s: %s\nwrites of this run:\n%s\nrepeat: go test -run '%s'", v.plan, v.failure, v.out.history(), pattern(t.Name()))
		case !v.out.fired:
			t.Skipf("explore: it did not happen: %s", v.plan)
		}
	})
}

// pattern is what -run takes for one test.
func pattern(name string) string { return "^" + strings.ReplaceAll(name, "/", "$/^") + "$" }

// verdict is what is to be said of a run.
type verdict struct {
	plan    plan
	out     outcome
	failure string
}

// explore calls each with what came of each plan, in a subtest.
func (s Scenario) explore(t *testing.T, each func(*testing.T, verdict)) {
	t.Helper()
	with := s.withDefaults()
	reference := with.reference(t)
	all := wanted(plans(reference.record, len(s.Steps)), s.Faults)
	if len(all) == 0 {
		t.Fatal("explore: none of the Faults can happen in these steps")
	}
	chosen := choose(all, with.Max, s.Seed)
	tried, idle, longest := 0, 0, time.Duration(0)
	for _, p := range chosen {
		if until, ok := t.Deadline(); ok && time.Until(until) < 3*longest+time.Second {
			t.Logf("explore: there is no time for %d plans", len(chosen)-tried)
			break
		}
		began := time.Now()
		t.Run(p.name(), func(t *testing.T) {
			v := verdict{plan: p, out: with.inBubble(t, p, reference.paths)}
			v.failure = failure(reference, v.out, p)
			tried++
			if !v.out.fired {
				idle++
			}
			each(t, v)
		})
		longest = max(longest, time.Since(began))
	}
	t.Logf("explore: %d writes, %d steps: tried %d plans of %d, of which %d did not happen", len(reference.writes), len(s.Steps), tried, len(all), idle)
}

// reference is the run that others are held against. It has to be one of which all
// without a fault are alike.
func (s *Scenario) reference(t *testing.T) outcome {
	t.Helper()
	first := s.inBubble(t, plan{}, nil)
	if first.err != nil {
		t.Fatalf("explore: without a fault: %v\nwrites:\n%s", first.err, first.history())
	}
	if len(first.writes) == 0 {
		t.Fatal("explore: the controller wrote nothing")
	}
	second, third := s.inBubble(t, plan{}, first.paths), s.inBubble(t, plan{}, first.paths) // which know what to look at
	if differs := failure(second, third, plan{}); differs != "" {
		t.Fatalf("explore: two runs without a fault differ, by a race, or by what Keep should leave out: %s", differs)
	}
	return second
}

func (s *Scenario) inBubble(t *testing.T, p plan, paths []string) (out outcome) {
	t.Helper()
	if s.NoBubble {
		return s.once(t.Context(), s.Server(t), p, paths)
	}
	synctest.Test(t, func(t *testing.T) { out = s.once(t.Context(), s.Server(t), p, paths) })
	return out
}

// failure is why a run is not as it should be.
func failure(reference, out outcome, p plan) string {
	if out.err != nil {
		return out.err.Error()
	}
	for i, want := range reference.states {
		if p.fault == Skipped && p.step == i {
			continue // nobody has seen it
		}
		if diff := gocmp.Diff(want, out.states[i]); diff != "" {
			return fmt.Sprintf("after step %d the state is another (-without the fault +with it):\n%s", i+1, diff)
		}
	}
	return ""
}
