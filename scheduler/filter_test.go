package scheduler

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func ptr[T any](v T) *T { return &v }

// Every filter, on its own: "" is that the pod gets its node.
func TestFilters(t *testing.T) {
	const noFit = "0/1 nodes are available: 1 "
	const helpless = " preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
	const nobody = " preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
	field := func(op corev1.NodeSelectorOperator, name string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: op, Values: []string{name}}}}
	}
	always := corev1.ContainerRestartPolicyAlways
	for name, test := range map[string]struct {
		node *corev1.Node
		on   []*corev1.Pod
		pod  *corev1.Pod
		want string
	}{
		"anything goes": {newNode("n"), nil, newPod("p"), ""},
		"fits to the last bit": {newNode("n", has("cpu", "1")), []*corev1.Pod{newPod("a", asks("cpu", "600m"), on("n"))},
			newPod("p", asks("cpu", "400m")), ""},
		"cpu": {newNode("n", has("cpu", "1")), []*corev1.Pod{newPod("a", asks("cpu", "600m"), on("n"))},
			newPod("p", asks("cpu", "401m")), noFit + "Insufficient cpu." + nobody},
		"more than the node has": {newNode("n", has("cpu", "1")), nil, newPod("p", asks("cpu", "2")), noFit + "Insufficient cpu." + helpless},
		"memory":                 {newNode("n"), nil, newPod("p", asks("memory", "17Gi")), noFit + "Insufficient memory." + helpless},
		"ephemeral storage":      {newNode("n"), nil, newPod("p", asks("ephemeral-storage", "101Gi")), noFit + "Insufficient ephemeral-storage." + helpless},
		"several": {newNode("n"), nil, newPod("p", asks("cpu", "5", "memory", "17Gi")),
			"0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory." + helpless},
		"extended":          {newNode("n", has("example.com/gpu", "2")), nil, newPod("p", asks("example.com/gpu", "2")), ""},
		"extended, missing": {newNode("n"), nil, newPod("p", asks("example.com/gpu", "1")), noFit + "Insufficient example.com/gpu." + helpless},
		"too many pods": {newNode("n", has("pods", "1")), []*corev1.Pod{newPod("a", on("n"))}, newPod("p"),
			noFit + "Too many pods." + nobody},
		"pods that have ended take nothing": {newNode("n", has("pods", "1")),
			[]*corev1.Pod{newPod("a", on("n"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })}, newPod("p"), ""},
		"init containers run before": {newNode("n", has("cpu", "1")), nil, newPod("p", asks("cpu", "500m"), func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "i", Resources: corev1.ResourceRequirements{Requests: list("cpu", "1")}}}
		}), ""},
		"sidecars run beside": {newNode("n", has("cpu", "1")), nil, newPod("p", asks("cpu", "500m"), func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "i", RestartPolicy: &always, Resources: corev1.ResourceRequirements{Requests: list("cpu", "600m")}}}
		}), noFit + "Insufficient cpu." + helpless},
		"overhead": {newNode("n", has("cpu", "1")), nil, newPod("p", asks("cpu", "900m"), func(p *corev1.Pod) { p.Spec.Overhead = list("cpu", "200m") }),
			noFit + "Insufficient cpu." + helpless},

		"another name":   {newNode("n"), nil, newPod("p", on("m")), noFit + "node(s) didn't match the requested node name." + helpless},
		"its name":       {newNode("n"), nil, newPod("p", on("n")), ""},
		"cordoned":       {newNode("n", cordoned), nil, newPod("p"), noFit + "node(s) were unschedulable." + helpless},
		"cordon ignored": {newNode("n", cordoned), nil, newPod("p", tolerating(corev1.TaintNodeUnschedulable)), ""},

		"selector":        {newNode("n", nodeLabel("a", "b")), nil, newPod("p", selecting("a", "b")), ""},
		"other selector":  {newNode("n", nodeLabel("a", "b")), nil, newPod("p", selecting("a", "c")), noFit + "node(s) didn't match Pod's node affinity/selector." + helpless},
		"affinity":        {newNode("n", nodeLabel("a", "b")), nil, newPod("p", needsNode(nodeTerm("a", corev1.NodeSelectorOpIn, "c"), nodeTerm("a", corev1.NodeSelectorOpExists))), ""},
		"other affinity":  {newNode("n", nodeLabel("a", "b")), nil, newPod("p", needsNode(nodeTerm("a", corev1.NodeSelectorOpNotIn, "b"))), noFit + "node(s) didn't match Pod's node affinity/selector." + helpless},
		"greater":         {newNode("n", nodeLabel("a", "5")), nil, newPod("p", needsNode(nodeTerm("a", corev1.NodeSelectorOpGt, "4"))), ""},
		"field":           {newNode("n"), nil, newPod("p", needsNode(field(corev1.NodeSelectorOpIn, "n"))), ""},
		"other field":     {newNode("n"), nil, newPod("p", needsNode(field(corev1.NodeSelectorOpNotIn, "n"))), noFit + "node(s) didn't match Pod's node affinity/selector." + helpless},
		"no term matches": {newNode("n"), nil, newPod("p", needsNode(corev1.NodeSelectorTerm{})), noFit + "node(s) didn't match Pod's node affinity/selector." + helpless},

		"taint":            {newNode("n", taint("k", "v", corev1.TaintEffectNoSchedule)), nil, newPod("p"), noFit + "node(s) had untolerated taint {k: v}." + helpless},
		"taint NoExecute":  {newNode("n", taint("k", "", corev1.TaintEffectNoExecute)), nil, newPod("p"), noFit + "node(s) had untolerated taint {k: }." + helpless},
		"tolerated":        {newNode("n", taint("k", "v", corev1.TaintEffectNoSchedule)), nil, newPod("p", tolerating("k")), ""},
		"one of two":       {newNode("n", taint("k", "v", corev1.TaintEffectNoSchedule), taint("l", "", corev1.TaintEffectNoSchedule)), nil, newPod("p", tolerating("k")), noFit + "node(s) had untolerated taint {l: }." + helpless},
		"preference alone": {newNode("n", taint("k", "v", corev1.TaintEffectPreferNoSchedule)), nil, newPod("p"), ""},

		"port":          {newNode("n"), []*corev1.Pod{newPod("a", takesPort(80, ""), on("n"))}, newPod("p", takesPort(80, "10.0.0.1")), noFit + "node(s) didn't have free ports for the requested pod ports." + nobody},
		"other port":    {newNode("n"), []*corev1.Pod{newPod("a", takesPort(80, ""), on("n"))}, newPod("p", takesPort(81, "")), ""},
		"other address": {newNode("n"), []*corev1.Pod{newPod("a", takesPort(80, "10.0.0.2"), on("n"))}, newPod("p", takesPort(80, "10.0.0.1")), ""},

		"near":        {newNode("n"), []*corev1.Pod{newPod("a", label("app", "db"), on("n"))}, newPod("p", near(podTerm(hostKey, "app", "db"))), ""},
		"near nobody": {newNode("n"), nil, newPod("p", near(podTerm(hostKey, "app", "db"))), noFit + "node(s) didn't match pod affinity rules." + helpless},
		"near itself": {newNode("n"), nil, newPod("p", label("app", "db"), near(podTerm(hostKey, "app", "db"))), ""},
		"near itself, where the label is not": {newNode("n"), nil, newPod("p", label("app", "db"), near(podTerm(zoneKey, "app", "db"))),
			noFit + "node(s) didn't match pod affinity rules." + helpless},
		"near in another namespace": {newNode("n"), []*corev1.Pod{newPod("a", inNamespace("other"), label("app", "db"), on("n"))}, newPod("p", near(podTerm(hostKey, "app", "db"))),
			noFit + "node(s) didn't match pod affinity rules." + helpless},
		"near all terms at once": {newNode("n"), []*corev1.Pod{newPod("a", label("a", "1"), on("n")), newPod("b", label("b", "1"), on("n"))},
			newPod("p", near(podTerm(hostKey, "a", "1"), podTerm(hostKey, "b", "1"))), noFit + "node(s) didn't match pod affinity rules." + helpless},
		"apart": {newNode("n"), []*corev1.Pod{newPod("a", label("app", "db"), on("n"))}, newPod("p", apart(podTerm(hostKey, "app", "db"))),
			noFit + "node(s) didn't match pod anti-affinity rules." + nobody},
		"apart where the label is not": {newNode("n"), []*corev1.Pod{newPod("a", label("app", "db"), on("n"))}, newPod("p", apart(podTerm(zoneKey, "app", "db"))), ""},
		"kept apart": {newNode("n"), []*corev1.Pod{newPod("a", apart(podTerm(hostKey, "app", "db")), on("n"))}, newPod("p", label("app", "db")),
			noFit + "node(s) didn't satisfy existing pods anti-affinity rules." + nobody},

		"spread, no label": {newNode("n"), nil, newPod("p", spreadOver(zoneKey, 1, "app", "a")),
			noFit + "node(s) didn't match pod topology spread constraints (missing required label)." + helpless},
		"spread, too few domains": {newNode("n"), []*corev1.Pod{newPod("a", label("app", "a"), on("n"))},
			newPod("p", label("app", "a"), spreadOver(hostKey, 1, "app", "a", func(c *corev1.TopologySpreadConstraint) { c.MinDomains = ptr[int32](2) })),
			noFit + "node(s) didn't match pod topology spread constraints." + nobody},
		"spread, domains enough": {newNode("n"), []*corev1.Pod{newPod("a", label("app", "a"), on("n"))},
			newPod("p", label("app", "a"), spreadOver(hostKey, 1, "app", "a")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := cluster(test.node)
			for _, p := range test.on {
				s.SetPod(p)
			}
			d := Schedule(s, test.pod)
			if got := d.Message(); got != test.want || (d.Node == "n") != (test.want == "") {
				t.Errorf("%q: %s", d.Node, cmp.Diff(test.want, got))
			}
		})
	}
}

