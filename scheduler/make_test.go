package scheduler

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The makers of this file are for tests and benchmarks: a thing, and changes of it.

const (
	zoneKey = corev1.LabelTopologyZone
	hostKey = corev1.LabelHostname
)

type nodeOption func(*corev1.Node)

// newNode has 4 CPUs, 16 GiB and room for 110 pods.
func newNode(name string, opts ...nodeOption) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{hostKey: name}},
		Status:     corev1.NodeStatus{Allocatable: list("cpu", "4", "memory", "16Gi", "ephemeral-storage", "100Gi", "pods", "110")},
	}
	for _, o := range opts {
		o(n)
	}
	return n
}

func has(resources ...string) nodeOption {
	return func(n *corev1.Node) {
		for name, q := range list(resources...) {
			n.Status.Allocatable[name] = q
		}
	}
}

func nodeLabel(key, value string) nodeOption {
	return func(n *corev1.Node) { n.Labels[key] = value }
}

func inZone(zone string) nodeOption { return nodeLabel(zoneKey, zone) }

func taint(key, value string, effect corev1.TaintEffect) nodeOption {
	return func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: effect})
	}
}

func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

func hasImage(name string, size int64) nodeOption {
	return func(n *corev1.Node) {
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{name}, SizeBytes: size})
	}
}

// list makes a list of resources of names and quantities.
func list(resources ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(resources); i += 2 {
		out[corev1.ResourceName(resources[i])] = resource.MustParse(resources[i+1])
	}
	return out
}

type podOption func(*corev1.Pod)

// newPod asks for nothing.
func newPod(name string, opts ...podOption) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{}},
		Spec:       corev1.PodSpec{SchedulerName: corev1.DefaultSchedulerName, Containers: []corev1.Container{{Name: "c", Image: "app:1"}}},
	}
	for _, o := range opts {
		o(p)
	}
	return p
}

func asks(resources ...string) podOption {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = list(resources...) }
}

func label(key, value string) podOption { return func(p *corev1.Pod) { p.Labels[key] = value } }

func inNamespace(name string) podOption { return func(p *corev1.Pod) { p.Namespace = name } }

func on(node string) podOption { return func(p *corev1.Pod) { p.Spec.NodeName = node } }

func priority(n int32) podOption { return func(p *corev1.Pod) { p.Spec.Priority = &n } }

func tolerating(key string) podOption {
	return func(p *corev1.Pod) {
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
	}
}

func selecting(key, value string) podOption {
	return func(p *corev1.Pod) {
		if p.Spec.NodeSelector == nil {
			p.Spec.NodeSelector = map[string]string{}
		}
		p.Spec.NodeSelector[key] = value
	}
}

func affinity(p *corev1.Pod) *corev1.Affinity {
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	return p.Spec.Affinity
}

func nodeTerm(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: op, Values: values}}}
}

// needsNode has the pod require one of some terms.
func needsNode(terms ...corev1.NodeSelectorTerm) podOption {
	return func(p *corev1.Pod) {
		affinity(p).NodeAffinity = &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}
	}
}

func likesNode(weight int32, term corev1.NodeSelectorTerm) podOption {
	return func(p *corev1.Pod) {
		a := affinity(p)
		if a.NodeAffinity == nil {
			a.NodeAffinity = &corev1.NodeAffinity{}
		}
		a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(
			a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution, corev1.PreferredSchedulingTerm{Weight: weight, Preference: term})
	}
}

// podTerm selects pods by one label.
func podTerm(topology, key, value string) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{TopologyKey: topology, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}}
}

func near(terms ...corev1.PodAffinityTerm) podOption {
	return func(p *corev1.Pod) {
		affinity(p).PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}
	}
}

func apart(terms ...corev1.PodAffinityTerm) podOption {
	return func(p *corev1.Pod) {
		affinity(p).PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}
	}
}

func likesNear(weight int32, t corev1.PodAffinityTerm) podOption {
	return func(p *corev1.Pod) {
		affinity(p).PodAffinity = &corev1.PodAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: weight, PodAffinityTerm: t}}}
	}
}

func likesApart(weight int32, t corev1.PodAffinityTerm) podOption {
	return func(p *corev1.Pod) {
		affinity(p).PodAntiAffinity = &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: weight, PodAffinityTerm: t}}}
	}
}

// spreadOver spreads pods that have a label of the pod's.
func spreadOver(topology string, maxSkew int32, key, value string, more ...func(*corev1.TopologySpreadConstraint)) podOption {
	return func(p *corev1.Pod) {
		c := corev1.TopologySpreadConstraint{
			TopologyKey: topology, MaxSkew: maxSkew, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}},
		}
		for _, m := range more {
			m(&c)
		}
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, c)
	}
}

func anyway(c *corev1.TopologySpreadConstraint) { c.WhenUnsatisfiable = corev1.ScheduleAnyway }

func takesPort(port int32, ip string) podOption {
	return func(p *corev1.Pod) {
		c := &p.Spec.Containers[0]
		c.Ports = append(c.Ports, corev1.ContainerPort{ContainerPort: port, HostPort: port, HostIP: ip})
	}
}

// cluster makes a snapshot of nodes and of pods that are on them.
func cluster(objects ...any) *Snapshot {
	s := NewSnapshot(1)
	s.SetNamespace("default", map[string]string{"name": "default"})
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.Node:
			s.SetNode(o)
		case *corev1.Pod:
			s.SetPod(o)
		default:
			panic(fmt.Sprintf("%T is neither a node nor a pod", o))
		}
	}
	return s
}

func started(at time.Time) podOption {
	return func(p *corev1.Pod) { p.Status.StartTime = &metav1.Time{Time: at} }
}
