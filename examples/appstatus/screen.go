package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
)

// screen shows the tables of applications: on a terminal all of them, in place;
// elsewhere what changed, a line each.
type screen struct {
	out     io.Writer
	inPlace bool

	mu   sync.Mutex
	apps map[string][]row
	said string // what the last command had to say, on a terminal
}

func newScreen(out io.Writer, inPlace bool) *screen {
	return &screen{out: out, inPlace: inPlace, apps: map[string][]row{}}
}

// show makes rows the table of an application; without any, there is none.
func (s *screen) show(app string, rows []row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.apps[app]
	if slices.Equal(before, rows) {
		return
	}
	if s.apps[app] = rows; len(rows) == 0 {
		delete(s.apps, app)
	}
	if s.inPlace {
		s.drawLocked()
		return
	}
	fmt.Fprint(s.out, changes(app, before, rows))
}

// say shows what a command had to say.
func (s *screen) say(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.said = text; s.inPlace {
		s.drawLocked()
		return
	}
	fmt.Fprint(s.out, text)
}

// tables are all tables as text.
func (s *screen) tables() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tablesLocked()
}

func (s *screen) tablesLocked() string {
	var b strings.Builder
	for _, app := range slices.Sorted(maps.Keys(s.apps)) {
		b.WriteString(table(app, s.apps[app]) + "\n")
	}
	return b.String()
}

// drawLocked clears the terminal and draws everything, in one write.
func (s *screen) drawLocked() {
	fmt.Fprint(s.out, "\x1b[H\x1b[2J"+s.tablesLocked()+s.said+"> ")
}

// table is the table of an application, with aligned columns.
func table(app string, rows []row) string {
	var b strings.Builder
	ready := 0
	for _, r := range rows {
		if r.State.Ready {
			ready++
		}
	}
	fmt.Fprintf(&b, "%s: %d of %d ready\n", app, ready, len(rows))
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  KIND\tNAMESPACE\tNAME\tREADY\tSTATE")
	for _, r := range rows {
		namespace := r.Namespace
		if namespace == "" {
			namespace = "-"
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\n", r.Kind, namespace, r.Name, r.State.word(), r.State.Text)
	}
	_ = w.Flush() // into memory
	return b.String()
}

// changes are the lines of what is different in a table.
func changes(app string, before, now []row) string {
	known := map[string]row{}
	for _, r := range before {
		known[r.key()] = r
	}
	var b strings.Builder
	for _, r := range now {
		if old, ok := known[r.key()]; !ok || old != r {
			fmt.Fprintf(&b, "%-16s %-48s %-4s %s\n", app, r.key(), r.State.word(), r.State.Text)
		}
		delete(known, r.key())
	}
	for _, key := range slices.Sorted(maps.Keys(known)) {
		fmt.Fprintf(&b, "%-16s %-48s %-4s %s\n", app, key, "-", "gone")
	}
	return b.String()
}
