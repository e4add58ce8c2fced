package main

import (
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// build compiles both binaries side by side, as `make build` does.
func build(t *testing.T) (evenkeel string) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("go", "build", "-o", dir+string(filepath.Separator), ".", "../evenkeel")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return filepath.Join(dir, "evenkeel")
}

// pinned is the kubectl that the root go.mod is pinned to.
func pinned(t *testing.T) (minor, patch string) {
	t.Helper()
	gomod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`k8s\.io/kubectl v0\.(\d+)\.(\d+)`).FindSubmatch(gomod)
	if m == nil {
		t.Fatal("the root go.mod does not require k8s.io/kubectl")
	}
	return string(m[1]), string(m[2])
}

func TestEvenkeelKubectl(t *testing.T) {
	evenkeel := build(t)
	run := func(args ...string) (stdout, stderr string, code int) {
		var out, errs strings.Builder
		cmd := exec.Command(evenkeel, append([]string{"kubectl"}, args...)...)
		cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "XDG_DATA_HOME=", "KUBECONFIG=", "LC_ALL=C")
		cmd.Stdout, cmd.Stderr = &out, &errs
		err := cmd.Run()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return out.String(), errs.String(), exit.ExitCode()
		}
		if err != nil {
			t.Fatal(err)
		}
		return out.String(), errs.String(), 0
	}

	t.Run("is not in the server's binary", func(t *testing.T) {
		info, err := buildinfo.ReadFile(evenkeel)
		if err != nil {
			t.Fatal(err)
		}
		for _, dep := range info.Deps {
			if dep.Path == "k8s.io/kubectl" {
				t.Errorf("evenkeel is built with %s %s: see docs/adr/0009-kubectl-inside.md", dep.Path, dep.Version)
			}
		}
	})

	t.Run("knows its version", func(t *testing.T) {
		minor, patch := pinned(t)
		want := "v1." + minor + "." + patch + "+evenkeel"
		stdout, stderr, code := run("version", "--client")
		if code != 0 || !strings.HasPrefix(stdout, "Client Version: "+want+"\n") {
			t.Errorf("exit code %d, says:\n%s%s", code, stdout, stderr)
		}
		stdout, _, _ = run("version", "--client", "-o", "json")
		var got struct {
			ClientVersion struct{ Major, Minor, GitVersion string }
		}
		if err := json.Unmarshal([]byte(stdout), &got); err != nil {
			t.Fatalf("%v in:\n%s", err, stdout)
		}
		if v := got.ClientVersion; v.Major != "1" || v.Minor != minor || v.GitVersion != want {
			t.Errorf("says:\n%s", stdout)
		}
	})

	t.Run("works without a server where kubectl does", func(t *testing.T) {
		stdout, stderr, code := run("create", "deployment", "web", "--image=nginx", "--dry-run=client", "-o", "name")
		if stdout != "deployment.apps/web\n" || code != 0 {
			t.Errorf("exit code %d, says:\n%s%s", code, stdout, stderr)
		}
	})

	t.Run("tells what went wrong once, with kubectl's exit code", func(t *testing.T) {
		for args, want := range map[string]string{
			"gte pods":   "error: unknown command \"gte\" for \"kubectl\"\n\nDid you mean this?\n\tget\n",
			"get --nope": "error: unknown flag: --nope\nSee 'kubectl get --help' for usage.\n",
		} {
			stdout, stderr, code := run(strings.Fields(args)...)
			if stdout != "" || stderr != want || code != 1 {
				t.Errorf("kubectl %s: exit code %d, says:\n%s%s", args, code, stdout, stderr)
			}
		}
	})

	t.Run("logs as much as it is asked to", func(t *testing.T) {
		_, stderr, code := run("-v=6", "--server=http://127.0.0.1:1", "get", "--raw=/version")
		if !strings.Contains(stderr, "127.0.0.1:1/version") || code != 1 {
			t.Errorf("exit code %d, says:\n%s", code, stderr)
		}
	})
}
