package scheduler

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	selectionop "k8s.io/apimachinery/pkg/selection"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// podInfo is what of a pod matters to decisions, read once. It does not change.
type podInfo struct {
	pod         *corev1.Pod
	priority    int32
	terminating bool

	needs  []amount
	weighs [2]int64 // of CPU and memory, when nodes are compared
	ports  []hostPort
	images []string

	picky bool // node says something
	node  nodeaffinity.RequiredNodeAffinity
	likes *nodeaffinity.PreferredSchedulingTerms // of nodes; nil if there are none
	// wantsText and likesText tell what node and likes say.
	wantsText, likesText string

	hard, soft []constraint

	// near is who has to be in the domains of the topologies; nil is nobody.
	near      *selection
	nearTo    []string
	apart     []term
	preferred []weighted
	// held are the terms that bind pods that come later.
	held []heldTerm
}

// weighted is a term that counts for, or against, a node.
type weighted struct {
	term
	weight int64
}

// constraint is one of topology spread.
type constraint struct {
	topology   string
	sel        *selection
	maxSkew    int32
	minDomains int32
	honorsNode bool // nodes that the pod does not want do not count
	honorTaint bool // nor those with taints that it does not tolerate
	self       int32
}

// inspect reads a pod.
func (s *Snapshot) inspect(pod *corev1.Pod) *podInfo {
	p := &podInfo{pod: pod, priority: priorityOf(pod), terminating: pod.DeletionTimestamp != nil}
	p.needs, p.weighs = s.resources.requests(pod)
	p.ports = hostPorts(&pod.Spec)
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			p.images = append(p.images, imageName(containers[i].Image))
		}
	}
	p.picky = len(pod.Spec.NodeSelector) > 0
	if a := pod.Spec.Affinity; a != nil {
		p.readNodeAffinity(a.NodeAffinity)
		p.readPodAffinity(a.PodAffinity)
		p.readPodAntiAffinity(a.PodAntiAffinity)
	}
	if p.picky {
		p.node = nodeaffinity.GetRequiredNodeAffinity(pod)
		p.wantsText = wantsText(&pod.Spec)
	}
	for i := range pod.Spec.TopologySpreadConstraints {
		p.readSpread(s, &pod.Spec.TopologySpreadConstraints[i])
	}
	return p
}

func priorityOf(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

func (p *podInfo) readNodeAffinity(a *corev1.NodeAffinity) {
	if a == nil {
		return
	}
	p.picky = p.picky || a.RequiredDuringSchedulingIgnoredDuringExecution != nil
	if terms := a.PreferredDuringSchedulingIgnoredDuringExecution; len(terms) > 0 {
		// Terms that cannot be read prefer nothing; the server refuses such pods.
		if likes, err := nodeaffinity.NewPreferredSchedulingTerms(terms); err == nil {
			p.likes, p.likesText = likes, likesText(terms)
		}
	}
}

func (p *podInfo) readPodAffinity(a *corev1.PodAffinity) {
	if a == nil {
		return
	}
	var parts []part
	for i := range a.RequiredDuringSchedulingIgnoredDuringExecution {
		who, topology := readTerm(&a.RequiredDuringSchedulingIgnoredDuringExecution[i], p.pod.Namespace)
		parts = append(parts, who)
		p.nearTo = append(p.nearTo, topology)
		p.hold(requiresNear, term{newSelection(who), topology}, 1)
	}
	if len(parts) > 0 {
		p.near = newSelection(parts...)
	}
	p.prefer(a.PreferredDuringSchedulingIgnoredDuringExecution, 1)
}

func (p *podInfo) readPodAntiAffinity(a *corev1.PodAntiAffinity) {
	if a == nil {
		return
	}
	for i := range a.RequiredDuringSchedulingIgnoredDuringExecution {
		who, topology := readTerm(&a.RequiredDuringSchedulingIgnoredDuringExecution[i], p.pod.Namespace)
		t := term{newSelection(who), topology}
		p.apart = append(p.apart, t)
		p.hold(requiresApart, t, 1)
	}
	p.prefer(a.PreferredDuringSchedulingIgnoredDuringExecution, -1)
}

func (p *podInfo) prefer(terms []corev1.WeightedPodAffinityTerm, sign int64) {
	for i := range terms {
		who, topology := readTerm(&terms[i].PodAffinityTerm, p.pod.Namespace)
		w := weighted{term{newSelection(who), topology}, sign * int64(terms[i].Weight)}
		p.preferred = append(p.preferred, w)
		p.hold(prefers, w.term, w.weight)
	}
}

func (p *podInfo) hold(r role, t term, weight int64) {
	p.held = append(p.held, heldTerm{key: heldKey{r, t.topology, t.sel.text}, sel: t.sel, weight: weight})
}

func (p *podInfo) readSpread(s *Snapshot, c *corev1.TopologySpreadConstraint) {
	out := constraint{
		topology: c.TopologyKey, maxSkew: c.MaxSkew, minDomains: 1,
		sel:        newSelection(part{namespaces: []string{p.pod.Namespace}, pods: p.spreadOver(c)}),
		honorsNode: c.NodeAffinityPolicy == nil || *c.NodeAffinityPolicy == corev1.NodeInclusionPolicyHonor,
		honorTaint: c.NodeTaintsPolicy != nil && *c.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor,
	}
	if c.MinDomains != nil {
		out.minDomains = *c.MinDomains
	}
	if out.sel.selects(s, p) {
		out.self = 1
	}
	if c.WhenUnsatisfiable == corev1.ScheduleAnyway {
		p.soft = append(p.soft, out)
	} else {
		p.hard = append(p.hard, out)
	}
}

// spreadOver returns which pods a constraint counts: of the labels whose keys it
// names, those with the pod's own values.
func (p *podInfo) spreadOver(c *corev1.TopologySpreadConstraint) labels.Selector {
	sel := selectorOf(c.LabelSelector)
	if _, selectable := sel.Requirements(); !selectable {
		return sel // of nothing
	}
	for _, key := range c.MatchLabelKeys {
		value, has := p.pod.Labels[key]
		if !has {
			continue
		}
		if r, err := labels.NewRequirement(key, selectionop.In, []string{value}); err == nil {
			sel = sel.Add(*r)
		}
	}
	return sel
}
