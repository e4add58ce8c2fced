package main

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A new version of k8s.io/api needs its facts: run go generate ./server/openapi.
func TestFactsAreCurrent(t *testing.T) {
	want, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../facts.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("facts.txt is not what the sources say (-want +got):\n%s", diff)
	}
}
