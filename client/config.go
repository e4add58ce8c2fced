package client

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// ConfigOptions say which cluster is meant, where that is not to be found out.
type ConfigOptions struct {
	// Kubeconfig is a file, Context one of its contexts; "" is the current one.
	// With a context, a kubeconfig is needed, and it is not asked whether the
	// program runs in a cluster.
	Kubeconfig, Context string
}

// LoadConfig finds the cluster to talk to. The first that there is counts:
//
//  1. the file that o names,
//  2. the files that $KUBECONFIG names,
//  3. the cluster that the program runs in as a pod,
//  4. ~/.kube/config,
//  5. the server that evenkeel runs on this machine: admin.kubeconfig in
//     $XDG_DATA_HOME/evenkeel, or in ~/.local/share/evenkeel.
//
// One that exists but cannot be used is an error; the next is not tried. If there
// is none, the error is [ErrNoConfig].
func LoadConfig(o ConfigOptions) (*rest.Config, error) {
	if o.Kubeconfig != "" {
		return fromFiles(&clientcmd.ClientConfigLoadingRules{ExplicitPath: o.Kubeconfig}, o.Context)
	}
	if files := filepath.SplitList(os.Getenv(clientcmd.RecommendedConfigPathEnvVar)); len(files) > 0 {
		return fromFiles(&clientcmd.ClientConfigLoadingRules{Precedence: files}, o.Context)
	}
	if o.Context == "" {
		cfg, err := rest.InClusterConfig()
		if !errors.Is(err, rest.ErrNotInCluster) {
			return cfg, err
		}
	}
	for _, file := range homeFiles() {
		if _, err := os.Stat(file); err == nil {
			return fromFiles(&clientcmd.ClientConfigLoadingRules{ExplicitPath: file}, o.Context)
		}
	}
	return nil, fmt.Errorf("%w: there is no $KUBECONFIG, no ~/.kube/config and no local server (evenkeel serve), and this is no pod", ErrNoConfig)
}

func fromFiles(rules *clientcmd.ClientConfigLoadingRules, context string) (*rest.Config, error) {
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: context}).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, fmt.Errorf("%w: %w", ErrNoConfig, err)
	}
	return cfg, err
}

// homeFiles are the kubeconfigs of the user and of the local evenkeel.
func homeFiles() []string {
	home, err := os.UserHomeDir()
	if err != nil {
		home = ""
	}
	var files []string
	if home != "" {
		files = append(files, filepath.Join(home, ".kube", "config"))
	}
	if data := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(data) {
		return append(files, filepath.Join(data, "evenkeel", "admin.kubeconfig"))
	}
	if home != "" {
		files = append(files, filepath.Join(home, ".local", "share", "evenkeel", "admin.kubeconfig"))
	}
	return files
}
