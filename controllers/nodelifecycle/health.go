package nodelifecycle

import (
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// How long nodes may be silent: those that have told their status, and those that
// never have.
const (
	grace        = 40 * time.Second
	startupGrace = time.Minute
)

// record is what is remembered of a node. Times are compared with themselves only, not
// with this program's, as clocks differ: what counts is when a change was seen.
type record struct {
	uid types.UID
	// beat is the time in the last status, zero if there was none; renewed is that in the
	// last lease.
	beat, renewed time.Time
	// heard is when there last was a sign of life.
	heard time.Time
}

// hear is the record after a look at a node and its lease, which may be nil.
func (r record) hear(node *corev1.Node, lease *coordinationv1.Lease, now time.Time) record {
	ready := conditionOf(node, corev1.NodeReady)
	next := record{uid: node.UID, beat: beatOf(ready), renewed: r.renewed, heard: r.heard}
	switch {
	case r.uid != node.UID && ready == nil:
		next.heard, next.renewed = node.CreationTimestamp.Time, time.Time{}
	case r.uid != node.UID:
		next.heard, next.renewed = now, time.Time{}
	case !next.beat.Equal(r.beat):
		next.heard = now
	}
	if at := renewalOf(lease); at.After(next.renewed) {
		next.renewed, next.heard = at, now
	}
	return next
}

func beatOf(ready *corev1.NodeCondition) time.Time {
	if ready == nil {
		return time.Time{}
	}
	return ready.LastHeartbeatTime.Time
}

func renewalOf(lease *coordinationv1.Lease) time.Time {
	if lease == nil || lease.Spec.RenewTime == nil {
		return time.Time{}
	}
	return lease.Spec.RenewTime.Time
}

// silent reports whether a node has not been heard of for too long.
func (r record) silent(node *corev1.Node, now time.Time) bool {
	limit := grace
	if conditionOf(node, corev1.NodeReady) == nil {
		limit = startupGrace
	}
	return now.Sub(r.heard) > limit
}

// doubted are the conditions that a node's own agent tells.
var doubted = []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure}

// doubt is the status of a silent node: what it told is unknown. It is nil if that is
// so already.
func doubt(node *corev1.Node, now time.Time) *corev1.NodeStatus {
	status, changed := node.Status.DeepCopy(), false
	for _, kind := range doubted {
		i := slices.IndexFunc(status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == kind })
		switch {
		case i < 0:
			status.Conditions = append(status.Conditions, corev1.NodeCondition{
				Type: kind, Status: corev1.ConditionUnknown, Reason: "NodeStatusNeverUpdated", Message: "Kubelet never posted node status.",
				LastHeartbeatTime: node.CreationTimestamp, LastTransitionTime: metav1.NewTime(now),
			})
		case status.Conditions[i].Status != corev1.ConditionUnknown:
			c := &status.Conditions[i]
			c.Status, c.Reason, c.Message = corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status."
			c.LastTransitionTime = metav1.NewTime(now)
		default:
			continue
		}
		changed = true
	}
	if !changed {
		return nil
	}
	return status
}

func conditionOf(node *corev1.Node, kind corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == kind {
			return &node.Status.Conditions[i]
		}
	}
	return nil
}

// readiness is the status of a node's condition Ready, "" if it has none.
func readiness(node *corev1.Node) corev1.ConditionStatus {
	if c := conditionOf(node, corev1.NodeReady); c != nil {
		return c.Status
	}
	return ""
}
