package controllers

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestChoose(t *testing.T) {
	known := []string{"a", "b", "c"}
	for list, want := range map[string]string{
		"*":      "a b c",
		"*,-b":   "a c",
		"-b,*":   "a c",
		"b":      "b",
		"c, a":   "a c",
		"none":   "",
		"a,-a":   "",
		"a,none": "!",
		"d":      "!",
		"*,-d":   "!",
		"-*":     "!",
		"":       "!",
	} {
		got, err := Choose(strings.Split(list, ","), known)
		switch {
		case want == "!":
			if !errors.Is(err, ErrUnknown) {
				t.Errorf("%q: %v, %v; want %v", list, got, err, ErrUnknown)
			}
		case err != nil || strings.Join(got, " ") != want:
			t.Errorf("%q: %v, %v; want %s", list, got, err, want)
		}
	}
}

func TestNamesAreSorted(t *testing.T) {
	if names := Names(); !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("%v", names)
	}
}
