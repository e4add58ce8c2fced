package node_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/explore"
	"github.com/even-keel/evenkeel/node/simulated"
)

// Pods run, end by themselves, become ready late, and are deleted.
func TestNoFaultChangesTheEnd(t *testing.T) {
	key := func(name string) client.Key { return client.Key{Namespace: "default", Name: name} }
	probed := func(p *corev1.Pod) {
		p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}, PeriodSeconds: 1,
		}
	}
	explore.Run(t, explore.Scenario{
		Server: func(t *testing.T) *rest.Config { return evenkeeltest.Start(t, evenkeeltest.Bubble()).Config() },
		Controller: func(ctx context.Context, cfg *rest.Config) error {
			return agent(simulated.New(simulated.Options{}), one())(ctx, cfg) // of each process
		},
		Steps: []explore.Step{
			explore.Create(web("runs", annotated(simulated.StartDelay, "5s"), annotated(simulated.StopDelay, "5s"))),
			explore.Create(web("ends", policy(corev1.RestartPolicyNever), annotated(simulated.RunFor, "10s"), annotated(simulated.ExitCode, "3"))),
			explore.Create(web("probed", probed, annotated(simulated.FailProbe, "readiness"))),
			explore.Patch[*corev1.Pod](key("probed"), client.MergePatch(`{"metadata":{"annotations":{"`+simulated.FailProbe+`":null}}}`)),
			explore.Delete[*corev1.Pod](key("runs")), explore.Delete[*corev1.Pod](key("ends")),
		},
		Keep: withoutIP,
		Max:  25,
	})
}

// withoutIP leaves out the addresses of pods: which comes first gets the first.
func withoutIP(o *unstructured.Unstructured) bool {
	unstructured.RemoveNestedField(o.Object, "status", "podIP")
	unstructured.RemoveNestedField(o.Object, "status", "podIPs")
	return true
}
