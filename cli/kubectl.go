package cli

import (
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/even-keel/evenkeel/cli/kubectl"
)

func newKubectl() *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl [command]",
		Short: "Run kubectl, against the local server if there is one",
		Long: `Kubectl runs the real kubectl, with the arguments given and its exit code. A link
to evenkeel that is called kubectl does the same.

Where neither --kubeconfig nor $KUBECONFIG says otherwise, and a server has run
on this machine with the default data directory, it talks to that server: with
the file admin.kubeconfig that the server wrote there. Else it finds its
configuration as kubectl does.`,
		Example: `  evenkeel kubectl get namespaces
  evenkeel kubectl apply -f deployment.yaml
  evenkeel kubectl --help`,
		DisableFlagParsing: true, // they are kubectl's
		RunE: func(_ *cobra.Command, args []string) error {
			RunKubectl(args)
			return nil
		},
	}
}

// RunKubectl runs kubectl on the streams of the process, and exits if it fails.
func RunKubectl(args []string) {
	signal.Reset(os.Interrupt, syscall.SIGTERM) // kubectl has its own ways to end
	if file := localKubeconfig(args); file != "" {
		_ = os.Setenv("KUBECONFIG", file)
	}
	kubectl.Main(args)
}

// localKubeconfig is the local server's, if there is one and nothing else is asked
// for.
func localKubeconfig(args []string) string {
	if os.Getenv("KUBECONFIG") != "" || namesKubeconfig(args) {
		return ""
	}
	dir, err := defaultDataDir(os.Getenv)
	if err != nil {
		return "" // kubectl may do without
	}
	file := filepath.Join(dir, adminKubeconfig)
	if _, err := os.Stat(file); err != nil {
		return ""
	}
	return file
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