// Terms name namespaces, or select them by their labels as they now are.
func TestNamespacesOfTerms(t *testing.T) {
	selecting := func(labels map[string]string) func(*corev1.PodAffinityTerm) {
		return func(t *corev1.PodAffinityTerm) {
			t.NamespaceSelector = &metav1.LabelSelector{MatchLabels: labels}
		}
	}
	named := func(names ...string) func(*corev1.PodAffinityTerm) {
		return func(t *corev1.PodAffinityTerm) { t.Namespaces = names }
	}
	for name, test := range map[string]struct {
		change func(*corev1.PodAffinityTerm)
		want   bool // that the pod in "other" is meant
	}{
		"own":            {func(*corev1.PodAffinityTerm) {}, false},
		"named":          {named("other"), true},
		"another named":  {named("third"), false},
		"selected":       {selecting(map[string]string{"team": "a"}), true},
		"not selected":   {selecting(map[string]string{"team": "b"}), false},
		"all":            {selecting(nil), true},
		"named and none": {func(t *corev1.PodAffinityTerm) { named("other")(t); selecting(map[string]string{"team": "b"})(t) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			term := podTerm(hostKey, "app", "db")
			test.change(&term)
			s := cluster(newNode("n"), newPod("a", inNamespace("other"), label("app", "db"), on("n")))
			s.SetNamespace("other", map[string]string{"team": "a"})
			pod := newPod("p", apart(term))
			if got := Schedule(s, pod).Node == ""; got != test.want {
				t.Errorf("the pod of another namespace is meant: %v", got)
			}
			s.SetNamespace("other", map[string]string{"team": "c"})
			byLabel := term.NamespaceSelector != nil && len(term.NamespaceSelector.MatchLabels) > 0 && term.Namespaces == nil
			if got := Schedule(s, pod).Node == ""; got != (test.want && !byLabel) {
				t.Errorf("after the labels have changed, it is meant: %v", got)
			}
		})
	}
}

