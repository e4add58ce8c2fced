package main

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// state is how an object is.
type state struct {
	Ready bool
	// Text says more, in a few words.
	Text string
}

func (s state) word() string {
	if s.Ready {
		return "yes"
	}
	return "no"
}

// stateOf reads the state of an object of any kind, from what kinds have agreed on:
// how many replicas are ready, conditions, a phase. One that has none of these is
// ready, since it is there.
func stateOf(o *unstructured.Unstructured) state {
	if o.GetDeletionTimestamp() != nil {
		return state{false, "terminating"}
	}
	if seen, ok := integer(o, "status", "observedGeneration"); ok && seen < o.GetGeneration() {
		return state{false, "changed, and not yet looked at"}
	}
	for _, read := range []func(*unstructured.Unstructured) (state, bool){byFailure, byReplicas, byPhaseEnd, byCondition, byPhase} {
		if s, ok := read(o); ok {
			return s
		}
	}
	return state{true, "exists"}
}

// replicaFields are where kinds say how many there should be, and are ready.
var replicaFields = []struct{ want, ready []string }{
	{[]string{"spec", "replicas"}, []string{"status", "readyReplicas"}},
	{[]string{"status", "desiredNumberScheduled"}, []string{"status", "numberReady"}},
}

func byReplicas(o *unstructured.Unstructured) (state, bool) {
	for _, f := range replicaFields {
		want, ok := integer(o, f.want...)
		if !ok {
			continue
		}
		ready, _ := integer(o, f.ready...) // left out if it is zero
		return state{ready >= want, fmt.Sprintf("%d/%d ready", ready, want)}, true
	}
	return state{}, false
}

// byFailure finds conditions that mean that nothing will come of it.
func byFailure(o *unstructured.Unstructured) (state, bool) {
	for _, name := range []string{"Failed", "Stalled", "ReplicaFailure"} {
		if c, ok := condition(o, name); ok && c.status == "True" {
			return state{false, c.text()}, true
		}
	}
	return state{}, false
}

func byCondition(o *unstructured.Unstructured) (state, bool) {
	for _, name := range []string{"Ready", "Available", "Complete", "Established", "Healthy"} {
		if c, ok := condition(o, name); ok {
			return state{c.status == "True", c.text()}, true
		}
	}
	return state{}, false
}

// byPhaseEnd finds phases after which conditions say nothing of interest.
func byPhaseEnd(o *unstructured.Unstructured) (state, bool) {
	phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
	return state{phase == "Succeeded", phase}, phase == "Succeeded" || phase == "Failed"
}

func byPhase(o *unstructured.Unstructured) (state, bool) {
	phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
	good := false
	switch phase {
	case "Running", "Active", "Bound", "Available", "Ready":
		good = true
	}
	return state{good, phase}, phase != ""
}

// cond is a condition of a status.
type cond struct{ name, status, reason string }

// text is the condition in words: its name if it is as it should be.
func (c cond) text() string {
	if c.reason != "" && c.status != "True" {
		return c.reason
	}
	if c.status == "True" {
		return c.name
	}
	return "not " + strings.ToLower(c.name)
}

func condition(o *unstructured.Unstructured, name string) (cond, bool) {
	all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, one := range all {
		m, ok := one.(map[string]any)
		if !ok || m["type"] != name {
			continue
		}
		status, _ := m["status"].(string)
		reason, _ := m["reason"].(string)
		return cond{name, status, reason}, true
	}
	return cond{}, false
}

func integer(o *unstructured.Unstructured, path ...string) (int64, bool) {
	n, ok, err := unstructured.NestedInt64(o.Object, path...)
	return n, ok && err == nil
}
