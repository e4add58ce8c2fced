package nodelifecycle

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// told is a node with conditions, such as "Ready=True DiskPressure=True".
func told(conditions string) *corev1.Node {
	n := node("a", "")
	for c := range strings.FieldsSeq(conditions) {
		kind, status, _ := strings.Cut(c, "=")
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeConditionType(kind), Status: corev1.ConditionStatus(status)})
	}
	return n
}

// without the prefix that they all have
func shown(taints []corev1.Taint) string {
	var out []string
	for _, t := range taints {
		out = append(out, strings.TrimPrefix(t.Key, "node.kubernetes.io/")+":"+string(t.Effect))
	}
	return strings.Join(out, " ")
}

func TestTaintsThatKeepPodsAway(t *testing.T) {
	const no = corev1.TaintEffectNoSchedule
	for name, c := range map[string]struct {
		conditions string
		cordoned   bool
		has        []corev1.Taint
		want       string // "" is that they stay
	}{
		"well":               {"Ready=True MemoryPressure=False", false, nil, ""},
		"well again":         {"Ready=True", false, []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: no}, {Key: "mine", Effect: no}}, "mine:NoSchedule"},
		"never told":         {"", false, nil, ""},
		"not ready":          {"Ready=False", false, []corev1.Taint{{Key: "mine", Effect: no}}, "mine:NoSchedule not-ready:NoSchedule"},
		"unknown":            {"Ready=Unknown MemoryPressure=Unknown", false, []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: no}}, "unreachable:NoSchedule"},
		"as it is":           {"Ready=Unknown", false, []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: no}}, ""},
		"under pressure":     {"Ready=True MemoryPressure=True DiskPressure=True PIDPressure=True", false, nil, "memory-pressure:NoSchedule disk-pressure:NoSchedule pid-pressure:NoSchedule"},
		"without a network":  {"Ready=True NetworkUnavailable=True", false, nil, "network-unavailable:NoSchedule"},
		"cordoned":           {"Ready=True", true, nil, "unschedulable:NoSchedule"},
		"uncordoned":         {"Ready=True", false, []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: no}}, "-"},
		"to be evicted from": {"Ready=True", false, []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := told(c.conditions)
			n.Spec.Unschedulable, n.Spec.Taints = c.cordoned, c.has
			do := decideNode(n, nil, noon)
			got := shown(do.taints)
			if !do.retaint {
				got = ""
			} else if got == "" {
				got = "-"
			}
			if got != c.want {
				t.Errorf("taints become %q, want %q", got, c.want)
			}
		})
	}
}

func TestPodsOfWhichNobodyKnows(t *testing.T) {
	ready := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
	for conditions, want := range map[string]int{"Ready=Unknown": 1, "Ready=False": 0, "Ready=True": 0, "": 0} {
		if do := decideNode(told(conditions), []*corev1.Pod{ready, {}}, noon); len(do.unready) != want {
			t.Errorf("%q: %d pods are not ready, want %d", conditions, len(do.unready), want)
		}
	}
}

// Whatever a node has, one write is enough; what others set stays as it is.
func TestTaintsAreSetOnce(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	keys := []string{"mine", corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeMemoryPressure, corev1.TaintNodeUnschedulable}
	effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule}
	statuses := []string{"True", "False", "Unknown"}
	for range 3000 {
		n := told(fmt.Sprintf("Ready=%s MemoryPressure=%s", statuses[r.IntN(3)], statuses[r.IntN(3)]))
		n.Spec.Unschedulable = r.IntN(2) == 0
		for _, key := range keys {
			for _, effect := range effects {
				if r.IntN(4) == 0 {
					n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: effect})
				}
			}
		}
		others := slices.DeleteFunc(slices.Clone(n.Spec.Taints), repels)
		do := decideNode(n, nil, noon)
		if do.retaint {
			n.Spec.Taints = do.taints
		}
		if again := decideNode(n, nil, noon); again.retaint {
			t.Fatalf("after %s comes %s", shown(do.taints), shown(again.taints))
		}
		if got := slices.DeleteFunc(slices.Clone(n.Spec.Taints), repels); shown(got) != shown(others) {
			t.Fatalf("those of others are %s, were %s", shown(got), shown(others))
		}
		for _, want := range repelling(n) {
			if !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&want) }) {
				t.Fatalf("%s is missing in %s", want.Key, shown(n.Spec.Taints))
			}
		}
	}
}
