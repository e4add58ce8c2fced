package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func touch(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestKubectlFindsTheLocalServer(t *testing.T) {
	tests := map[string]struct {
		args   []string
		env    map[string]string
		server bool
		want   string // in HOME, if it starts with ./
	}{
		"a server ran here":        {args: []string{"get", "ns"}, server: true, want: "./.local/share/evenkeel/admin.kubeconfig"},
		"no server ran here":       {args: []string{"get", "ns"}, want: ""},
		"a data home":              {env: map[string]string{"XDG_DATA_HOME": "./data"}, server: true, want: "./data/evenkeel/admin.kubeconfig"},
		"the environment says":     {env: map[string]string{"KUBECONFIG": "/mine"}, server: true, want: ""},
		"a flag says":              {args: []string{"--kubeconfig", "/mine", "get"}, server: true, want: ""},
		"a flag says, in one word": {args: []string{"get", "--kubeconfig=/mine"}, server: true, want: ""},
		"a flag of another's":      {args: []string{"exec", "p", "--", "x", "--kubeconfig=/y"}, server: true, want: "./.local/share/evenkeel/admin.kubeconfig"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			t.Setenv("HOME", home)
			t.Setenv("XDG_DATA_HOME", "")
			t.Setenv("KUBECONFIG", "")
			inHome := func(path string) string {
				if rest, ok := strings.CutPrefix(path, "./"); ok {
					return filepath.Join(home, rest)
				}
				return path
			}
			for k, v := range tt.env {
				t.Setenv(k, inHome(v))
			}
			if tt.server {
				dir, err := defaultDataDir(os.Getenv)
				if err != nil {
					t.Fatal(err)
				}
				touch(t, filepath.Join(dir, adminKubeconfig))
			}
			if got := localKubeconfig(tt.args); got != inHome(tt.want) {
				t.Errorf("got %q, want %q", got, inHome(tt.want))
			}
		})
	}
}

func TestHelpOfKubectlIsOurs(t *testing.T) {
	got := evenkeel(t, "help", "kubectl")
	if got.code != ExitOK || !strings.Contains(got.stdout, "admin.kubeconfig") {
		t.Errorf("got %+v", got)
	}
}

func TestDefaultDataDir(t *testing.T) {
	tests := map[string]struct {
		env  map[string]string
		want string
	}{
		"a data home":          {map[string]string{"XDG_DATA_HOME": "/data", "HOME": "/home/x"}, "/data/evenkeel"},
		"a home":               {map[string]string{"HOME": "/home/x"}, "/home/x/.local/share/evenkeel"},
		"a relative data home": {map[string]string{"XDG_DATA_HOME": "data", "HOME": "/home/x"}, "/home/x/.local/share/evenkeel"},
	}
	for name, tt := range tests {
		got, err := defaultDataDir(func(k string) string { return tt.env[k] })
		if got != tt.want || err != nil {
			t.Errorf("%s: %q, %v, want %q", name, got, err, tt.want)
		}
	}
}
