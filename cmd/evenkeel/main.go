// Evenkeel is the machinery of Kubernetes controllers in one binary.
// Run `evenkeel --help` for its commands.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/even-keel/evenkeel/cli"
	"github.com/even-keel/evenkeel/cli/kubectl/language"
)

func main() {
	os.Exit(run())
}

func run() int {
	if language.Named(os.Args[0]) {
		cli.RunKubectl(os.Args[1:])
		return 0
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal asks for an orderly end, a second one ends at once.
	context.AfterFunc(ctx, stop)
	return cli.Execute(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}
