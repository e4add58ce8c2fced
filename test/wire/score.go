package wire

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// Score counts steps, and those that are equal at each level.
type Score struct {
	Steps, Status, Shape, Exact int
}

func (s *Score) add(level Level) {
	s.Steps++
	for at, count := range map[Level]*int{Status: &s.Status, Shape: &s.Shape, Exact: &s.Exact} {
		if level >= at {
			*count++
		}
	}
}

// Scores are the scores by family. The zero value is ready; it is not safe for
// concurrent use.
type Scores struct {
	families map[string]*Score
	total    Score
}

// Add counts the scored steps among results.
func (s *Scores) Add(results []Result) {
	if s.families == nil {
		s.families = map[string]*Score{}
	}
	for _, r := range results {
		if !r.Step.Scored() {
			continue
		}
		family := s.families[r.Step.Family]
		if family == nil {
			family = &Score{}
			s.families[r.Step.Family] = family
		}
		family.add(r.Level)
		s.total.add(r.Level)
	}
}

// Total is the score over all families.
func (s *Scores) Total() Score { return s.total }

// Below says which of two demands the total misses: every step equal at level
// Status, and at least a share of them (0 to 1) at level Shape.
func (s *Scores) Below(shape float64) []string {
	var missed []string
	if t := s.total; t.Status < t.Steps {
		missed = append(missed, fmt.Sprintf("level status: %d of %d steps are equal, want all", t.Status, t.Steps))
	}
	if t := s.total; float64(t.Shape) < shape*float64(t.Steps) {
		missed = append(missed, fmt.Sprintf("level shape: %d of %d steps are equal (%s), want %.0f %%",
			t.Shape, t.Steps, percent(t.Shape, t.Steps), shape*100))
	}
	return missed
}

// String is a table: a line a family, and the total.
func (s *Scores) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "family\tsteps\tstatus\tshape\texact\t")
	for _, name := range slices.Sorted(maps.Keys(s.families)) {
		writeScore(w, name, *s.families[name])
	}
	writeScore(w, "total", s.total)
	w.Flush()
	return b.String()
}

func writeScore(w *tabwriter.Writer, name string, s Score) {
	fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t\n", name, s.Steps, s.Status, s.Shape, s.Exact)
	if name == "total" {
		fmt.Fprintf(w, "\t\t%s\t%s\t%s\t\n", percent(s.Status, s.Steps), percent(s.Shape, s.Steps), percent(s.Exact, s.Steps))
	}
}

func percent(part, whole int) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}
