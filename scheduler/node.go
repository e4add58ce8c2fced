package scheduler

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/klog/v2"
)

// nodeState is a node and what is on it.
type nodeState struct {
	obj     *corev1.Node
	slot    int32
	alloc   []int64 // by resource
	maxPods int64
	taints  *taintSet

	pods   []*podInfo
	used   []int64 // by resource
	weighs [2]int64
	ports  []hostPort
}

// free returns how much of a resource is left, which may be less than nothing.
func (n *nodeState) free(resource int) int64 { return at(n.alloc, resource) - at(n.used, resource) }

func at(values []int64, i int) int64 {
	if i < len(values) {
		return values[i]
	}
	return 0
}

// add puts a pod on the node.
func (n *nodeState) add(p *podInfo) {
	n.pods = append(n.pods, p)
	n.ports = append(n.ports, p.ports...)
	n.account(p, 1)
}

// remove takes a pod off the node, which has it.
func (n *nodeState) remove(p *podInfo) {
	i := slices.Index(n.pods, p)
	n.pods = slices.Delete(n.pods, i, i+1)
	for _, port := range p.ports {
		i := slices.Index(n.ports, port)
		n.ports = slices.Delete(n.ports, i, i+1)
	}
	n.account(p, -1)
}

func (n *nodeState) account(p *podInfo, sign int64) {
	for _, a := range p.needs {
		n.used = grown(n.used, int32(a.resource))
		n.used[a.resource] += sign * a.value
	}
	n.weighs[cpu] += sign * p.weighs[cpu]
	n.weighs[memory] += sign * p.weighs[memory]
}

// clone returns a copy on which pods can be added and removed.
func (n *nodeState) clone() *nodeState {
	c := *n
	c.pods, c.used, c.ports = slices.Clone(n.pods), slices.Clone(n.used), slices.Clone(n.ports)
	return &c
}

// setAllocatable reads what the node has.
func (n *nodeState) setAllocatable(r *resources, list corev1.ResourceList) {
	n.alloc = make([]int64, len(r.names))
	for _, a := range r.amounts(list) {
		n.alloc = grown(n.alloc, int32(a.resource))
		n.alloc[a.resource] = a.value
	}
	n.maxPods = list.Pods().Value()
}

// taintSet are the taints of nodes that have the same ones.
type taintSet struct {
	number int
	nodes  int
	text   string
	// hard are those that keep pods off, soft those that should.
	hard, soft []corev1.Taint
}

// taintSets numbers the sets, so that what is known of one is known of all its nodes.
type taintSets struct {
	byText map[string]*taintSet
	free   []int
	size   int
}

// taken returns the set of some taints, for one more node.
func (t *taintSets) taken(taints []corev1.Taint) *taintSet {
	text := fmt.Sprint(taintTexts(taints))
	set := t.byText[text]
	if set == nil {
		set = &taintSet{number: t.size, text: text}
		if last := len(t.free) - 1; last >= 0 {
			set.number, t.free = t.free[last], t.free[:last]
		} else {
			t.size++
		}
		for _, taint := range taints {
			switch taint.Effect {
			case corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute:
				set.hard = append(set.hard, taint)
			case corev1.TaintEffectPreferNoSchedule:
				set.soft = append(set.soft, taint)
			}
		}
		t.byText[text] = set
	}
	set.nodes++
	return set
}

// released gives a set back, for one node less.
func (t *taintSets) released(set *taintSet) {
	if set.nodes--; set.nodes == 0 {
		delete(t.byText, set.text)
		t.free = append(t.free, set.number)
	}
}

func taintTexts(taints []corev1.Taint) []string {
	out := make([]string, len(taints))
	for i := range taints {
		out[i] = fmt.Sprintf("%q", []string{taints[i].Key, taints[i].Value, string(taints[i].Effect)})
	}
	return out
}

func tolerates(tolerations []corev1.Toleration, taint *corev1.Taint) bool {
	return slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool {
		return t.ToleratesTaint(klog.Logger{}, taint, true)
	})
}

// nodeChange is what of a node is not what it was.
type nodeChange uint8

const (
	nodeLabels nodeChange = 1 << iota
	nodeTaints
	nodeResources
	nodeImages
	nodeAdded
)

func compareNodes(old, now *corev1.Node) (c nodeChange) {
	if !maps.Equal(old.Labels, now.Labels) {
		c |= nodeLabels
	}
	if old.Spec.Unschedulable != now.Spec.Unschedulable || !equality.Semantic.DeepEqual(old.Spec.Taints, now.Spec.Taints) {
		c |= nodeTaints
	}
	if !equality.Semantic.DeepEqual(old.Status.Allocatable, now.Status.Allocatable) {
		c |= nodeResources
	}
	if !equality.Semantic.DeepEqual(old.Status.Images, now.Status.Images) {
		c |= nodeImages
	}
	return c
}
