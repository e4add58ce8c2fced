// Package cli is the command line of evenkeel: flags, help, output, exit codes
// and the log. Commands do their work through other packages.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
)

// What Execute returns.
const (
	ExitOK      = 0 // the command did what was asked
	ExitFailure = 1 // it tried, and failed
	ExitUsage   = 2 // it was called wrongly, and did nothing
)

// Execute runs the command that args name and returns the exit code. Results
// go to stdout; logs and errors go to stderr, each error once. Cancelling ctx
// asks a running command to end.
func Execute(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot(&app{stderr: stderr})
	root.SetArgs(append([]string{}, args...)) // never nil, which means os.Args
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	return report(stderr, cmd, err)
}

// app is what the commands of one execution share.
type app struct {
	stderr    io.Writer
	logLevel  choice
	logFormat choice
}

// logger returns the log as the flags want it. It is valid once flags are
// parsed.
func (a *app) logger() *slog.Logger {
	return slog.New(newLogHandler(a.stderr, a.logFormat.value, logLevels[a.logLevel.value], os.Getenv))
}

func newRoot(a *app) *cobra.Command {
	a.logLevel = newChoice("info", "debug", "info", "warn", "error")
	a.logFormat = newChoice("auto", "auto", "text", "json")
	root := &cobra.Command{
		Use:   "evenkeel",
		Short: "The machinery of Kubernetes controllers in one binary",
		Long: `Evenkeel is the machinery of Kubernetes controllers in one binary:
a control plane that speaks the Kubernetes API, and the tools around it.`,
		Example: `  evenkeel serve                    run the control plane
  evenkeel kubectl get namespaces   look into it
  evenkeel version                  what this binary is made of`,
		Version:       readVersion().Evenkeel,
		SilenceErrors: true, // report prints them
		SilenceUsage:  true,
	}
	root.SetVersionTemplate("evenkeel {{.Version}}\n")
	root.Flags().Bool("version", false, "print the version of evenkeel")
	root.PersistentFlags().Var(&a.logLevel, "log-level", "the least level to log")
	root.PersistentFlags().Var(&a.logFormat, "log-format", "how to log; auto is text on a terminal, else json")
	root.AddCommand(newServe(a), newControllers(a), newScheduler(a), newNode(a), newKubectl(), newVersion())
	root.SetHelpCommand(newHelp())
	return root
}

// newHelp replaces cobra's help command, which answers a typo with success.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:     "help [command]",
		Short:   "Show the help of a command",
		Example: "  evenkeel help serve",
		RunE: func(cmd *cobra.Command, args []string) error {
			target, _, err := cmd.Root().Find(args)
			if err != nil {
				return err
			}
			return target.Help()
		},
	}
}

// noArgs is for commands that take flags only.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no arguments, but got %q", cmd.Name(), args[0])
	}
	return nil
}

// run is the RunE of a command: what goes wrong from here on is a failure and
// no longer wrong usage.
func run(f func(*cobra.Command) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		if err := f(cmd); err != nil {
			return failure{err}
		}
		return nil
	}
}

// report prints an error and what to do about it, and picks the exit code.
func report(stderr io.Writer, cmd *cobra.Command, err error) int {
	if err == nil {
		return ExitOK
	}
	if code, ok := errors.AsType[exitCode](err); ok {
		return int(code)
	}
	fmt.Fprintf(stderr, "evenkeel: %s\n", oneBlock(err.Error()))
	if step, ok := errors.AsType[nextStep](err); ok {
		fmt.Fprintln(stderr, step.next)
	}
	if _, ok := errors.AsType[failure](err); ok {
		return ExitFailure
	}
	fmt.Fprintf(stderr, "Run '%s --help' for usage.\n", cmd.CommandPath())
	return ExitUsage
}
