package scheduler

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// model is a cluster as a list of objects, and the rules written down as they are
// meant: each question looks at everything.
type model struct {
	nodes      map[string]*corev1.Node
	pods       map[types.UID]*corev1.Pod // with spec.nodeName
	namespaces map[string]map[string]string
}

func (m *model) on(node string) (out []*corev1.Pod) {
	for _, p := range m.pods {
		if p.Spec.NodeName == node {
			out = append(out, p)
		}
	}
	return out
}

// why returns all reasons of the first rule that a node breaks, in the order in which
// rules are looked at.
func (m *model) why(pod *corev1.Pod, node *corev1.Node) []string {
	tolerated := func(t corev1.Taint) bool {
		return slices.ContainsFunc(pod.Spec.Tolerations, func(x corev1.Toleration) bool { return x.Key == t.Key }) // the tests' are all Exists
	}
	if node.Spec.Unschedulable && !tolerated(corev1.Taint{Key: corev1.TaintNodeUnschedulable}) {
		return []string{"node(s) were unschedulable"}
	}
	for _, t := range node.Spec.Taints {
		if t.Effect != corev1.TaintEffectPreferNoSchedule && !tolerated(t) {
			return []string{fmt.Sprintf("node(s) had untolerated taint {%s: %s}", t.Key, t.Value)}
		}
	}
	if !wanted(pod, node) {
		return []string{"node(s) didn't match Pod's node affinity/selector"}
	}
	for _, p := range m.on(node.Name) {
		for _, a := range p.Spec.Containers[0].Ports {
			for _, b := range pod.Spec.Containers[0].Ports {
				if a.HostPort == b.HostPort {
					return []string{"node(s) didn't have free ports for the requested pod ports"}
				}
			}
		}
	}
	if lacks := m.lacks(pod, node); lacks != nil {
		return lacks
	}
	if why := m.spread(pod, node); why != "" {
		return []string{why}
	}
	if why := m.affinity(pod, node); why != "" {
		return []string{why}
	}
	return nil
}

func wanted(pod *corev1.Pod, node *corev1.Node) bool {
	for k, v := range pod.Spec.NodeSelector {
		if node.Labels[k] != v {
			return false
		}
	}
	return true
}

func (m *model) lacks(pod *corev1.Pod, node *corev1.Node) (out []string) {
	pods := m.on(node.Name)
	if int64(len(pods)) >= node.Status.Allocatable.Pods().Value() {
		out = append(out, "Too many pods")
	}
	for name, want := range pod.Spec.Containers[0].Resources.Requests {
		left := node.Status.Allocatable[name].DeepCopy()
		for _, p := range pods {
			left.Sub(p.Spec.Containers[0].Resources.Requests[name])
		}
		if want.Cmp(left) > 0 {
			out = append(out, "Insufficient "+string(name))
		}
	}
	return out
}

func (m *model) spread(pod *corev1.Pod, node *corev1.Node) string {
	for _, c := range pod.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable == corev1.ScheduleAnyway {
			continue
		}
		mine, has := node.Labels[c.TopologyKey]
		if !has {
			return "node(s) didn't match pod topology spread constraints (missing required label)"
		}
		counts := map[string]int{}
		for _, n := range m.nodes {
			value, has := n.Labels[c.TopologyKey]
			if !has || !m.hasAll(pod, n) || !wanted(pod, n) {
				continue
			}
			counts[value] += 0
			for _, p := range m.on(n.Name) {
				if p.Namespace == pod.Namespace && selectedBy(c.LabelSelector, p) {
					counts[value]++
				}
			}
		}
		least := math.MaxInt32 // no domain is compared with none
		for _, n := range counts {
			least = min(least, n)
		}
		if c.MinDomains != nil && len(counts) < int(*c.MinDomains) {
			least = 0
		}
		self := 0
		if selectedBy(c.LabelSelector, pod) {
			self = 1
		}
		if counts[mine]+self-least > int(c.MaxSkew) {
			return "node(s) didn't match pod topology spread constraints"
		}
	}
	return ""
}

func (m *model) hasAll(pod *corev1.Pod, n *corev1.Node) bool {
	for _, c := range pod.Spec.TopologySpreadConstraints {
		if _, has := n.Labels[c.TopologyKey]; !has && c.WhenUnsatisfiable == corev1.DoNotSchedule {
			return false
		}
	}
	return true
}

func selectedBy(s *metav1.LabelSelector, p *corev1.Pod) bool {
	sel, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		panic(err)
	}
	return sel.Matches(labels.Set(p.Labels))
}

// meant reports whether a term of one pod means another.
func (m *model) meant(t corev1.PodAffinityTerm, of, p *corev1.Pod) bool {
	in := slices.Contains(t.Namespaces, p.Namespace)
	if t.NamespaceSelector != nil {
		sel, err := metav1.LabelSelectorAsSelector(t.NamespaceSelector)
		if err != nil {
			panic(err)
		}
		in = in || sel.Matches(labels.Set(m.namespaces[p.Namespace]))
	} else if len(t.Namespaces) == 0 {
		in = p.Namespace == of.Namespace
	}
	return in && selectedBy(t.LabelSelector, p)
}

