package explore

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// Fault is something that may happen to a controller.
type Fault string

// The faults, at a write of the controller or during a step.
const (
	// CrashBefore and CrashAfter end the process when a write is about to be sent,
	// or has been done and not yet been heard of, and start another.
	CrashBefore Fault = "crash-before"
	CrashAfter  Fault = "crash-after"
	// Behind is CrashAfter, and the next process reads from a server that is behind:
	// lists that permit it are of the state before the step, and watches go on later.
	Behind Fault = "behind-after"
	// Lost breaks the connection after a write was done, and before the answer.
	Lost Fault = "lost-answer-of"
	// Cut breaks all watches.
	Cut Fault = "cut-at"
	// Conflict has another change the object before a write that is of one revision
	// only, which the server refuses. The change is an annotation.
	Conflict Fault = "conflict-at"
	// Failed refuses a write with 500, Unavailable with 503, and Throttled with 429, to
	// come back in a second.
	Failed      Fault = "failed-at"
	Unavailable Fault = "unavailable-at"
	Throttled   Fault = "throttled-at"
	// Stale holds back what watches tell of a resource, and lets it through when
	// the controller has come to rest.
	Stale Fault = "stale"
	// Unobserved is Stale during a step, and then the watch breaks, and its history is
	// gone: what has come and passed in between is never seen.
	Unobserved Fault = "unobserved"
	// Skipped is Unobserved for two steps: the state after the first is never seen. It
	// is for controllers whose end does not depend on the way, and has to be asked for.
	Skipped Fault = "skipped"
)

// atWrites are the faults of every write.
var atWrites = []Fault{CrashBefore, CrashAfter, Lost, Conflict, Failed, Unavailable, Throttled, Stale, Cut, Behind}

// plan is one fault at one point. The zero value is a run without a fault.
type plan struct {
	fault Fault
	// write and nth are where it happens, counted from 1; or it is at a step.
	write string
	nth   int
	step  int
	// of is the resource that the controller does not hear of.
	of string
}

// String says it in words.
func (p plan) String() string {
	what := strings.ReplaceAll(string(p.fault), "-", " ")
	switch {
	case p.fault == Skipped:
		return fmt.Sprintf("changes of %s in steps %d and %d seen as one", p.of, p.step+1, p.step+2)
	case p.write == "":
		return fmt.Sprintf("%s changes of %s in step %d", what, p.of, p.step+1)
	case p.fault == Stale:
		what = fmt.Sprintf("%s view of %s from", what, p.of)
	}
	if p.nth > 1 {
		return fmt.Sprintf("%s write %q, time %d", what, p.write, p.nth)
	}
	return fmt.Sprintf("%s write %q", what, p.write)
}

// name is that of the subtest, without anything that a shell or a regular expression
// would take for something else.
func (p plan) name() string {
	parts := []string{string(p.fault)}
	if p.of != "" {
		parts = append(parts, p.of)
	}
	if p.write == "" {
		parts = append(parts, fmt.Sprint("step:", p.step+1))
	} else {
		parts = append(parts, p.write, fmt.Sprint(p.nth))
	}
	return strings.NewReplacer(" ", ":", "/", ".").Replace(strings.Join(parts, ":"))
}

// is reports whether the fault is to happen at this write.
func (p plan) is(write string, nth int) bool { return p.write == write && p.nth == nth }

// plans are all that a run without a fault gives reason for.
func plans(r *record, steps int) []plan {
	var all []plan
	times := map[string]int{}
	for _, c := range r.writes {
		write := c.String()
		times[write]++
		for _, f := range atWrites {
			p := plan{fault: f, write: write, nth: times[write]}
			if f == Stale {
				p.of, _, _ = strings.Cut(c.resource, "/")
			}
			if r.permits(f, c) {
				all = append(all, p)
			}
		}
	}
	for step := range steps {
		for _, of := range r.heard[step] {
			all = append(all, plan{fault: Stale, step: step, of: of}, plan{fault: Unobserved, step: step, of: of})
			if step+1 < steps {
				all = append(all, plan{fault: Skipped, step: step, of: of})
			}
		}
	}
	return all
}

// permits reports whether a server may do this to a write.
func (r *record) permits(f Fault, c call) bool {
	switch f {
	case Conflict:
		return c.conditional && c.verb != "create"
	case Stale:
		of, _, _ := strings.Cut(c.resource, "/")
		return slices.ContainsFunc(slices.Collect(maps.Values(r.heard)), func(heard []string) bool { return slices.Contains(heard, of) })
	case Behind:
		return r.anyRevision
	}
	return true
}

// wanted leaves out plans of other faults; none are all but Skipped.
func wanted(all []plan, faults []Fault) []plan {
	return slices.DeleteFunc(all, func(p plan) bool {
		return len(faults) > 0 && !slices.Contains(faults, p.fault) || len(faults) == 0 && p.fault == Skipped
	})
}

// choose takes at most so many plans, in their order: by the seed, and writes of which
// there are many later than others.
func choose(all []plan, most int, seed uint64) []plan {
	if len(all) <= most {
		return all
	}
	index := rand.New(rand.NewPCG(seed, 0)).Perm(len(all))
	slices.SortStableFunc(index, func(a, b int) int { return all[a].nth - all[b].nth })
	index = index[:most]
	slices.Sort(index)
	var chosen []plan
	for _, i := range index {
		chosen = append(chosen, all[i])
	}
	return chosen
}
