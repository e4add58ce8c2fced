package scheduler

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWhoHasToGo(t *testing.T) {
	one := has("cpu", "1")
	half := asks("cpu", "500m")
	boss := newPod("boss", asks("cpu", "500m"), priority(10))
	for name, test := range map[string]struct {
		objects []any
		pod     *corev1.Pod
		node    string
		victims string
		note    string
	}{
		"the less important": {[]any{newNode("n", one), newPod("a", half, on("n"), priority(5)), newPod("b", half, on("n"), priority(1))}, boss, "n", "b", ""},
		"the later":          {[]any{newNode("n", one), newPod("a", half, on("n"), started(time.Unix(1, 0))), newPod("b", half, on("n"), started(time.Unix(2, 0)))}, boss, "n", "b", ""},
		"nobody of the same importance": {[]any{newNode("n", one), newPod("a", half, on("n"), priority(10)), newPod("b", half, on("n"), priority(11))}, boss, "", "",
			"0/1 nodes are available: 1 No preemption victims found for incoming pod."},
		"nobody if it does not help": {[]any{newNode("n", one), newPod("a", asks("cpu", "600m"), on("n"), priority(11)), newPod("b", asks("cpu", "400m"), on("n"))}, boss, "", "",
			"0/1 nodes are available: 1 Insufficient cpu."},
		"where the unimportant are": {[]any{newNode("n", one), newNode("m", one), newPod("a", asks("cpu", "1"), on("n"), priority(2)), newPod("b", half, on("m"), priority(1)), newPod("c", half, on("m"), priority(1))},
			newPod("boss", asks("cpu", "1"), priority(10)), "m", "b c", ""},
		"where the fewest are": {[]any{newNode("n", one), newNode("m", one), newPod("a", asks("cpu", "1"), on("n")), newPod("b", half, on("m")), newPod("c", half, on("m"))},
			newPod("boss", asks("cpu", "1"), priority(10)), "n", "a", ""},
		"who has the port": {[]any{newNode("n"), newPod("a", takesPort(80, ""), on("n")), newPod("b", on("n"))}, newPod("boss", takesPort(80, ""), priority(10)), "n", "a", ""},
		"who it is to be apart from": {[]any{newNode("n"), newPod("a", label("app", "x"), on("n")), newPod("b", on("n"))},
			newPod("boss", apart(podTerm(hostKey, "app", "x")), priority(10)), "n", "a", ""},
		"who wants to be apart": {[]any{newNode("n"), newPod("a", apart(podTerm(hostKey, "app", "x")), on("n")), newPod("b", on("n"))},
			newPod("boss", label("app", "x"), priority(10)), "n", "a", ""},
		"who is spread": {[]any{newNode("n"), newNode("m", cordoned), newPod("a", label("app", "x"), on("n")), newPod("b", on("n"))},
			newPod("boss", label("app", "x"), spreadOver(hostKey, 1, "app", "x"), priority(10)), "n", "a", ""},
		"nobody where it may not be": {[]any{newNode("n", one, taint("k", "", corev1.TaintEffectNoSchedule)), newPod("a", asks("cpu", "1"), on("n"))}, boss, "", "",
			"0/1 nodes are available: 1 Preemption is not helpful for scheduling."},
	} {
		t.Run(name, func(t *testing.T) {
			s := cluster(test.objects...)
			d := Schedule(s, test.pod)
			var victims []string
			for _, v := range d.Victims {
				victims = append(victims, v.Name)
			}
			slices.Sort(victims)
			if got := strings.Join(victims, " "); d.Node != "" || d.Nominated != test.node || got != test.victims || d.note != test.note {
				t.Errorf("%q: %s goes, %q", d.Nominated, got, d.note)
			}
			if again := Schedule(s, test.pod); again.Message() != d.Message() || again.Nominated != d.Nominated {
				t.Errorf("the same question again: %+v", again)
			}
		})
	}
}

func TestRoomIsKept(t *testing.T) {
	s := cluster(newNode("n", has("cpu", "1")))
	s.Nominate(newPod("boss", asks("cpu", "800m"), priority(10)), "n")
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"less important":  {newPod("p", asks("cpu", "500m"), priority(9)), ""},
		"as important":    {newPod("p", asks("cpu", "500m"), priority(10)), ""},
		"more important":  {newPod("p", asks("cpu", "500m"), priority(11)), "n"},
		"small":           {newPod("p", asks("cpu", "200m")), "n"},
		"the one itself":  {newPod("boss", asks("cpu", "800m"), priority(10)), "n"},
		"asks for no cpu": {newPod("p"), "n"},
	} {
		if d := Schedule(s, test.pod); d.Node != test.want || d.Node == "" && d.Reasons["Insufficient cpu"] != 1 {
			t.Errorf("%s: %+v", name, d)
		}
	}
	s.Nominate(newPod("boss"), "")
	if d := Schedule(s, newPod("p", asks("cpu", "500m"))); d.Node != "n" {
		t.Errorf("it is still kept: %+v", d)
	}
}

func TestNobodyElseGoesWhileVictimsEnd(t *testing.T) {
	ending := newPod("a", asks("cpu", "1"), on("n"))
	ending.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	s := cluster(newNode("n", has("cpu", "1")), newNode("m", has("cpu", "1")), ending, newPod("b", asks("cpu", "1"), on("m")))
	boss := newPod("boss", asks("cpu", "1"), priority(10), func(p *corev1.Pod) { p.Status.NominatedNodeName = "n" })
	if d := Schedule(s, boss); d.Nominated != "" || !strings.HasSuffix(d.Message(), "preemption: not eligible due to terminating pod on the nominated node.") {
		t.Errorf("%s: %s", d.Nominated, d.Message())
	}
}
