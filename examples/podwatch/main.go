// Podwatch follows the pods of a cluster, in two ways: with net/http and nothing
// else, and with an informer, a work queue and workers. The first shows what the
// protocol asks of a client, the second what the library takes over.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/even-keel/evenkeel/client"
)

const usage = `Podwatch follows the pods of a cluster.

Usage:
  podwatch [flags] informer    with an informer, a work queue and workers (default)
  podwatch [flags] plain       with net/http alone: list, then watch

Examples:
  podwatch                                 the local "evenkeel serve", or $KUBECONFIG
  podwatch --namespace shop plain
  podwatch --fail web-1 --backoff 1s       watch the work on one pod fail

Flags:
`

// options are what the command line says.
type options struct {
	mode      string
	config    client.ConfigOptions
	namespace string
	fail      string
	workers   int
	backoff   time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "podwatch:", err)
		os.Exit(1)
	}
}

// run returns when ctx ends, which is no error, or when the cluster is not there.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	cfg, err := client.LoadConfig(o.config)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, nextStep)
	}
	if o.mode == "plain" {
		err = plain(ctx, cfg, o.namespace, stdout, stderr)
	} else {
		err = informed(ctx, cfg, o, stdout, slog.New(slog.NewTextHandler(stderr, nil)))
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("podwatch", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&o.config.Kubeconfig, "kubeconfig", "", "the kubeconfig `file` (default: as kubectl finds it, or the local evenkeel's)")
	flags.StringVar(&o.config.Context, "context", "", "the `context` of the kubeconfig")
	flags.StringVar(&o.namespace, "namespace", "", "follow one `namespace` and not all")
	flags.StringVar(&o.fail, "fail", "", "have the work on pods of this `name` fail, to see the retries")
	flags.IntVar(&o.workers, "workers", 2, "how many pods are worked on at once")
	flags.DurationVar(&o.backoff, "backoff", 100*time.Millisecond, "what is waited before the first retry; twice that before the second")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.mode = "informer"
	if flags.NArg() > 0 {
		o.mode = flags.Arg(0)
	}
	if flags.NArg() > 1 || o.mode != "plain" && o.mode != "informer" {
		return o, fmt.Errorf("%q is neither plain nor informer; flags go first. podwatch --help tells more", flags.Args())
	}
	return o, nil
}

// nextStep is what to do if there is no server.
const nextStep = `Start one with "make run", or name a cluster with --kubeconfig or $KUBECONFIG.`
