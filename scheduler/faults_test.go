package scheduler

import (
	"context"
	"log/slog"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/explore"
	"github.com/even-keel/evenkeel/informer"
)

// Pods find a node, wait for one, and take the place of another. There is one right
// node for each.
func TestNoFaultChangesTheEnd(t *testing.T) {
	node := func(name string) explore.Step {
		return func(ctx context.Context, conn *client.Conn) error {
			n, err := client.Of[*corev1.Node](conn).Create(ctx, newNode(name, has("cpu", "1")))
			if err != nil {
				return err
			}
			n = n.DeepCopy()
			n.Spec.Taints = nil // the server keeps pods off new ones
			_, err = client.Of[*corev1.Node](conn).Update(ctx, n)
			return err
		}
	}
	pod := func(name string, opts ...podOption) *corev1.Pod {
		p := newPod(name, append(opts, asks("cpu", "1"))...)
		p.UID = ""
		return p
	}
	vital := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "vital"}, Value: 1000}
	onFirst := func(p *corev1.Pod) {
		p.Spec.PriorityClassName, p.Spec.NodeSelector = vital.Name, map[string]string{hostKey: "n1"}
	}
	removed := func(name string) explore.Step {
		return explore.Delete[*corev1.Pod](client.Key{Namespace: "default", Name: name}, client.Grace(0))
	}
	explore.Run(t, explore.Scenario{
		Server:     func(t *testing.T) *rest.Config { return evenkeeltest.Start(t, evenkeeltest.Bubble()).Config() },
		Controller: runScheduler(Options{Seed: 1, Logger: slog.New(slog.DiscardHandler)}, informer.Config{}),
		Steps: []explore.Step{
			explore.Create(vital), node("n1"), explore.Create(pod("first")), explore.Create(pod("waits")), node("n2"),
			explore.Create(pod("vital", onFirst)), removed("first"), removed("waits"),
		},
		Max: 40,
	})
}
