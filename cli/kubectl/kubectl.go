// Package kubectl is the real kubectl, inside evenkeel.
package kubectl

import (
	"flag"
	"os"

	// Credential plugins that a kubeconfig may name.
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/klog/v2"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"

	_ "github.com/even-keel/evenkeel/cli/kubectl/language"
)

// Main runs kubectl with arguments on the streams of the process, and exits if it
// fails. It does what kubectl's own main does, without k8s.io/component-base/cli,
// which brings OpenTelemetry along.
func Main(args []string) {
	setVersion()
	os.Args = append([]string{"kubectl"}, args...) // also the name it tells servers
	logging := flag.NewFlagSet("logging", flag.ContinueOnError)
	klog.InitFlags(logging)
	_ = logging.Set("v", cmd.GetLogVerbosity(os.Args)) // for what is logged before flags are parsed

	command := cmd.NewDefaultKubectlCommand()
	command.SilenceErrors = true // CheckErr prints them
	for _, name := range []string{"v", "vmodule"} {
		command.PersistentFlags().AddGoFlag(logging.Lookup(name))
	}
	util.CheckErr(command.Execute()) // exits if there is one
}
