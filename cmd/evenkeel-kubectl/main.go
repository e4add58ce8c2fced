// Evenkeel-kubectl is kubectl, the real one, as `evenkeel kubectl` runs it.
//
// It is a program of its own because Go initialises every package that is
// linked into a binary, and kubectl's would cost the server a part of its start
// and of its memory: docs/adr/0009-kubectl-inside.md has the numbers.
package main

import (
	"flag"
	"os"

	// Credential plugins that a kubeconfig may name.
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/klog/v2"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

// main does what kubectl's own does, without k8s.io/component-base/cli, which
// brings OpenTelemetry along.
func main() {
	setVersion()
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
