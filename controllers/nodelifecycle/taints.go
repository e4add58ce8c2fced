package nodelifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/controllers/pods"
	"github.com/even-keel/evenkeel/events"
)

// workers is how many nodes are looked at at once.
const workers = 8

// tainter looks at nodes that change.
type tainter struct {
	nodes *client.Client[*corev1.Node]
	pods  *client.Client[*corev1.Pod]
	told  *events.Recorder
}

func newTaints(s client.Source, told *events.Recorder) *controller.Controller {
	r := &tainter{nodes: client.Of[*corev1.Node](s), pods: client.Of[*corev1.Pod](s), told: told}
	return controller.New(TaintsName, r.reconcile,
		controller.For[*corev1.Node](controller.Where(concerns)),
		controller.Watches(nodeOf, pods.ByNode(), controller.Where(bound)),
		controller.Workers(workers),
		controller.IgnoreOwnWrites())
}

// concerns leaves out changes of nodes that make no difference here: above all, that
// they are alive.
func concerns(old, now *corev1.Node) bool {
	return now != nil && (old == nil || readiness(old) != readiness(now) ||
		!sameTaints(repelling(old), repelling(now)) || !sameTaints(old.Spec.Taints, now.Spec.Taints))
}

func sameTaints(a, b []corev1.Taint) bool {
	return slices.EqualFunc(a, b, func(a, b corev1.Taint) bool { return a.MatchTaint(&b) })
}

// bound leaves out all that happens to pods but that they get a node.
func bound(old, now *corev1.Pod) bool {
	return now != nil && now.Spec.NodeName != "" && (old == nil || old.Spec.NodeName == "")
}

func nodeOf(_ context.Context, p *corev1.Pod) []client.Key {
	if p.Spec.NodeName == "" {
		return nil
	}
	return []client.Key{{Name: p.Spec.NodeName}}
}

func (r *tainter) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	node, err := r.nodes.Get(ctx, req.Key)
	if err != nil {
		return controller.Done, client.IgnoreNotFound(err)
	}
	on, err := pods.OnNode(ctx, r.pods, node.Name)
	if err != nil {
		return controller.Done, err
	}
	do := decideNode(node, on, time.Now())
	err = r.unready(ctx, do.unready)
	if do.retaint {
		now := *node
		now.Spec.Taints = do.taints
		if _, failed := r.nodes.Update(ctx, &now); client.IgnoreNotFound(failed) != nil {
			err = errors.Join(err, fmt.Errorf("update taints of %s: %w", node.Name, failed))
		}
	}
	if client.IsConflict(err) {
		return controller.Requeue, nil // the event of the other write may be one that is left out
	}
	return controller.Done, err
}

// nodePlan is what is to be done about a node.
type nodePlan struct {
	retaint bool
	taints  []corev1.Taint
	// unready are pods that are said to be ready, and nobody knows.
	unready []*corev1.Pod
}

// decideNode says what taints a node is to have that keep pods away, and which of its
// pods are not to count as ready.
func decideNode(node *corev1.Node, on []*corev1.Pod, now time.Time) (do nodePlan) {
	want := repelling(node)
	for _, t := range node.Spec.Taints {
		i := slices.IndexFunc(want, func(w corev1.Taint) bool { return w.MatchTaint(&t) })
		switch {
		case i >= 0:
			want = slices.Delete(want, i, i+1)
		case repels(t):
			do.retaint = true
			continue
		}
		do.taints = append(do.taints, t)
	}
	for _, t := range want {
		t.TimeAdded = &metav1.Time{Time: now}
		do.taints, do.retaint = append(do.taints, t), true
	}
	if readiness(node) == corev1.ConditionUnknown {
		do.unready = slices.DeleteFunc(slices.Clone(on), func(p *corev1.Pod) bool { return !pods.Ready(p) })
	}
	return do
}

// repellent are the taints that keep pods away from nodes with a condition of a status.
var repellent = []struct {
	kind   corev1.NodeConditionType
	status corev1.ConditionStatus
	taint  string
}{
	{corev1.NodeReady, corev1.ConditionFalse, corev1.TaintNodeNotReady},
	{corev1.NodeReady, corev1.ConditionUnknown, corev1.TaintNodeUnreachable},
	{corev1.NodeMemoryPressure, corev1.ConditionTrue, corev1.TaintNodeMemoryPressure},
	{corev1.NodeDiskPressure, corev1.ConditionTrue, corev1.TaintNodeDiskPressure},
	{corev1.NodePIDPressure, corev1.ConditionTrue, corev1.TaintNodePIDPressure},
	{corev1.NodeNetworkUnavailable, corev1.ConditionTrue, corev1.TaintNodeNetworkUnavailable},
}

// repelling are the taints by which a node is to keep pods away.
func repelling(node *corev1.Node) (out []corev1.Taint) {
	for _, r := range repellent {
		if c := conditionOf(node, r.kind); c != nil && c.Status == r.status {
			out = append(out, corev1.Taint{Key: r.taint, Effect: corev1.TaintEffectNoSchedule})
		}
	}
	if node.Spec.Unschedulable {
		out = append(out, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}
	return out
}

// repels reports whether a taint is one of those that follow what a node is like.
func repels(t corev1.Taint) bool {
	if t.Effect != corev1.TaintEffectNoSchedule {
		return false
	}
	for _, r := range repellent {
		if r.taint == t.Key {
			return true
		}
	}
	return t.Key == corev1.TaintNodeUnschedulable
}

// unready says of pods that they are not ready.
func (r *tainter) unready(ctx context.Context, all []*corev1.Pod) error {
	return pods.Each(len(all), func(i int) error {
		p := all[i]
		_, err := r.pods.Status().Patch(ctx, client.KeyOf(p), client.StrategicPatch(map[string]any{
			"metadata": map[string]any{"uid": p.UID},
			"status": map[string]any{"conditions": []any{map[string]any{
				"type": corev1.PodReady, "status": corev1.ConditionFalse, "lastTransitionTime": metav1.Now(),
			}}},
		}))
		switch {
		case client.IsNotFound(err), client.IsConflict(err):
			return nil // it is gone, or another has its name
		case err != nil:
			return fmt.Errorf("pod %s is not ready: %w", client.KeyOf(p), err)
		}
		r.told.Event(p, events.Warning, "NodeNotReady", "Node is not ready")
		return nil
	})
}
