package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// kubectlProgram is kubectl, built from cmd/evenkeel-kubectl. It is not linked
// into evenkeel: docs/adr/0009-kubectl-inside.md.
const kubectlProgram = "evenkeel-kubectl"

func newKubectl() *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl [command]",
		Short: "Run kubectl, against the local server if there is one",
		Long: `Kubectl runs the real kubectl, with the arguments given and its exit code.

Where neither --kubeconfig nor $KUBECONFIG says otherwise, and a server has run
on this machine with the default data directory, it talks to that server: with
the file admin.kubeconfig that the server wrote there. Else it finds its
configuration as kubectl does.`,
		Example: `  evenkeel kubectl get namespaces
  evenkeel kubectl apply -f deployment.yaml
  evenkeel kubectl --help`,
		DisableFlagParsing: true, // they are kubectl's
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := kubectl(cmd, args); err != nil {
				return failure{err}
			}
			return nil
		},
	}
}

func kubectl(cmd *cobra.Command, args []string) error {
	program, err := findKubectl()
	if err != nil {
		return err
	}
	child := exec.CommandContext(contextOf(cmd), program)
	child.Args = append([]string{"kubectl"}, args...) // the name it tells servers
	child.Env = kubectlEnviron(args)
	child.Stdin, child.Stdout, child.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	child.Cancel = func() error { return child.Process.Signal(syscall.SIGTERM) }
	err = child.Run()
	if state := child.ProcessState; state != nil && state.Success() {
		return nil // also where it ended well because it was asked to end
	}
	return exitOf(err)
}

// contextOf is never nil.
func contextOf(cmd *cobra.Command) context.Context {
	if ctx := cmd.Context(); ctx != nil {
		return ctx
	}
	return context.Background()
}

// exitOf turns the end of a child into our own: it has told its user what went
// wrong, so only the code is left.
func exitOf(err error) error {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return err
	}
	if code := exit.ExitCode(); code > 0 {
		return exitCode(code)
	}
	return exitCode(ExitFailure) // a signal ended it
}

// findKubectl looks beside our own binary, then in $PATH.
func findKubectl() (string, error) {
	name := kubectlProgram
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if self, err := os.Executable(); err == nil {
		for _, path := range []string{self, resolved(self)} {
			beside := filepath.Join(filepath.Dir(path), name)
			if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
				return beside, nil
			}
		}
	}
	if path, err := exec.LookPath(kubectlProgram); err == nil {
		return path, nil
	}
	return "", nextStep{
		error: fmt.Errorf("kubectl: %s is neither beside evenkeel nor in $PATH", kubectlProgram),
		next:  "`make build` makes both; `go install github.com/even-keel/evenkeel/cmd/" + kubectlProgram + "@latest` installs it.",
	}
}

// resolved follows symbolic links, as a package manager makes them.
func resolved(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	return path
}

// kubectlEnviron is the environment for kubectl: with the local server's
// kubeconfig, if there is one and nothing else is asked for.
func kubectlEnviron(args []string) []string {
	environ := os.Environ()
	if os.Getenv("KUBECONFIG") != "" || namesKubeconfig(args) {
		return environ
	}
	dir, err := defaultDataDir(os.Getenv)
	if err != nil {
		return environ // kubectl may do without
	}
	file := filepath.Join(dir, adminKubeconfig)
	if _, err := os.Stat(file); err != nil {
		return environ
	}
	return append(environ, "KUBECONFIG="+file)
}

func namesKubeconfig(args []string) bool {
	for _, a := range args {
		if a == "--" {
			return false
		}
		if a == "--kubeconfig" || strings.HasPrefix(a, "--kubeconfig=") {
			return true
		}
	}
	return false
}