func (m *model) affinity(pod *corev1.Pod, node *corev1.Node) string {
	together := func(p *corev1.Pod, key string) bool { // in one domain with the node
		other := m.nodes[p.Spec.NodeName]
		if other == nil {
			return false
		}
		a, hasA := node.Labels[key]
		b, hasB := other.Labels[key]
		return hasA && hasB && a == b
	}
	if terms := nearTerms(pod); len(terms) > 0 && !m.near(pod, node, terms, together) {
		return "node(s) didn't match pod affinity rules"
	}
	for _, t := range apartTerms(pod) {
		for _, p := range m.pods {
			if m.meant(t, pod, p) && together(p, t.TopologyKey) {
				return "node(s) didn't match pod anti-affinity rules"
			}
		}
	}
	for _, p := range m.pods {
		for _, t := range apartTerms(p) {
			if m.meant(t, p, pod) && together(p, t.TopologyKey) {
				return "node(s) didn't satisfy existing pods anti-affinity rules"
			}
		}
	}
	return ""
}

func (m *model) near(pod *corev1.Pod, node *corev1.Node, terms []corev1.PodAffinityTerm, together func(*corev1.Pod, string) bool) bool {
	meansAll := func(p *corev1.Pod) bool {
		return !slices.ContainsFunc(terms, func(t corev1.PodAffinityTerm) bool { return !m.meant(t, pod, p) })
	}
	anywhere, everywhere := false, true
	for _, t := range terms {
		if _, has := node.Labels[t.TopologyKey]; !has {
			return false
		}
		here := false
		for _, p := range m.pods {
			if !meansAll(p) || m.nodes[p.Spec.NodeName] == nil {
				continue
			}
			here = here || together(p, t.TopologyKey)
			_, has := m.nodes[p.Spec.NodeName].Labels[t.TopologyKey]
			anywhere = anywhere || has
		}
		everywhere = everywhere && here
	}
	return everywhere || !anywhere && meansAll(pod)
}

func nearTerms(p *corev1.Pod) []corev1.PodAffinityTerm {
	if a := p.Spec.Affinity; a != nil && a.PodAffinity != nil {
		return a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return nil
}

func apartTerms(p *corev1.Pod) []corev1.PodAffinityTerm {
	if a := p.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		return a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return nil
}

// answer is which nodes will do, and the counted reasons of the others.
func (m *model) answer(pod *corev1.Pod) (good []string, reasons map[string]int) {
	reasons = map[string]int{}
	for _, n := range m.nodes {
		why := m.why(pod, n)
		if why == nil {
			good = append(good, n.Name)
		}
		for _, w := range why {
			reasons[w]++
		}
	}
	return good, reasons
}

// writer makes clusters at random, small ones in which rules meet.
type writer struct {
	*rand.Rand
	names int
}

func (r *writer) one(of ...string) string { return of[r.IntN(len(of))] }

func (r *writer) often(n int) bool { return r.IntN(n) == 0 }

func (r *writer) node(name string) *corev1.Node {
	opts := []nodeOption{has("cpu", r.one("1", "2", "4"), "pods", r.one("2", "4", "8"))}
	if !r.often(5) {
		opts = append(opts, inZone(r.one("a", "b", "c")))
	}
	if r.often(4) {
		opts = append(opts, nodeLabel("disk", r.one("ssd", "hdd")))
	}
	if r.often(6) {
		opts = append(opts, taint(r.one("k", "l"), r.one("", "v"), corev1.TaintEffect(r.one("NoSchedule", "NoExecute", "PreferNoSchedule"))))
	}
	if r.often(8) {
		opts = append(opts, cordoned)
	}
	return newNode(name, opts...)
}

func (r *writer) term() corev1.PodAffinityTerm {
	t := podTerm(r.one(zoneKey, zoneKey, hostKey), "app", r.one("x", "y", "z"))
	switch r.IntN(5) {
	case 0:
		t.Namespaces = []string{"other"}
	case 1:
		t.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": r.one("a", "b")}}
	case 2:
		t.LabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"x", "y"}}}}
	}
	return t
}

