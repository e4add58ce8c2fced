package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

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

	t.Run("knows its version", func(t *testing.T) {
		want := "v" + pinned(t) + "+evenkeel"
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
		if v := got.ClientVersion; v.Major != "1" || v.Minor == "" || v.GitVersion != want {
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

	t.Run("is what a link called kubectl runs", func(t *testing.T) {
		link := filepath.Join(t.TempDir(), "kubectl")
		if err := os.Symlink(evenkeel, link); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(link, "create", "namespace", "x", "--dry-run=client", "-o", "name").CombinedOutput()
		if string(out) != "namespace/x\n" || err != nil {
			t.Errorf("%v:\n%s", err, out)
		}
	})

	t.Run("speaks the user's language, and nobody else waits for it", func(t *testing.T) {
		cmd := exec.Command(evenkeel, "kubectl", "run", "--help")
		cmd.Env = append(os.Environ(), "LC_ALL=zh_CN.UTF-8")
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.ContainsFunc(string(out), func(r rune) bool { return r > 0x4e00 && r < 0x9fff }) {
			t.Errorf("%v:\n%s", err, out)
		}
	})

	t.Run("logs as much as it is asked to", func(t *testing.T) {
		_, stderr, code := run("-v=6", "--server=http://127.0.0.1:1", "get", "--raw=/version")
		if !strings.Contains(stderr, "127.0.0.1:1/version") || code != 1 {
			t.Errorf("exit code %d, says:\n%s", code, stderr)
		}
	})
}
