package scheduler

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Of two nodes that will do, "good" is better.
func TestScores(t *testing.T) {
	const gib = 1 << 30
	soft := corev1.TaintEffectPreferNoSchedule
	for name, test := range map[string]struct {
		objects []any
		pod     *corev1.Pod
	}{
		"the emptier": {[]any{newNode("good"), newNode("bad"), newPod("a", asks("cpu", "1", "memory", "4Gi"), on("bad"))}, newPod("p", asks("cpu", "1", "memory", "4Gi"))},
		"the emptier, of pods that ask for nothing": {[]any{newNode("good"), newNode("bad"), newPod("a", on("bad"))}, newPod("p")},
		"the more balanced": {[]any{newNode("good"), newNode("bad"),
			newPod("a", asks("cpu", "1", "memory", "4Gi"), on("good")), newPod("b", asks("cpu", "2"), on("bad"))}, newPod("p", asks("cpu", "1", "memory", "4Gi"))},
		"the one that it likes": {[]any{newNode("good", nodeLabel("disk", "ssd")), newNode("bad")}, newPod("p", likesNode(1, nodeTerm("disk", corev1.NodeSelectorOpIn, "ssd")))},
		"the one that it likes more": {[]any{newNode("good", nodeLabel("disk", "ssd")), newNode("bad", nodeLabel("disk", "hdd"))},
			newPod("p", likesNode(1, nodeTerm("disk", corev1.NodeSelectorOpIn, "hdd")), likesNode(9, nodeTerm("disk", corev1.NodeSelectorOpIn, "ssd")))},
		"the one without a taint":   {[]any{newNode("good"), newNode("bad", taint("k", "", soft))}, newPod("p")},
		"the one with fewer taints": {[]any{newNode("good", taint("k", "", soft)), newNode("bad", taint("k", "", soft), taint("l", "", soft))}, newPod("p")},
		"near those it likes":       {[]any{newNode("good"), newNode("bad"), newPod("a", label("app", "db"), on("good"))}, newPod("p", likesNear(50, podTerm(hostKey, "app", "db")))},
		"far from those it does not like": {[]any{newNode("good"), newNode("bad"), newPod("a", label("app", "db"), on("bad")), newPod("b", on("good"))},
			newPod("p", likesApart(50, podTerm(hostKey, "app", "db")))},
		"near those who like it": {[]any{newNode("good"), newNode("bad"), newPod("a", likesNear(50, podTerm(hostKey, "app", "web")), on("good"))}, newPod("p", label("app", "web"))},
		"near those who need it": {[]any{newNode("good"), newNode("bad"), newPod("a", near(podTerm(hostKey, "app", "web")), on("good"))}, newPod("p", label("app", "web"))},
		"far from those who do not like it": {[]any{newNode("good"), newNode("bad"), newPod("a", likesApart(50, podTerm(hostKey, "app", "web")), on("bad")), newPod("b", on("good"))},
			newPod("p", label("app", "web"))},
		"spread": {[]any{newNode("good", inZone("a")), newNode("bad", inZone("b")), newPod("a", label("app", "web"), on("bad")), newPod("b", on("good"))},
			newPod("p", label("app", "web"), spreadOver(zoneKey, 1, "app", "web", anyway))},
		"spread, with the label": {[]any{newNode("good", inZone("a")), newNode("bad"), newPod("b", on("good"))},
			newPod("p", label("app", "web"), spreadOver(zoneKey, 1, "app", "web", anyway))},
		"the one with the image": {[]any{newNode("good", hasImage("app:1", gib)), newNode("bad")}, newPod("p")},
	} {
		t.Run(name, func(t *testing.T) {
			for _, seed := range []uint64{1, 2, 3, 4, 5, 6, 7, 8} {
				s := cluster(test.objects...)
				s.seed = seed
				if d := Schedule(s, test.pod); d.Node != "good" {
					t.Errorf("seed %d: %+v", seed, d)
				}
			}
		})
	}
}

// The numbers are those of kube-scheduler's formulas.
func TestScoresInNumbers(t *testing.T) {
	s := cluster(newNode("n", has("cpu", "4", "memory", "16Gi")), newPod("a", asks("cpu", "1", "memory", "2Gi"), on("n")))
	n, p := s.nodes[0], s.inspect(newPod("p", asks("cpu", "1", "memory", "2Gi")))
	if got := leastAllocated(p, n); got != (50+75)/2 {
		t.Errorf("least allocated: %d", got)
	}
	if got := balanced(p, n); got != 87 { // 1 - (1/2-1/4)/2
		t.Errorf("balanced: %d", got)
	}
}

// Equal nodes are all used, and the same question has the same answer.
func TestTiesFallByTheSeed(t *testing.T) {
	used := map[string]int{}
	for seed := range uint64(200) {
		s := cluster(newNode("a"), newNode("b"), newNode("c"))
		s.seed = seed
		pod := newPod(fmt.Sprint("p", seed%7))
		first := Schedule(s, pod).Node
		if again := Schedule(s, pod).Node; again != first {
			t.Fatalf("seed %d: %s, and then %s", seed, first, again)
		}
		used[first]++
	}
	for _, name := range []string{"a", "b", "c"} {
		if used[name] < 40 {
			t.Errorf("nodes are used %v", used)
		}
	}
}
