//go:build linux

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/even-keel/evenkeel/bench/apiserver/figure"
)

func TestFlags(t *testing.T) {
	if o, err := parse([]string{"-run", "idle", "-quick", "-rounds", "5"}); err != nil || o.run != "idle" || !o.quick || o.rounds != 5 {
		t.Errorf("got %+v, %v", o, err)
	}
	for _, args := range []string{"-rounds 0", "extra"} {
		if _, err := parse(strings.Fields(args)); err == nil {
			t.Errorf("%s was taken", args)
		}
	}
}

// play plays scenes of a size, and returns what was measured.
func play(t *testing.T, z sizes, scenes string) *bench {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds a program")
	}
	var say bytes.Buffer
	b := &bench{dir: t.TempDir(), sizes: z, rounds: 1, say: &say}
	if _, err := b.build(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.run(t.Context(), regexp.MustCompile(scenes)); err != nil {
		t.Fatalf("%v\n%s", err, say.String())
	}
	t.Log(say.String())
	return b
}

// All scenes run with little load: each row has a figure, and the page has them all.
func TestAllScenes(t *testing.T) {
	b := play(t, (&options{quick: true}).sizes(), ".")
	if len(b.figures) != 3+len(kinds) || len(b.steps) != 6 {
		t.Errorf("%d figures and %d steps", len(b.figures), len(b.steps))
	}
	file := filepath.Join(t.TempDir(), "page.md")
	if err := b.page(file, b.tables()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range append(append([]figure.Row(nil), b.figures...), b.steps...) {
		if len(r.Ours) != 1 || r.Ours[0].Value <= 0 {
			t.Errorf("%s: %v", r.Name, r.Ours)
		}
		if !strings.Contains(string(text), r.Name) {
			t.Errorf("the page does not tell of %q", r.Name)
		}
	}
}

// A large cluster comes to the state that it should after every step of its life. The
// whole size, 10,000 pods, takes minutes on a machine that others use too; set
// EVENKEEL_FULL=1 for it.
func TestLargeCluster(t *testing.T) {
	z := sizes{nodes: 500, deployments: 10, replicas: 50, drained: 50, resting: time.Second}
	if os.Getenv("EVENKEEL_FULL") != "" {
		z.deployments, z.replicas = 100, 100
	}
	if b := play(t, z, "cluster"); len(b.steps) != 5 {
		t.Errorf("%d steps were taken", len(b.steps))
	}
}
