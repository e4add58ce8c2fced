package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/version"
)

// build compiles the binary as a user would, with a version given.
func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "evenkeel")
	cmd := exec.Command("go", "build", "-o", binary,
		"-ldflags", "-X github.com/even-keel/evenkeel/cli.buildVersion=v9.8.7", ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return binary
}

// pinned is the Kubernetes release that the root go.mod is pinned to.
func pinned(t *testing.T) string {
	t.Helper()
	gomod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`k8s\.io/apimachinery v0\.(\S+)`).FindSubmatch(gomod)
	if m == nil {
		t.Fatal("the root go.mod does not require k8s.io/apimachinery")
	}
	return "1." + string(m[1])
}

func TestBinary(t *testing.T) {
	evenkeel := build(t)

	t.Run("tells which Kubernetes it is built with", func(t *testing.T) {
		out, err := exec.Command(evenkeel, "version", "-o", "json").Output()
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			version.Info
			Evenkeel   string `json:"evenkeelVersion"`
			Kubernetes string `json:"kubernetesVersion"`
		}
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%v in:\n%s", err, out)
		}
		want := pinned(t)
		if got.Kubernetes != want || got.GitVersion != "v"+want+"+evenkeel.9.8.7" || got.Major != "1" || got.Minor == "" {
			t.Errorf("built with Kubernetes %s, but says:\n%s", want, out)
		}
		if got.Evenkeel != "v9.8.7" {
			t.Errorf("built as v9.8.7, but says %q", got.Evenkeel)
		}
	})

	t.Run("exits with the code of the command", func(t *testing.T) {
		for args, want := range map[string]int{"version": 0, "serve --listen nowhere": 1, "verison": 2} {
			out, err := exec.Command(evenkeel, strings.Fields(args)...).CombinedOutput()
			if got := exitCode(t, err); got != want {
				t.Errorf("evenkeel %s: exit code %d, want %d", args, got, want)
			}
			if want != 0 && !strings.HasPrefix(string(out), "evenkeel: ") {
				t.Errorf("evenkeel %s: says %q", args, out)
			}
		}
	})
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	if err == nil {
		return 0
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		t.Fatal(err)
	}
	return exit.ExitCode()
}
