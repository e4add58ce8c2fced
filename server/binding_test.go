package server_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A pod that waited for a node says so no more once it has one.
func TestBindingEndsTheWait(t *testing.T) {
	r := start(t, memoryStore(t), nil)
	r.do("POST", pods, `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
	waiting := r.do("PATCH", pods+"/p/status",
		`{"status":{"nominatedNodeName":"m","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"no room"}]}}`,
		"Content-Type", "application/strategic-merge-patch+json")
	if waiting.code != 200 || waiting.at("status", "nominatedNodeName") != "m" {
		t.Fatalf("%d %s", waiting.code, waiting.body)
	}
	if got := r.do("POST", pods+"/p/binding", `{"metadata":{"name":"p"},"target":{"kind":"Node","name":"n"}}`); got.code != 201 {
		t.Fatalf("%d %s", got.code, got.body)
	}
	bound := r.do("GET", pods+"/p", "")
	conditions, _ := bound.at("status", "conditions").([]any)
	for _, c := range conditions {
		delete(c.(map[string]any), "lastTransitionTime")
	}
	want := []any{map[string]any{"type": "PodScheduled", "status": "True", "lastProbeTime": nil}}
	if diff := cmp.Diff(want, conditions); diff != "" || bound.at("spec", "nodeName") != "n" || bound.at("status", "nominatedNodeName") != nil {
		t.Error(diff, bound.body)
	}
}
