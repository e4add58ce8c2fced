//go:build linux

// Command apiserver measures Evenkeel beside kube-apiserver and etcd: it starts
// each alone, in turns, puts the same load on it, and prints tables of ratios and
// of whose CPU time was used.
//
//	cd bench && go run ./apiserver            all rows, three runs of each server
//	go run ./apiserver -run list -rounds 1    some rows
//	go run ./apiserver -write ../docs/benchmarks.md
//
// The peers are built the first time, into the user's cache; EVENKEEL_PEER_DIR
// names a folder that has them already.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"syscall"
	"time"

	"github.com/even-keel/evenkeel/bench/machine"
)

// options are the flags.
type options struct {
	run, dir, write string
	rounds          int
	quick           bool
	only            string
	quiet           time.Duration
	limit           time.Duration
}

func parse(args []string) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("apiserver", flag.ContinueOnError)
	flags.StringVar(&o.run, "run", ".", "a `regexp` of the rows to measure")
	flags.IntVar(&o.rounds, "rounds", 3, "how many runs of each server; the tables hold medians")
	flags.BoolVar(&o.quick, "quick", false, "much less load, to try the program: its figures mean nothing")
	flags.StringVar(&o.only, "only", "", "start only `ours` or only the `peer`")
	flags.StringVar(&o.dir, "dir", "", "the `folder` for data, on a disk (default the system's for temporary files)")
	flags.StringVar(&o.write, "write", "", "write the report to a `file` too")
	flags.DurationVar(&o.quiet, "quiet", 0, "wait before rows until others leave the machine alone, all together at most so long")
	flags.DurationVar(&o.limit, "limit", time.Hour, "the longest that all may take")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if o.rounds < 1 || flags.NArg() > 0 || (o.only != "" && o.only != "ours" && o.only != "peer") {
		flags.Usage()
		return nil, errors.New("bad flags")
	}
	return o, nil
}

func (o *options) sizes() sizes {
	if o.quick {
		return sizes{clients: 32, creates: 500, updates: 500, reading: 500 * time.Millisecond, listed: 500, watchers: 20, changes: 200}
	}
	return sizes{clients: 32, creates: 8000, updates: 8000, reading: 5 * time.Second, listed: 5500, watchers: 200, changes: 2000}
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
		fmt.Fprintln(os.Stderr, "apiserver:", err)
		os.Exit(1)
	}
}

// measureAll builds what is missing, measures, and prints the report.
func measureAll(ctx context.Context, o *options, out, say io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	names, err := regexp.Compile(o.run)
	if err != nil {
		return err
	}
	entries := chosen(entries(), names)
	if len(entries) == 0 {
		fmt.Fprintf(say, "==> no row of the API servers matches %q\n", o.run)
		return nil
	}
	dir, err := machine.WorkDir(o.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &bench{dir: dir, sizes: o.sizes(), rounds: o.rounds, idle: 5 * time.Second, patience: o.quiet,
		cores: runtime.NumCPU(), entries: entries, say: say}
	r := &report{cores: b.cores, sizes: b.sizes, rounds: b.rounds, quick: o.quick}
	if err := b.prepare(ctx, o, r); err != nil {
		return err
	}
	if r.machine, err = machine.Describe(dir); err != nil {
		return err
	}
	r.loadBefore = machine.LoadAverage()
	if r.rows, err = b.run(ctx); err != nil {
		return err
	}
	r.loadAfter = machine.LoadAverage()
	fmt.Fprint(out, r.tables())
	if o.write == "" {
		return nil
	}
	page, err := r.page()
	return errors.Join(err, os.WriteFile(o.write, []byte(page), 0o644))
}

// prepare builds the programs of both sides.
func (b *bench) prepare(ctx context.Context, o *options, r *report) error {
	root, err := machine.ModuleRoot(ctx)
	if err != nil {
		return err
	}
	if o.only != "peer" {
		fmt.Fprintln(b.say, "==> build evenkeel")
		program, version, err := machine.BuildEvenkeel(ctx, root, b.dir)
		if err != nil {
			return err
		}
		b.ours, r.ours = evenkeel(program), version
	}
	if o.only == "ours" {
		return nil
	}
	programs, err := findPeer(ctx, filepath.Join(root, "bench", "peer"), b.say)
	if err != nil {
		return err
	}
	if r.peer, err = programs.versions(); err != nil {
		return err
	}
	certs, err := makeCerts(b.dir)
	b.peer = kubernetes(programs, certs)
	return err
}