// Which nodes and pods constraints of spread count.
func TestSpreadCounts(t *testing.T) {
	honor, ignore := corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore
	with := func(f func(*corev1.TopologySpreadConstraint), opts ...podOption) *corev1.Pod {
		return newPod("p", append([]podOption{label("app", "a"), label("version", "2"), spreadOver(zoneKey, 1, "app", "a", f)}, opts...)...)
	}
	// Zone a has one pod, and zone b has none: b is where it may go.
	a1 := newPod("a1", label("app", "a"), label("version", "1"), on("na"))
	for name, test := range map[string]struct {
		objects []any
		pod     *corev1.Pod
		want    bool // that zone a will do
	}{
		"skew":      {[]any{newNode("nb", inZone("b"))}, with(func(*corev1.TopologySpreadConstraint) {}), false},
		"more skew": {[]any{newNode("nb", inZone("b"))}, with(func(c *corev1.TopologySpreadConstraint) { c.MaxSkew = 2 }), true},
		"a domain that it does not want": {[]any{newNode("nb", inZone("b"))},
			with(func(*corev1.TopologySpreadConstraint) {}, needsNode(nodeTerm(zoneKey, corev1.NodeSelectorOpIn, "a"))), true},
		"which counts all the same": {[]any{newNode("nb", inZone("b"))},
			with(func(c *corev1.TopologySpreadConstraint) { c.NodeAffinityPolicy = &ignore }, needsNode(nodeTerm(zoneKey, corev1.NodeSelectorOpIn, "a"))), false},
		"a tainted domain": {[]any{newNode("nb", inZone("b"), taint("k", "", corev1.TaintEffectNoSchedule))},
			with(func(*corev1.TopologySpreadConstraint) {}), false},
		"which does not count": {[]any{newNode("nb", inZone("b"), taint("k", "", corev1.TaintEffectNoSchedule))},
			with(func(c *corev1.TopologySpreadConstraint) { c.NodeTaintsPolicy = &honor }), true},
		"of the pod's own version": {[]any{newNode("nb", inZone("b"))},
			with(func(c *corev1.TopologySpreadConstraint) { c.MatchLabelKeys = []string{"version", "absent"} }), true},
		"of another namespace":  {[]any{newNode("nb", inZone("b"))}, with(func(*corev1.TopologySpreadConstraint) {}, inNamespace("other")), true},
		"nodes without a label": {[]any{newNode("nb")}, with(func(*corev1.TopologySpreadConstraint) {}), true},
	} {
		t.Run(name, func(t *testing.T) {
			s := cluster(append(test.objects, newNode("na", inZone("a")), a1)...)
			test.pod.Spec.NodeName = "na" // which is the question
			if got := Schedule(s, test.pod); (got.Node == "na") != test.want {
				t.Errorf("%+v", got)
			}
		})
	}
	t.Run("pods that end", func(t *testing.T) {
		ending := a1.DeepCopy()
		ending.DeletionTimestamp = &metav1.Time{}
		s := cluster(newNode("na", inZone("a")), newNode("nb", inZone("b")), ending)
		if got := Schedule(s, with(func(*corev1.TopologySpreadConstraint) {}, on("na"))); got.Node != "na" {
			t.Errorf("%+v", got)
		}
	})
}

