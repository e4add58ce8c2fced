package nodelifecycle

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controllers/podstest"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/explore"
)

// A node falls silent, comes back, has too little memory, and is cordoned. Leases that
// are not heard of are nodes that are not: what is held back is no fault here.
func TestNoFaultChangesTheEnd(t *testing.T) {
	node := func(patch string) explore.Step {
		return explore.Patch[*corev1.Node](client.Key{Name: "n1"}, client.MergePatch(patch))
	}
	explore.Run(t, explore.Scenario{
		Server: func(t *testing.T) *rest.Config {
			env := evenkeeltest.Start(t, evenkeeltest.Bubble())
			env.Run(renewLeases)
			return env.Config()
		},
		Controller: func(ctx context.Context, cfg *rest.Config) error { return runWith(ctx, cfg) },
		Steps: []explore.Step{
			podstest.MakeNode("n1", "z1"), podstest.MakeNode("n2", "z1"), podstest.MakePod("a", "web", "n1", "10.0.0.1"),
			node(`{"metadata":{"labels":{"silent":"true"}}}`), node(`{"metadata":{"labels":{"silent":null}}}`),
			tells("n1", corev1.ConditionFalse), tells("n1", corev1.ConditionTrue), tells("n1", corev1.ConditionFalse),
			node(`{"spec":{"unschedulable":true}}`), node(`{"spec":{"unschedulable":null}}`),
		},
		Faults: []explore.Fault{
			explore.CrashBefore, explore.CrashAfter, explore.Behind, explore.Lost, explore.Cut,
			explore.Conflict, explore.Failed, explore.Unavailable, explore.Throttled,
		},
		Keep:  sortTaints,
		Quiet: 2 * time.Minute, // a node counts as silent after 40 s
		Max:   15,
	})
}

// sortTaints has them in one order: there are two controllers that write them.
func sortTaints(o *unstructured.Unstructured) bool {
	if taints, found, _ := unstructured.NestedSlice(o.Object, "spec", "taints"); found {
		slices.SortFunc(taints, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		_ = unstructured.SetNestedSlice(o.Object, taints, "spec", "taints")
	}
	return true
}

// renewLeases does it for all nodes that are not said to be silent.
func renewLeases(ctx context.Context, cfg *rest.Config) error {
	conn, err := client.Connect(cfg)
	if err != nil {
		return err
	}
	for {
		for node, err := range client.Of[*corev1.Node](conn).List(ctx) {
			if err == nil && node.Labels["silent"] == "" {
				err = renewLease(ctx, conn, node.Name)
			}
			if err != nil && ctx.Err() == nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(10 * time.Second):
		}
	}
}

// tells has a node say that it is ready, and whether it is short of memory.
func tells(node string, short corev1.ConditionStatus) explore.Step {
	return func(ctx context.Context, conn *client.Conn) error {
		now := metav1.Now()
		_, err := client.Of[*corev1.Node](conn).Status().Patch(ctx, client.Key{Name: node}, client.StrategicPatch(map[string]any{
			"status": map[string]any{"conditions": []corev1.NodeCondition{
				{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: now, LastTransitionTime: now},
				{Type: corev1.NodeMemoryPressure, Status: short, LastHeartbeatTime: now, LastTransitionTime: now},
			}},
		}))
		return err
	}
}