func (r *writer) pod() *corev1.Pod {
	r.names++
	opts := []podOption{inNamespace(r.one("default", "default", "other")), label("app", r.one("x", "y", "z")),
		asks("cpu", r.one("100m", "300m", "900m")), priority(int32(r.IntN(3)))}
	maybe := func(n int, o ...podOption) {
		if r.often(n) {
			opts = append(opts, o...)
		}
	}
	maybe(8, selecting("disk", r.one("ssd", "hdd")))
	maybe(6, tolerating(r.one("k", "l", corev1.TaintNodeUnschedulable)))
	maybe(10, takesPort(80, ""))
	maybe(6, near(r.term()))
	maybe(12, near(r.term(), r.term()))
	maybe(6, apart(r.term()))
	maybe(10, likesNear(10, r.term()))
	maybe(5, spreadOver(r.one(zoneKey, hostKey), int32(1+r.IntN(2)), "app", r.one("x", "y", "z")))
	maybe(8, spreadOver(zoneKey, 1, "app", r.one("x", "y", "z"), func(c *corev1.TopologySpreadConstraint) { c.MinDomains = ptr(int32(3)) }))
	maybe(10, spreadOver(hostKey, 1, "app", "x", anyway))
	return newPod(fmt.Sprint("p", r.names), opts...)
}

// Whatever happens to a cluster, decisions break no rule, pods are refused only if all
// nodes break one, for reasons counted as they are, and nobody goes needlessly.
func TestDecisionsAreTheModels(t *testing.T) {
	for range 60 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { checkHistory(t, seed, 150) })
	}
}

func checkHistory(t *testing.T, seed uint64, steps int) {
	r := &writer{Rand: rand.New(rand.NewPCG(seed, 0))}
	s := NewSnapshot(seed)
	m := &model{nodes: map[string]*corev1.Node{}, pods: map[types.UID]*corev1.Pod{}, namespaces: map[string]map[string]string{}}
	for range steps {
		switch r.IntN(12) {
		case 0:
			n := r.node(r.one("n1", "n2", "n3", "n4", "n5", "n6"))
			m.nodes[n.Name] = n
			s.SetNode(n)
		case 1:
			if r.often(3) {
				name := r.one("n1", "n2", "n3", "n4", "n5", "n6")
				delete(m.nodes, name)
				s.RemoveNode(name)
			}
		case 2:
			name, of := r.one("default", "other"), map[string]string{"team": r.one("a", "b")}
			m.namespaces[name] = of
			s.SetNamespace(name, of)
		case 3, 4:
			for uid := range m.pods {
				delete(m.pods, uid)
				s.RemovePod(uid)
				break
			}
		default:
			checkPod(t, s, m, r.pod())
		}
	}
}

func checkPod(t *testing.T, s *Snapshot, m *model, pod *corev1.Pod) {
	t.Helper()
	d := Schedule(s, pod)
	good, reasons := m.answer(pod)
	if len(good) > 0 {
		if !slices.Contains(good, d.Node) {
			t.Fatalf("%s: %q is chosen of %v: %s", pod.Name, d.Node, good, d.Message())
		}
		placed := pod.DeepCopy()
		placed.Spec.NodeName = d.Node
		m.pods[pod.UID] = placed
		s.Place(pod, d.Node)
		return
	}
	if diff := cmp.Diff(reasons, d.Reasons); d.Node != "" || diff != "" && len(m.nodes) > 0 {
		t.Fatalf("%s: %q: %s", pod.Name, d.Node, diff)
	}
	checkVictims(t, m, pod, d)
}

// checkVictims checks that it helps that victims go, all of them, and that all are
// less important. If there are none, it would help on no node that all such went.
func checkVictims(t *testing.T, m *model, pod *corev1.Pod, d Decision) {
	t.Helper()
	without := func(gone []*corev1.Pod) *model {
		out := &model{nodes: m.nodes, namespaces: m.namespaces, pods: map[types.UID]*corev1.Pod{}}
		for uid, p := range m.pods {
			if !slices.ContainsFunc(gone, func(g *corev1.Pod) bool { return g.UID == uid }) {
				out.pods[uid] = p
			}
		}
		return out
	}
	if d.Nominated == "" {
		for _, n := range m.nodes {
			lower := slices.DeleteFunc(m.on(n.Name), func(p *corev1.Pod) bool { return priorityOf(p) >= priorityOf(pod) })
			if len(lower) > 0 && without(lower).why(pod, n) == nil && !helpless(m.why(pod, n)) {
				t.Fatalf("%s: %s would do without %d pods: %s", pod.Name, n.Name, len(lower), d.Message())
			}
		}
		return
	}
	node := m.nodes[d.Nominated]
	if why := without(d.Victims).why(pod, node); why != nil {
		t.Fatalf("%s: %d pods go from %s in vain: %s", pod.Name, len(d.Victims), d.Nominated, why)
	}
	for i, v := range d.Victims {
		others := slices.Delete(slices.Clone(d.Victims), i, i+1)
		if priorityOf(v) >= priorityOf(pod) || m.pods[v.UID].Spec.NodeName != d.Nominated || without(others).why(pod, node) == nil {
			t.Fatalf("%s: %s need not go from %s", pod.Name, v.Name, d.Nominated)
		}
	}
}

// helpless says of reasons that kube-scheduler does not try to help by preemption.
func helpless(why []string) bool {
	return slices.Contains(why, "node(s) didn't match pod affinity rules")
}