func TestReasonsAreCounted(t *testing.T) {
	s := cluster(
		newNode("a", has("cpu", "1")), newNode("b", has("cpu", "1")),
		newNode("c", taint("k", "v", corev1.TaintEffectNoSchedule)), newNode("d", taint("k", "v", corev1.TaintEffectNoExecute)),
		newNode("e", taint("k", "w", corev1.TaintEffectNoSchedule)), newNode("f", cordoned),
		newPod("x", asks("cpu", "500m"), on("a")), newPod("y", asks("cpu", "100m"), on("b"), priority(5)),
	)
	pod := newPod("p", asks("cpu", "950m"), priority(5))
	want := "0/6 nodes are available: 1 node(s) had untolerated taint {k: w}, 1 node(s) were unschedulable, 2 Insufficient cpu, " +
		"2 node(s) had untolerated taint {k: v}."
	d := Schedule(s, pod)
	if got := d.Message(); got != want || d.Nominated != "a" {
		t.Error(cmp.Diff(want, got), d.Nominated)
	}
	pod.Spec.PreemptionPolicy = ptr(corev1.PreemptNever)
	if got := Schedule(s, pod).Message(); got != want+" preemption: not eligible due to preemptionPolicy=Never." {
		t.Error(got)
	}
	if got := Schedule(NewSnapshot(1), pod).Message(); got != "no nodes available to schedule pods" {
		t.Error(got)
	}
}
