//go:build linux

package main

import (
	_ "embed" // the page's text
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"text/template"
	"time"

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

// describeMachine looks at the machine, and at the disk under a folder.
func (r *report) describeMachine(dir string) error {
	fs, err := fileSystem(dir)
	if err != nil {
		return err
	}
	synced, err := syncTime(dir)
	if err != nil {
		return err
	}
	r.machine = fmt.Sprintf("%d cores (%s), %s of memory, Linux %s; data on %s, where a write of 4 KiB and its sync take %v",
		r.cores, procLine("/proc/cpuinfo", "model name"), gigabytes(procLine("/proc/meminfo", "MemTotal")),
		kernel(), fs, synced.Round(10*time.Microsecond))
	r.loadBefore = loadAverage()
	return nil
}

// gigabytes turns the "12345 kB" of /proc into GB.
func gigabytes(kB string) string {
	n, err := strconv.ParseFloat(strings.TrimSuffix(kB, " kB"), 64)
	if err != nil {
		return "an unknown amount"
	}
	return fmt.Sprintf("%.0f GB", n*1024/1e9)
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

// kernel is the version of the system's.
func kernel() string {
	text, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
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
