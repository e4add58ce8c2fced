package main

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestStateOf(t *testing.T) {
	for name, test := range map[string]struct {
		object string
		want   state
	}{
		"a deployment on its way":        {`{spec: {replicas: 3}, status: {readyReplicas: 1}}`, state{false, "1/3 ready"}},
		"a deployment that is there":     {`{spec: {replicas: 3}, status: {readyReplicas: 3, conditions: [{type: Available, status: "True"}]}}`, state{true, "3/3 ready"}},
		"a deployment of nothing":        {`{spec: {replicas: 0}}`, state{true, "0/0 ready"}},
		"nobody has looked at it":        {`{metadata: {generation: 2}, spec: {replicas: 1}, status: {observedGeneration: 1, readyReplicas: 1}}`, state{false, "changed, and not yet looked at"}},
		"a deployment without quota":     {`{spec: {replicas: 1}, status: {conditions: [{type: ReplicaFailure, status: "True"}]}}`, state{false, "ReplicaFailure"}},
		"a daemon set":                   {`{status: {desiredNumberScheduled: 2, numberReady: 1}}`, state{false, "1/2 ready"}},
		"a pod that waits":               {`{status: {phase: Pending}}`, state{false, "Pending"}},
		"a pod that is not ready":        {`{status: {phase: Running, conditions: [{type: Ready, status: "False", reason: ContainersNotReady}]}}`, state{false, "ContainersNotReady"}},
		"a pod that is ready":            {`{status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`, state{true, "Ready"}},
		"a pod that has ended":           {`{status: {phase: Succeeded, conditions: [{type: Ready, status: "False", reason: PodCompleted}]}}`, state{true, "Succeeded"}},
		"a pod that failed":              {`{status: {phase: Failed}}`, state{false, "Failed"}},
		"a pod that goes":                {`{metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}, status: {phase: Running}}`, state{false, "terminating"}},
		"a job that is complete":         {`{status: {conditions: [{type: Complete, status: "True"}]}}`, state{true, "Complete"}},
		"a job that failed":              {`{status: {conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded}]}}`, state{false, "Failed"}},
		"a claim":                        {`{status: {phase: Bound}}`, state{true, "Bound"}},
		"a custom kind with a condition": {`{status: {conditions: [{type: Synced, status: "True"}, {type: Ready, status: Unknown}]}}`, state{false, "not ready"}},
		"a config map":                   {`{data: {a: b}}`, state{true, "exists"}},
		"a status of another form":       {`{spec: {replicas: many}, status: {conditions: none, phase: 7}}`, state{true, "exists"}},
	} {
		t.Run(name, func(t *testing.T) {
			var o unstructured.Unstructured
			if err := yaml.Unmarshal([]byte(test.object), &o.Object); err != nil {
				t.Fatal(err)
			}
			whole(o.Object)
			if got := stateOf(&o); got != test.want {
				t.Errorf("it is %+v, not %+v", got, test.want)
			}
		})
	}
}

// whole makes numbers what they are in objects that come from a server.
func whole(m map[string]any) {
	for k, v := range m {
		switch v := v.(type) {
		case float64:
			m[k] = int64(v)
		case map[string]any:
			whole(v)
		}
	}
}

func TestTheTableOfATerminalStaysInPlace(t *testing.T) {
	var out recorder
	s := newScreen(&out, true)
	web := row{"Deployment", "shop", "web", state{false, "1/3 ready"}}
	s.show("shop", []row{web})
	s.show("shop", []row{web}) // nothing new
	web.State = state{true, "3/3 ready"}
	s.show("shop", []row{web, {"Namespace", "", "shop", state{true, "Active"}}})
	want := []string{
		"\x1b[H\x1b[2Jshop: 0 of 1 ready\n" +
			"  KIND        NAMESPACE  NAME  READY  STATE\n" +
			"  Deployment  shop       web   no     1/3 ready\n\n> ",
		"\x1b[H\x1b[2Jshop: 2 of 2 ready\n" +
			"  KIND        NAMESPACE  NAME  READY  STATE\n" +
			"  Deployment  shop       web   yes    3/3 ready\n" +
			"  Namespace   -          shop  yes    Active\n\n> ",
	}
	if len(out) != 2 || out[0] != want[0] || out[1] != want[1] {
		t.Errorf("it is drawn %q, not %q", out, want)
	}
}

// recorder has what was written at once.
type recorder []string

func (r *recorder) Write(b []byte) (int, error) {
	*r = append(*r, string(b))
	return len(b), nil
}
