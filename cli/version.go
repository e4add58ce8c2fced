package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/version"
)

// buildVersion names a release; the Makefile sets it:
//
//	go build -ldflags "-X github.com/even-keel/evenkeel/cli.buildVersion=v1.2.3"
var buildVersion string

// unknown stands for what the binary does not record.
const unknown = "unknown"

// versionInfo is what a Kubernetes API server answers at /version, and what
// Evenkeel adds to it.
type versionInfo struct {
	version.Info
	Evenkeel   string `json:"evenkeelVersion"`
	Kubernetes string `json:"kubernetesVersion"`
}

func newVersion() *cobra.Command {
	output := newChoice("text", "text", "json")
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the versions of evenkeel, Kubernetes and Go in this binary",
		Long: `Version shows what this binary is made of: its own version, the Kubernetes
release whose types it is built with, and the Go release that compiled it.
The JSON has the fields of a Kubernetes API server's /version, and two more.`,
		Example: `  evenkeel version
  evenkeel version -o json`,
		Args: noArgs,
		RunE: run(func(cmd *cobra.Command) error {
			return writeVersion(cmd.OutOrStdout(), readVersion(), output.value)
		}),
	}
	cmd.Flags().VarP(&output, "output", "o", "how to show it")
	return cmd
}

func writeVersion(w io.Writer, v versionInfo, output string) error {
	if output == "json" {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	}
	_, err := fmt.Fprintf(w, "evenkeel    %s\nkubernetes  %s (types)\ngo          %s\nplatform    %s\n",
		v.Evenkeel, v.Kubernetes, v.GoVersion, v.Platform)
	return err
}

// readVersion tells what the running binary is made of.
func readVersion() versionInfo {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	v := versionOf(info, buildVersion)
	v.GoVersion, v.Compiler, v.Platform = runtime.Version(), runtime.Compiler, runtime.GOOS+"/"+runtime.GOARCH
	return v
}

// versionOf reads a binary's build information; override, if not empty, is its
// version.
func versionOf(info *debug.BuildInfo, override string) versionInfo {
	v := versionInfo{Evenkeel: override, Kubernetes: kubernetesVersion(info)}
	if v.Evenkeel == "" {
		v.Evenkeel = strings.Trim(info.Main.Version, "()") // "(devel)" in a working tree
	}
	if v.Evenkeel == "" {
		v.Evenkeel = unknown
	}
	v.Major, v.Minor, v.GitVersion = gitVersion(v.Kubernetes, v.Evenkeel)
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.GitCommit = s.Value
		case "vcs.time":
			v.BuildDate = s.Value
		case "vcs.modified":
			v.GitTreeState = map[string]string{"true": "dirty", "false": "clean"}[s.Value]
		}
	}
	return v
}

// kubernetesVersion is the release that the module k8s.io/apimachinery was cut
// from: v0.37.2 comes from Kubernetes 1.37.2.
func kubernetesVersion(info *debug.BuildInfo) string {
	for _, dep := range info.Deps {
		if dep.Path != "k8s.io/apimachinery" {
			continue
		}
		if dep.Replace != nil {
			dep = dep.Replace
		}
		if rest, ok := strings.CutPrefix(dep.Version, "v0."); ok {
			return "1." + rest
		}
	}
	return unknown
}

// gitVersion is the Kubernetes version with ours as semantic-version build
// metadata, for clients that compare it: v1.37.2+evenkeel.0.1.0.
func gitVersion(kubernetes, evenkeel string) (major, minor, full string) {
	numbers := strings.SplitN(kubernetes, ".", 3)
	if len(numbers) < 3 {
		return "", "", ""
	}
	build := strings.ReplaceAll(strings.TrimPrefix(evenkeel, "v"), "+", ".")
	return numbers[0], numbers[1], "v" + kubernetes + "+evenkeel." + build
}
