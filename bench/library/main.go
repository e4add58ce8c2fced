// Command library runs the benchmarks of the library half beside client-go and
// controller-runtime, several times, and prints the rows of the design's budgets as
// a table of medians.
//
//	cd bench && go run ./library                    all rows, three times
//	go run ./library -run queue -rounds 5           some rows
//	go run ./library -write ../docs/benchmarks-library.md
//
// What is measured, and how, is told at the benchmarks themselves: in the folders
// cache, informer and queue.
package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed" // the page's text
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"text/template"

	"github.com/even-keel/evenkeel/bench/apiserver/figure"
)

func main() {
	run := flag.String("run", ".", "a `regexp` of the rows to measure")
	rounds := flag.Int("rounds", 3, "how often each is measured; the table holds medians")
	write := flag.String("write", "", "write the report to a `file` too")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := measure(ctx, *run, *rounds, *write)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "library:", err)
		os.Exit(1)
	}
}

// measure runs what matches, and prints the report.
func measure(ctx context.Context, run string, rounds int, write string) error {
	names, err := regexp.Compile(run)
	if err != nil {
		return err
	}
	table, err := gather(rows(), names, rounds, func(b benchmark) ([]byte, error) { return b.run(ctx, os.Stderr) })
	if err != nil {
		return err
	}
	if len(table) == 0 {
		fmt.Fprintf(os.Stderr, "==> no row of the library matches %q\n", run)
		return nil
	}
	text := figure.Results(table, "peer") + "\n" + figure.Spreads(table, "peer") + fmt.Sprintf(
		"\n%s, %d processors, load average %s.\n", runtime.Version(), runtime.NumCPU(), loadAverage())
	fmt.Print(text)
	if write == "" {
		return nil
	}
	var page bytes.Buffer
	err = template.Must(template.New("").Parse(pageText)).Execute(&page, map[string]any{"Tables": text, "Rounds": rounds})
	return errors.Join(err, os.WriteFile(write, page.Bytes(), 0o644))
}

//go:embed page.md
var pageText string

// benchmark is a Go benchmark in a folder, which reports all that its rows need.
type benchmark struct{ folder, name string }

// run runs it once, in a process of its own.
func (b benchmark) run(ctx context.Context, say io.Writer) ([]byte, error) {
	fmt.Fprintf(say, "==> %s: %s\n", b.folder, b.name)
	var parts []string
	for part := range strings.SplitSeq(b.name, "/") {
		parts = append(parts, "^"+regexp.QuoteMeta(part)+"$")
	}
	times := "1x"
	if b.folder == "queue" {
		times = "10x" // of a tenth of a second each
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", strings.Join(parts, "/"), "-benchtime", times, "./"+b.folder)
	cmd.Stderr = say
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("benchmark %s in %s: %w\n%s", b.name, b.folder, err, out)
	}
	return out, nil
}

// gather measures the rows whose names match, each benchmark once a round.
func gather(all []row, names *regexp.Regexp, rounds int, run func(benchmark) ([]byte, error)) ([]figure.Row, error) {
	var table []figure.Row
	var from []row
	var order []benchmark
	seen := map[benchmark]bool{}
	for _, r := range all {
		if !names.MatchString(r.Name) {
			continue
		}
		table, from = append(table, r.Row), append(from, r)
		if !seen[r.of] {
			seen[r.of] = true
			order = append(order, r.of)
		}
	}
	for range rounds {
		for _, b := range order {
			out, err := run(b)
			if err != nil {
				return nil, err
			}
			metrics := parse(out)
			for i, r := range from {
				if r.of == b {
					if err := r.sample(&table[i], metrics); err != nil {
						return nil, err
					}
				}
			}
		}
	}
	return table, nil
}

// parse reads the metrics of a benchmark's line: pairs of a value and a unit.
func parse(out []byte) map[string]float64 {
	metrics := map[string]float64{}
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		for i := 2; i+1 < len(fields); i += 2 {
			if v, err := strconv.ParseFloat(fields[i], 64); err == nil {
				metrics[fields[i+1]] = v
			}
		}
	}
	return metrics
}

func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	fields := strings.Fields(string(text))
	return strings.Join(fields[:min(3, len(fields))], " ")
}
