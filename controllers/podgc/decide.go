package podgc

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/even-keel/evenkeel/controllers/pods"
)

// quarantine is how long a node has to be missing until it counts as gone.
const quarantine = 40 * time.Second

// seen is what there is. Its objects are shared and read-only.
type seen struct {
	pods  []*corev1.Pod
	nodes map[string]*corev1.Node
	// missing is since when nodes that pods name have not been there.
	missing   map[string]time.Time
	threshold int
	now       time.Time
}

// plan is what is to be done.
type plan struct {
	remove  []removal
	missing map[string]time.Time
}

// removal is a pod that is to go; orphaned says that its node is gone.
type removal struct {
	pod      *corev1.Pod
	orphaned bool
}

// decide says which pods are to go.
func decide(s seen) plan {
	do := plan{missing: map[string]time.Time{}}
	var ended []*corev1.Pod
	for _, p := range s.pods {
		switch {
		case s.orphaned(p, do.missing):
			do.remove = append(do.remove, removal{p, true})
		case p.DeletionTimestamp != nil && (p.Spec.NodeName == "" || outOfService(s.nodes[p.Spec.NodeName])):
			do.remove = append(do.remove, removal{p, false})
		case pods.Ended(p):
			ended = append(ended, p)
		}
	}
	do.trim(ended, len(ended)-s.threshold)
	return do
}

// orphaned reports whether the node of a pod is gone, and notes it if that is missing.
func (s seen) orphaned(p *corev1.Pod, missing map[string]time.Time) bool {
	name := p.Spec.NodeName
	if name == "" || s.nodes[name] != nil {
		return false
	}
	since, ok := s.missing[name]
	if !ok {
		since = s.now
	}
	missing[name] = since
	return s.now.Sub(since) >= quarantine
}

// outOfService reports whether somebody has said of a node that is not ready that it
// will not come back by itself.
func outOfService(node *corev1.Node) bool {
	return node != nil && !ready(node) && slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
}

func ready(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// trim removes n of the pods that have ended: those that were evicted first, and then
// the oldest.
func (do *plan) trim(ended []*corev1.Pod, n int) {
	if n <= 0 {
		return
	}
	slices.SortFunc(ended, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, p := range ended[:n] {
		do.remove = append(do.remove, removal{p, false})
	}
}

// rank has pods that were evicted before others.
func rank(p *corev1.Pod) int {
	if p.Status.Phase == corev1.PodFailed && p.Status.Reason == "Evicted" {
		return 0
	}
	return 1
}
