//go:build linux

package main

import (
	"bytes"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
)

func TestRowsAreChosenByName(t *testing.T) {
	b := &bench{sizes: (&options{}).sizes()}
	b.choose(regexp.MustCompile("10,000 Pods|99th"))
	var names []string
	for _, s := range b.scenes {
		names = append(names, s.name)
	}
	want := "latency at 500 changes a second; latency at 2,000 changes a second; memory with 10,000 Pods"
	if got := strings.Join(names, "; "); got != want || len(b.rows) != 6 {
		t.Errorf("%d rows of %s", len(b.rows), got)
	}
}

func TestRowsHaveNamesOfTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range (&options{}).sizes().scenes() {
		for _, r := range s.rows {
			if seen[r.Name] {
				t.Errorf("two rows are called %q", r.Name)
			}
			seen[r.Name] = true
		}
	}
}

func TestFlags(t *testing.T) {
	if o, err := parse([]string{"-run", "memory", "-quick", "-rounds", "5"}); err != nil || o.run != "memory" || !o.quick || o.rounds != 5 {
		t.Errorf("got %+v, %v", o, err)
	}
	for _, args := range []string{"-rounds 0", "extra"} {
		if _, err := parse(strings.Fields(args)); err == nil {
			t.Errorf("%s was taken", args)
		}
	}
}

func TestStampsGrow(t *testing.T) {
	var last atomic.Int64
	for before := int64(0); before < 100; before++ {
		a, b := stamp(&last), stamp(&last)
		if b <= a {
			t.Fatalf("%d comes after %d", b, a)
		}
	}
}

func TestNameInAnEvent(t *testing.T) {
	event := `{"type":"ADDED","object":{"kind":"Deployment","metadata":{"name":"foo-00000012","ownerReferences":[{"name":"foo-00000013"}]}}}`
	if got := nameIn([]byte(event)); got != "foo-00000012" {
		t.Errorf("got %q", got)
	}
}

// TestAllRows runs everything with little load: every row has a figure of both sides.
func TestAllRows(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds three programs")
	}
	var say bytes.Buffer
	b := &bench{dir: t.TempDir(), sizes: (&options{quick: true}).sizes(), rounds: 1, say: &say}
	b.choose(regexp.MustCompile("."))
	if _, err := b.build(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.run(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, say.String())
	}
	for _, r := range b.rows {
		if r.Ratio() == 0 {
			t.Errorf("%s: ours %v, peer %v", r.Name, r.Ours, r.Peer)
		}
	}
}
