//go:build linux

// Command controllers measures controllers that are built with Evenkeel beside the
// same ones built with controller-runtime: each in a process of its own, in turns, on
// one Evenkeel server, in a process of its own too.
//
//	cd bench && go run ./controllers             all rows, three times
//	go run ./controllers -run memory -rounds 5   some rows
//	go run ./controllers -write ../docs/benchmarks-controllers.md
//
// The controllers are in the folders ours and peer.
package main

import (
	"context"
	_ "embed" // the page's text
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"text/template"
	"time"

	"github.com/even-keel/evenkeel/bench/apiserver/figure"
	"github.com/even-keel/evenkeel/bench/machine"
)

// options are the flags.
type options struct {
	run, dir, write, profile string
	rounds                   int
	quick                    bool
	limit                    time.Duration
}

func parse(args []string) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("controllers", flag.ContinueOnError)
	flags.StringVar(&o.run, "run", ".", "a `regexp` of the rows to measure")
	flags.IntVar(&o.rounds, "rounds", 3, "how often each side is measured; the tables hold medians")
	flags.BoolVar(&o.quick, "quick", false, "much less load, to try the program: its figures mean nothing")
	flags.StringVar(&o.dir, "dir", "", "the `folder` for data, on a disk (default the system's for temporary files)")
	flags.StringVar(&o.write, "write", "", "write the report to a `file` too")
	flags.StringVar(&o.profile, "profile", "", "write CPU profiles of the controllers to a `folder`")
	flags.DurationVar(&o.limit, "limit", time.Hour, "the longest that all may take")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if o.rounds < 1 || flags.NArg() > 0 {
		flags.Usage()
		return nil, errors.New("bad flags")
	}
	return o, nil
}

// sizes are how much is measured.
type sizes struct {
	foos, passes, workers int
	rates                 [2]int // writes a second
	writing               time.Duration
	pods                  [2]int
	ready                 int
	resting               time.Duration
}

func (o *options) sizes() sizes {
	if o.quick {
		return sizes{foos: 200, passes: 2, workers: 8, rates: [2]int{100, 200}, writing: time.Second, pods: [2]int{100, 200}, ready: 20, resting: 100 * time.Millisecond}
	}
	return sizes{foos: 10_000, passes: 20, workers: 8, rates: [2]int{500, 2000}, writing: 10 * time.Second, pods: [2]int{10_000, 50_000}, ready: 1000, resting: 3 * time.Second}
}

func main() {
	o, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
		err = measureAll(ctx, o, os.Stdout, os.Stderr)
		stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "controllers:", err)
		os.Exit(1)
	}
}

// measureAll builds the programs, measures, and prints the report.
func measureAll(ctx context.Context, o *options, out, say io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	names, err := regexp.Compile(o.run)
	if err != nil {
		return err
	}
	if o.profile != "" { // sides run elsewhere
		if o.profile, err = filepath.Abs(o.profile); err != nil {
			return err
		}
	}
	dir, err := machine.WorkDir(o.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &bench{dir: dir, sizes: o.sizes(), rounds: o.rounds, profile: o.profile, say: say}
	b.choose(names)
	if len(b.rows) == 0 {
		fmt.Fprintf(say, "==> no row of the controllers matches %q\n", o.run)
		return nil
	}
	version, err := b.build(ctx)
	if err != nil {
		return err
	}
	about, err := machine.Describe(dir)
	if err != nil {
		return err
	}
	before := machine.LoadAverage()
	if err := b.run(ctx); err != nil {
		return err
	}
	var tables strings.Builder
	if o.quick {
		tables.WriteString("A trial with little load: these figures mean nothing.\n\n")
	}
	fmt.Fprintf(&tables, "%s\n%s\nEvenkeel %s (%s).\n%s.\nLoad average before: %s; after: %s.\n", figure.Results(b.rows, peerName), figure.Spreads(b.rows, peerName),
		version, runtime.Version(), about, before, machine.LoadAverage())
	fmt.Fprint(out, tables.String())
	if o.write == "" {
		return nil
	}
	return b.page(o.write, tables.String())
}

const peerName = "controller-runtime"

//go:embed page.md
var pageText string

// page writes docs/benchmarks-controllers.md.
func (b *bench) page(file, tables string) error {
	var out strings.Builder
	s := b.sizes
	err := template.Must(template.New("").Parse(pageText)).Execute(&out, map[string]any{
		"Tables": tables, "Rounds": b.rounds, "Workers": s.workers, "Foos": thousands(s.foos), "Passes": s.passes,
		"Slow": thousands(s.rates[0]), "Fast": thousands(s.rates[1]), "Writing": s.writing,
		"Few": thousands(s.pods[0]), "Many": thousands(s.pods[1]), "Ready": thousands(s.ready), "Resting": s.resting,
	})
	return errors.Join(err, os.WriteFile(file, []byte(out.String()), 0o644))
}

// build builds the server and both sides.
func (b *bench) build(ctx context.Context) (version string, err error) {
	root, err := machine.ModuleRoot(ctx)
	if err != nil {
		return "", err
	}
	fmt.Fprintln(b.say, "==> build")
	if b.server, version, err = machine.BuildEvenkeel(ctx, root, b.dir); err != nil {
		return "", err
	}
	for _, name := range []string{ours, peer} {
		program := filepath.Join(b.dir, name)
		if err := machine.Build(ctx, filepath.Join(root, "bench"), "./controllers/"+name, program); err != nil {
			return "", err
		}
	}
	return version, nil
}
