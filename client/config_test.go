package client_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/even-keel/evenkeel/client"
)

// kubeconfig is the file of a server.
const kubeconfig = `{apiVersion: v1, kind: Config, current-context: evenkeel,
contexts: [{name: evenkeel, context: {cluster: evenkeel, user: admin}}], users: [{name: admin, user: {token: secret}}],
clusters: [{name: evenkeel, cluster: {server: "https://%s"}}]}`

// writeConfig writes a kubeconfig for a server at https://<host>.
func writeConfig(t *testing.T, path, host string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, fmt.Appendf(nil, kubeconfig, host), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestConfigurationsAreFoundInOrder(t *testing.T) {
	const (
		named, env, home, local, data = "named", "env", ".kube/config", ".local/share/evenkeel/admin.kubeconfig", "data/evenkeel/admin.kubeconfig"
	)
	for name, test := range map[string]struct {
		files []string
		env   map[string]string
		o     client.ConfigOptions
		want  string
	}{
		"a file that is named":     {files: []string{named, env, home, local}, env: map[string]string{"KUBECONFIG": env}, o: client.ConfigOptions{Kubeconfig: named}, want: named},
		"KUBECONFIG":               {files: []string{env, home, local}, env: map[string]string{"KUBECONFIG": env}, want: env},
		"the user's":               {files: []string{home, local}, want: home},
		"the local server's":       {files: []string{local}, want: local},
		"a data home":              {files: []string{local, data}, env: map[string]string{"XDG_DATA_HOME": "data"}, want: data},
		"a context":                {files: []string{home}, o: client.ConfigOptions{Context: "evenkeel"}, want: home},
		"a context that is not":    {files: []string{home}, o: client.ConfigOptions{Context: "other"}, want: "!other"},
		"a named one that is not":  {files: []string{home}, o: client.ConfigOptions{Kubeconfig: named}, want: "!named"},
		"KUBECONFIG, but no files": {files: []string{home}, env: map[string]string{"KUBECONFIG": env}, want: "!no cluster is configured"},
		"nothing":                  {want: "!no cluster is configured"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			at := func(file string) string {
				if file == "" {
					return ""
				}
				return filepath.Join(dir, file)
			}
			t.Setenv("HOME", dir)
			for _, v := range []string{"KUBECONFIG", "XDG_DATA_HOME"} {
				t.Setenv(v, at(test.env[v]))
			}
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			for _, f := range test.files {
				writeConfig(t, at(f), strings.ReplaceAll(f, "/", "-"))
			}
			test.o.Kubeconfig = at(test.o.Kubeconfig)
			cfg, err := client.LoadConfig(test.o)
			if problem, fails := strings.CutPrefix(test.want, "!"); fails {
				if err == nil || !strings.Contains(err.Error(), problem) {
					t.Errorf("the error is %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if want := "https://" + strings.ReplaceAll(test.want, "/", "-"); cfg.Host != want {
				t.Errorf("it is %s, not %s", cfg.Host, want)
			}
		})
	}
}

func TestABrokenFileIsNotPassedOver(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("KUBECONFIG", "")
	t.Setenv("XDG_DATA_HOME", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	writeConfig(t, filepath.Join(dir, ".local/share/evenkeel/admin.kubeconfig"), "local")
	if err := os.MkdirAll(filepath.Join(dir, ".kube"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".kube/config"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if cfg, err := client.LoadConfig(client.ConfigOptions{}); err == nil || errors.Is(err, client.ErrNoConfig) {
		t.Errorf("%v, %v", cfg, err)
	}
}

// TestTheFileOfTheServerWorks, and the certificate in it.
func TestTheFileOfTheServerWorks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "admin.kubeconfig")
	if err := theServer.WriteKubeconfig(path); err != nil {
		t.Fatal(err)
	}
	cfg, err := client.LoadConfig(client.ConfigOptions{Kubeconfig: path})
	if err != nil {
		t.Fatal(err)
	}
	if len(cfg.CertData) == 0 || cfg.BearerToken != "" {
		t.Errorf("it does not identify by a certificate: %v", cfg)
	}
	conn, ns := connectAs(t, cfg)
	if _, err := client.Of[*corev1.ConfigMap](conn).In(ns).Create(t.Context(), configMap("a", nil)); err != nil {
		t.Error(err)
	}
}

// TestExecPluginsAuthenticate runs a plugin as kubeconfigs of clouds name them.
func TestExecPluginsAuthenticate(t *testing.T) {
	cfg := theServer.Config()
	plugin := filepath.Join(t.TempDir(), "plugin")
	script := "#!/bin/sh\necho '" + `{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"` + cfg.BearerToken + `"}}` + "'\n"
	if err := os.WriteFile(plugin, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	cfg.BearerToken = ""
	cfg.ExecProvider = &api.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: plugin, InteractiveMode: api.NeverExecInteractiveMode}
	conn, ns := connectAs(t, cfg)
	if _, err := client.Of[*corev1.ConfigMap](conn).In(ns).Create(t.Context(), configMap("a", nil)); err != nil {
		t.Error(err)
	}
}
