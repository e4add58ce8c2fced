//go:build linux

// Command controlplane measures `evenkeel serve` as a whole: API server, controllers,
// scheduler and simulated nodes, in one process of their own.
//
//	cd bench && go run ./controlplane              everything, three times
//	go run ./controlplane -run 'idle|scheduler'    some of it
//	go run ./controlplane -write ../docs/benchmarks-controlplane.md
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
	"strconv"
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
	nodes, deployments       int
	quick                    bool
	limit                    time.Duration
}

func parse(args []string) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("controlplane", flag.ContinueOnError)
	flags.StringVar(&o.run, "run", ".", "a `regexp` of the scenes to measure: idle, cluster, scheduler")
	flags.IntVar(&o.rounds, "rounds", 3, "how often each scene is measured; the tables hold medians")
	flags.BoolVar(&o.quick, "quick", false, "much less load, to try the program: its figures mean nothing")
	flags.IntVar(&o.nodes, "nodes", 500, "how many nodes the cluster has; a tenth is drained")
	flags.IntVar(&o.deployments, "deployments", 100, "how many Deployments of 100 pods the cluster has")
	flags.StringVar(&o.dir, "dir", "", "the `folder` for data, on a disk (default the system's for temporary files)")
	flags.StringVar(&o.write, "write", "", "write the report to a `file` too")
	flags.StringVar(&o.profile, "profile", "", "write profiles and metrics of each step of the cluster to a `folder`; that slows it down")
	flags.DurationVar(&o.limit, "limit", time.Hour, "the longest that all may take")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if min(o.rounds, o.nodes, o.deployments) < 1 || flags.NArg() > 0 {
		flags.Usage()
		return nil, errors.New("bad flags")
	}
	return o, nil
}

// sizes are how much is measured.
type sizes struct {
	// The cluster: replicas is that of each Deployment.
	nodes, deployments, replicas, drained int
	// What the scheduler is to place.
	places, pods int
	// resting is how long an idle server is left alone.
	resting time.Duration
}

func (o *options) sizes() sizes {
	if o.quick {
		return sizes{nodes: 10, deployments: 4, replicas: 10, drained: 2, places: 20, pods: 100, resting: time.Second}
	}
	return sizes{nodes: o.nodes, deployments: o.deployments, replicas: 100, drained: o.nodes / 10, places: 1000, pods: 10_000, resting: 10 * time.Second}
}

func (z sizes) all() int { return z.deployments * z.replicas }

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
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		os.Exit(1)
	}
}

// measureAll builds the program, measures, and prints the report.
func measureAll(ctx context.Context, o *options, out, say io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	chosen, err := regexp.Compile(o.run)
	if err != nil {
		return err
	}
	if o.profile != "" {
		if err := os.MkdirAll(o.profile, 0o755); err != nil {
			return err
		}
	}
	dir, err := machine.WorkDir(o.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &bench{dir: dir, profile: o.profile, sizes: o.sizes(), rounds: o.rounds, say: say}
	version, err := b.build(ctx)
	if err != nil {
		return err
	}
	about, err := machine.Describe(dir)
	if err != nil {
		return err
	}
	before := machine.LoadAverage()
	if err := b.run(ctx, chosen); err != nil {
		return err
	}
	var tables strings.Builder
	if o.quick {
		tables.WriteString("A trial with little load: these figures mean nothing.\n\n")
	}
	fmt.Fprintf(&tables, "%s\nEvenkeel %s (%s).\n%s.\nLoad average before: %s; after: %s.\n", b.tables(), version, runtime.Version(), about, before, machine.LoadAverage())
	fmt.Fprint(out, tables.String())
	if o.write == "" {
		return nil
	}
	return b.page(o.write, tables.String())
}

// build builds the program that is measured.
func (b *bench) build(ctx context.Context) (version string, err error) {
	root, err := machine.ModuleRoot(ctx)
	if err != nil {
		return "", err
	}
	fmt.Fprintln(b.say, "==> build")
	b.program, version, err = machine.BuildEvenkeel(ctx, root, b.dir)
	if err == nil && b.profile != "" {
		b.program = filepath.Join(b.dir, "profiled")
		err = machine.Build(ctx, filepath.Join(root, "bench"), "./controlplane/profiled", b.program)
	}
	return version, err
}

//go:embed page.md
var pageText string

// page writes docs/benchmarks-controlplane.md.
func (b *bench) page(file, tables string) error {
	var out strings.Builder
	z := b.sizes
	err := template.Must(template.New("").Parse(pageText)).Execute(&out, map[string]any{
		"Tables": tables, "Rounds": b.rounds, "Nodes": thousands(z.nodes), "Deployments": thousands(z.deployments), "Replicas": thousands(z.replicas),
		"All": thousands(z.all()), "Drained": thousands(z.drained), "Places": thousands(z.places), "Pods": thousands(z.pods), "Resting": z.resting,
	})
	return errors.Join(err, os.WriteFile(file, []byte(out.String()), 0o644))
}

// thousands groups digits by commas.
func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// tables are all that was measured.
func (b *bench) tables() string {
	var out strings.Builder
	if len(b.figures) > 0 {
		out.WriteString(figure.Alone(b.figures))
	}
	if len(b.steps) > 0 {
		fmt.Fprintf(&out, "\n%s", figure.Steps(b.steps, "pod"))
	}
	return out.String()
}
