package podgc

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controllers/podstest"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/explore"
)

// Pods go for each of the reasons for which pods go.
func TestNoFaultChangesTheEnd(t *testing.T) {
	pod := func(name string) client.Key { return client.Key{Namespace: "default", Name: name} }
	ended := func(name string) explore.Step {
		return func(ctx context.Context, conn *client.Conn) error {
			_, err := client.Of[*corev1.Pod](conn).Status().Patch(ctx, pod(name), client.MergePatch(`{"status":{"phase":"Succeeded"}}`))
			return err
		}
	}
	out := client.MergePatch(`{"spec":{"taints":[{"key":"node.kubernetes.io/out-of-service","effect":"NoExecute"}]}}`)
	explore.Run(t, explore.Scenario{
		Server:     func(t *testing.T) *rest.Config { return evenkeeltest.Start(t, evenkeeltest.Bubble()).Config() },
		Controller: run(1),
		Steps: []explore.Step{
			podstest.MakeNode("n1", "z1"), podstest.MakeNode("n2", "z1"),
			podstest.MakePod("a", "web", "n1", "10.0.0.1"), podstest.MakePod("b", "web", "n2", "10.0.0.2"),
			podstest.MakePod("c", "web", "n2", "10.0.0.3"), podstest.MakePod("d", "web", "n2", "10.0.0.4"),
			explore.Delete[*corev1.Node](client.Key{Name: "n1"}), ended("b"), ended("c"),
			explore.Delete[*corev1.Pod](pod("d")), explore.Patch[*corev1.Node](client.Key{Name: "n2"}, out), outOfReach("n2"),
		},
		Quiet: 2 * time.Minute, // a node counts as gone after 40 s, and all is looked at every 20 s
		Max:   40,
	})
}

// outOfReach has nobody know how a node is.
func outOfReach(node string) explore.Step {
	return func(ctx context.Context, conn *client.Conn) error {
		_, err := client.Of[*corev1.Node](conn).Status().Patch(ctx, client.Key{Name: node}, client.MergePatch(`{"status":{"conditions":[{"type":"Ready","status":"Unknown"}]}}`))
		return err
	}
}
