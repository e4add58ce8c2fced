//go:build linux

package main

import (
	_ "embed" // the page's text
	"fmt"
	"runtime"
	"strings"
	"text/template"

	"github.com/even-keel/evenkeel/bench/apiserver/figure"
)

// report is all that is told at the end.
type report struct {
	rows       []figure.Row
	sizes      sizes
	rounds     int
	quick      bool
	ours, peer string // versions
	cores      int
	machine    string
	loadBefore string
	loadAfter  string
}

const peerName = "kube-apiserver + etcd"

// tables are what is printed.
func (r *report) tables() string {
	var out strings.Builder
	if r.quick {
		out.WriteString("A trial with little load: these figures mean nothing.\n\n")
	}
	out.WriteString(figure.Results(r.rows, peerName))
	out.WriteString("\n")
	out.WriteString(figure.Costs(r.rows))
	out.WriteString("\n")
	out.WriteString(figure.Spreads(r.rows, peerName))
	fmt.Fprintf(&out, "\nEvenkeel %s (%s); %s.\n%s.\nLoad average before: %s; after: %s.\n",
		r.ours, runtime.Version(), r.peer, r.machine, r.loadBefore, r.loadAfter)
	return out.String()
}

// page is docs/benchmarks.md.
func (r *report) page() (string, error) {
	var out strings.Builder
	err := template.Must(template.New("").Parse(pageText)).Execute(&out, map[string]any{
		"Tables": r.tables(), "Rounds": r.rounds, "Clients": r.sizes.clients, "Creates": r.sizes.creates,
		"Updates": r.sizes.updates, "Reading": r.sizes.reading, "Listed": r.sizes.listed,
		"Watchers": r.sizes.watchers, "Changes": r.sizes.changes, "Window": window,
	})
	return out.String(), err
}

//go:embed page.md
var pageText string
