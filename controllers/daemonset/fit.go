package daemonset

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// fit is what a node is for a set.
type fit uint8

const (
	never fit = iota // no pod belongs there
	stays            // a pod that is there may stay
	runs             // there should be one
)

// fitter tells what nodes are for a set.
type fitter struct {
	node        string // the only one, if it is not empty
	affinity    nodeaffinity.RequiredNodeAffinity
	tolerations []corev1.Toleration
}

func fitterOf(set *appsv1.DaemonSet) fitter {
	spec := &set.Spec.Template.Spec
	return fitter{spec.NodeName, nodeaffinity.NewRequiredNodeAffinity(spec.NodeSelector, spec.Affinity), tolerations(spec)}
}

func (f fitter) of(node *corev1.Node) fit {
	// A selector that cannot be read selects nothing.
	if fits, err := f.affinity.Match(node); err != nil || !fits || f.node != "" && f.node != node.Name {
		return never
	}
	switch {
	case !f.tolerates(node, corev1.TaintEffectNoExecute):
		return never
	case !f.tolerates(node, corev1.TaintEffectNoSchedule):
		return stays
	}
	return runs
}

// tolerates reports whether a pod tolerates a node's taints of an effect.
func (f fitter) tolerates(node *corev1.Node, effect corev1.TaintEffect) bool {
	return !slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Effect == effect && !slices.ContainsFunc(f.tolerations, func(t corev1.Toleration) bool {
			return t.ToleratesTaint(klog.Background(), &taint, false)
		})
	})
}

// tolerations are those of a template, and those that all daemons have: they stay on
// nodes that are in trouble, and run on nodes that take no other pods.
func tolerations(spec *corev1.PodSpec) []corev1.Toleration {
	out := slices.Clone(spec.Tolerations)
	add := func(effect corev1.TaintEffect, keys ...string) {
		for _, key := range keys {
			t := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect}
			if !slices.ContainsFunc(out, func(o corev1.Toleration) bool { return o.MatchToleration(&t) }) {
				out = append(out, t)
			}
		}
	}
	add(corev1.TaintEffectNoExecute, corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable)
	add(corev1.TaintEffectNoSchedule, corev1.TaintNodeDiskPressure, corev1.TaintNodeMemoryPressure, corev1.TaintNodePIDPressure, corev1.TaintNodeUnschedulable)
	if spec.HostNetwork {
		add(corev1.TaintEffectNoSchedule, corev1.TaintNodeNetworkUnavailable)
	}
	return out
}

// nodeOf is the node that a pod runs on or is for, "" if it does not say.
func nodeOf(p *corev1.Pod) string {
	if p.Spec.NodeName != "" {
		return p.Spec.NodeName
	}
	a := p.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, f := range term.MatchFields {
			if f.Key == metav1.ObjectNameField && f.Operator == corev1.NodeSelectorOpIn && len(f.Values) == 1 {
				return f.Values[0]
			}
		}
	}
	return ""
}

// onlyOn is an affinity that names a node. What else it required of nodes is left out:
// the node has it.
func onlyOn(node string, a *corev1.Affinity) *corev1.Affinity {
	out := a.DeepCopy()
	if out == nil {
		out = &corev1.Affinity{}
	}
	if out.NodeAffinity == nil {
		out.NodeAffinity = &corev1.NodeAffinity{}
	}
	out.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}},
		}}},
	}
	return out
}
