// Appstatus keeps a live table of the objects of each application, of any kinds,
// which can be added and removed while it runs, as an application centre would.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/term"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/informer"
)

const usage = `Appstatus shows the state of applications: of all objects that have the label
app.kubernetes.io/part-of, or another. On a terminal, the tables stay in place and
change; elsewhere, each change is a line.

Usage:
  appstatus [flags] [KIND...]

A KIND is pods, deployments.apps, or widgets.v1.example.com, which may not exist
yet. Without any, it is deployments.apps, statefulsets.apps, services and pods.

Examples:
  appstatus                                 the local "evenkeel serve", or $KUBECONFIG
  appstatus --label app --namespace shop pods deployments.apps
  appstatus --crds                          and all custom kinds, as they come and go

While it runs, type:
  add KIND, remove KIND    to have another kind, or one less
  kinds                    to see how each is
  tables                   to see all tables now
  quit

Flags:
`

// options are what the command line says.
type options struct {
	config    client.ConfigOptions
	namespace string
	label     string
	crds      bool
	kinds     []string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "appstatus:", err)
		os.Exit(1)
	}
}

// run returns when ctx ends or "quit" is typed, which is no error, or when the
// cluster is not there.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := show(ctx, o, stdin, stdout); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// show shows tables until it is told to end.
func show(ctx context.Context, o options, stdin io.Reader, stdout io.Writer) error {
	conn, err := connect(ctx, o.config)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, nextStep)
	}
	set := informer.NewSet(conn, informer.Config{})
	defer set.Shutdown()
	set.Start()
	c := newCentre(conn, set, o, newScreen(stdout, isTerminal(stdout)))
	for _, kind := range o.kinds {
		if err := c.add(ctx, kind); err != nil {
			return err
		}
	}
	if o.crds {
		c.followDefinitions()
	}
	return c.run(ctx, stdin)
}

// connect returns a connection to a server that answers.
func connect(ctx context.Context, o client.ConfigOptions) (*client.Conn, error) {
	cfg, err := client.LoadConfig(o)
	if err != nil {
		return nil, err
	}
	conn, err := client.Connect(cfg)
	if err != nil {
		return nil, err
	}
	_, err = conn.Get(ctx, "/version")
	return conn, err
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("appstatus", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&o.config.Kubeconfig, "kubeconfig", "", "the kubeconfig `file` (default: as kubectl finds it, or the local evenkeel's)")
	flags.StringVar(&o.config.Context, "context", "", "the `context` of the kubeconfig")
	flags.StringVar(&o.namespace, "namespace", "", "look at one `namespace` and not at all")
	flags.StringVar(&o.label, "label", "app.kubernetes.io/part-of", "the `label` whose value is an object's application")
	flags.BoolVar(&o.crds, "crds", false, "have all custom kinds too, as they come and go")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.kinds = flags.Args()
	for _, kind := range o.kinds {
		if strings.HasPrefix(kind, "-") {
			return o, fmt.Errorf("%q is no kind; flags go first. appstatus --help tells more", kind)
		}
	}
	if len(o.kinds) == 0 {
		o.kinds = []string{"deployments.apps", "statefulsets.apps", "services", "pods"}
	}
	return o, nil
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// nextStep is what to do if there is no server.
const nextStep = `Start one with "make run", or name a cluster with --kubeconfig or $KUBECONFIG.`
