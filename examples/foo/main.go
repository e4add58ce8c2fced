// Foo is the sample controller of Kubernetes on this library: for each Foo there is
// a Deployment with as many replicas as the Foo says.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/manager"
)

const usage = `Foo makes a Deployment of each Foo (foos.samplecontroller.k8s.io), and keeps it
as the Foo says.

Usage:
  foo [flags]

Examples:
  foo --install                  the local "evenkeel serve", or $KUBECONFIG
  foo --listen :8080             with health checks, metrics and /debug/evenkeel
  foo --leader default/foo       as one of several, of which one works

Flags:
`

// definition is the CRD of Foo.
//
//go:embed manifests/crd.yaml
var definition []byte

// nextStep is what to do if there is no server.
const nextStep = `Start one with "make run", or name a cluster with --kubeconfig or $KUBECONFIG.`

func main() {
	if err := run(manager.Signals(), os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "foo:", err)
		os.Exit(1)
	}
}

// run returns when ctx ends, which is no error, or when the cluster is not there.
func run(ctx context.Context, args []string, stderr io.Writer) error {
	o := manager.Options{Logger: slog.New(slog.NewTextHandler(stderr, nil))}
	install, err := parse(args, &o, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	mgr, err := manager.New(o)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, nextStep)
	}
	if _, err := mgr.Conn().Get(ctx, "/version"); err != nil {
		return fmt.Errorf("%w\n%s", err, nextStep)
	}
	if install {
		if err := apply(ctx, mgr.Conn(), definition); err != nil {
			return fmt.Errorf("install the definition of Foo: %w", err)
		}
	}
	mgr.Add(newController(mgr))
	return mgr.Run(ctx)
}

func parse(args []string, o *manager.Options, stderr io.Writer) (install bool, err error) {
	flags := flag.NewFlagSet("foo", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, usage)
		flags.PrintDefaults()
	}
	o.AddFlags(flags)
	flags.BoolVar(&install, "install", false, "apply the definition of Foo first")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	if flags.NArg() > 0 {
		return false, fmt.Errorf("%q: it takes no arguments. foo --help tells more", flags.Args())
	}
	return install, nil
}

// apply applies a manifest. The controller begins once the kind is served.
func apply(ctx context.Context, conn *client.Conn, manifest []byte) error {
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(manifest, obj); err != nil {
		return err
	}
	objects := client.Of[*unstructured.Unstructured](conn, client.Kind(obj.GroupVersionKind()))
	_, err := objects.Apply(ctx, obj, client.Force())
	return err
}
