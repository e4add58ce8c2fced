package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fakeKubectl puts a script in $PATH in place of evenkeel-kubectl, and gives
// the user a home of their own. It returns that home.
func fakeKubectl(t *testing.T, script string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the fake is a shell script")
	}
	bin, home := t.TempDir(), t.TempDir()
	if script != "" {
		if err := os.WriteFile(filepath.Join(bin, kubectlProgram), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	t.Setenv("HOME", home)
	t.Setenv("XDG_DATA_HOME", "")
	t.Setenv("KUBECONFIG", "")
	return home
}

func touch(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestKubectlGetsItsArgumentsAndStreams(t *testing.T) {
	fakeKubectl(t, `echo "$@"; cat; echo trouble >&2; exit 7`)
	for _, args := range [][]string{
		{"get", "pods", "-o", "json", "--watch"},
		{"--help"},
		{"version", "--client"},
		{"exec", "p", "--", "sh", "-c", "a b"},
	} {
		var stdout, stderr bytes.Buffer
		code := Execute(t.Context(), append([]string{"kubectl"}, args...), strings.NewReader("typed\n"), &stdout, &stderr)
		got := result{code, stdout.String(), stderr.String()}
		want := result{7, strings.Join(args, " ") + "\ntyped\n", "trouble\n"}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(result{})); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
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
		"the environment says":     {env: map[string]string{"KUBECONFIG": "/mine"}, server: true, want: "/mine"},
		"a flag says":              {args: []string{"--kubeconfig", "/mine", "get"}, server: true, want: ""},
		"a flag says, in one word": {args: []string{"get", "--kubeconfig=/mine"}, server: true, want: ""},
		"a flag of another's":      {args: []string{"exec", "p", "--", "x", "--kubeconfig=/y"}, server: true, want: "./.local/share/evenkeel/admin.kubeconfig"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			home := fakeKubectl(t, `printf '%s' "$KUBECONFIG"`)
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
			got := evenkeel(t, append([]string{"kubectl"}, tt.args...)...)
			if want := (result{stdout: inHome(tt.want)}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestKubectlThatIsNotThere(t *testing.T) {
	fakeKubectl(t, "")
	got := evenkeel(t, "kubectl", "get", "pods")
	want := result{code: ExitFailure, stderr: "evenkeel: kubectl: evenkeel-kubectl is neither beside evenkeel nor in $PATH\n" +
		"`make build` makes both; `go install github.com/even-keel/evenkeel/cmd/evenkeel-kubectl@latest` installs it.\n"}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(result{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestKubectlEndsWhenAskedTo(t *testing.T) {
	for name, tt := range map[string]struct {
		script string
		want   int
	}{
		"in good order": {`trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done`, ExitOK},
		"with a code":   {`trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.05; done`, 3},
	} {
		t.Run(name, func(t *testing.T) {
			fakeKubectl(t, tt.script)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			stdout := &notifying{on: "up", then: cancel}
			code := Execute(ctx, []string{"kubectl", "get", "-w"}, strings.NewReader(""), stdout, stdout)
			if code != tt.want || stdout.text.String() != "up\nbye\n" {
				t.Errorf("exit code %d, said %q", code, stdout.text.String())
			}
		})
	}
}

// notifying calls a function once something was written.
type notifying struct {
	text bytes.Buffer
	on   string
	then func()
}

func (n *notifying) Write(b []byte) (int, error) {
	if strings.Contains(string(b), n.on) {
		n.then()
	}
	return n.text.Write(b)
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
