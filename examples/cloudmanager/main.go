// Cloudmanager is an operator for an application of three parts: a database, a service
// of identities and a front.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/even-keel/evenkeel/examples/cloudmanager/operator"
	"github.com/even-keel/evenkeel/manager"
)

const usage = `Cloudmanager brings up the three parts of each CloudManager
(cloudmanagers.cloudmanagercontroller.huayun.com), one after the other.

Usage:
  cloudmanager [flags]

Examples:
  cloudmanager --install                    the local "evenkeel serve", or $KUBECONFIG
  cloudmanager --namespace shop
  cloudmanager --listen :8080               with health checks, metrics and /debug/evenkeel
  cloudmanager --leader default/cloudmanager    as one of several, of which one works

Flags:
`

// nextStep is what to do if there is no server.
const nextStep = `Start one with "make run", or name a cluster with --kubeconfig or $KUBECONFIG.`

// options are what the command line says.
type options struct {
	manager  manager.Options
	operator operator.Options
	install  bool
}

func main() {
	if err := run(manager.Signals(), os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "cloudmanager:", err)
		os.Exit(1)
	}
}

// run returns when ctx ends, which is no error, or when the cluster is not there.
func run(ctx context.Context, args []string, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	o.manager.Logger = slog.New(slog.NewTextHandler(stderr, nil))
	mgr, err := manager.New(o.manager)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, nextStep)
	}
	if _, err := mgr.Conn().Get(ctx, "/version"); err != nil {
		return fmt.Errorf("%w\n%s", err, nextStep)
	}
	if o.install {
		if err := operator.Install(ctx, mgr.Conn()); err != nil {
			return err
		}
	}
	mgr.Add(operator.New(mgr, o.operator))
	return mgr.Run(ctx)
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("cloudmanager", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, usage)
		flags.PrintDefaults()
	}
	o.manager.AddFlags(flags)
	flags.BoolVar(&o.install, "install", false, "apply the definition of CloudManager first")
	flags.StringVar(&o.operator.Namespace, "namespace", "", "work in one `namespace` and not in all")
	flags.IntVar(&o.operator.Workers, "workers", 2, "how many applications are looked at at once")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%q is not understood. cloudmanager --help tells more", flags.Args())
	}
	return o, nil
}
