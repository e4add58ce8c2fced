package replicaset

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// pod is one that serves on a node for an hour, with changes.
func pod(uid string, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{}
	p.UID, p.Spec.NodeName, p.Status.Phase = types.UID(uid), "n-"+uid, corev1.PodRunning
	p.CreationTimestamp = metav1.NewTime(noon.Add(-2 * time.Hour))
	readyFor(time.Hour)(p)
	for _, change := range changes {
		change(p)
	}
	return p
}

func readyFor(d time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-d))}}
	}
}

func notReady(p *corev1.Pod)   { p.Status.Conditions = nil }
func unassigned(p *corev1.Pod) { p.Spec.NodeName = "" }
func pending(p *corev1.Pod)    { p.Status.Phase = corev1.PodPending }
func unknown(p *corev1.Pod)    { p.Status.Phase = corev1.PodUnknown }

func costs(n string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.PodDeletionCost: n} }
}

func on(node string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = node } }

func aged(d time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(noon.Add(-d)) }
}

func restarted(n int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: n}} }
}

func sidecarRestarted(n int32) func(*corev1.Pod) {
	always := corev1.ContainerRestartPolicyAlways
	return func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: "side", RestartPolicy: &always}}
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "side", RestartCount: n}}
	}
}

func state(replicas int32, pods ...*corev1.Pod) seen {
	return seen{set: &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Replicas: &replicas}}, pods: pods, related: pods, now: noon}
}

// Of two pods, b by its name, a goes. What comes later in the order never outweighs
// what comes before.
func TestWhoGoesFirst(t *testing.T) {
	for name, c := range map[string]struct{ a, b *corev1.Pod }{
		"unassigned, though it costs more":        {pod("a", unassigned, costs("9")), pod("b", pending)},
		"pending before unknown":                  {pod("a", pending), pod("b", unknown, notReady)},
		"unknown before running":                  {pod("a", unknown), pod("b", notReady)},
		"not ready, though it costs more":         {pod("a", notReady, costs("9")), pod("b")},
		"a lower cost, though ready for longer":   {pod("a", costs("-1")), pod("b", readyFor(time.Second))},
		"a cost that is no number is none":        {pod("a", costs("cheap")), pod("b", costs("1"))},
		"ready for a shorter time, not restarted": {pod("a", readyFor(time.Minute)), pod("b", restarted(9))},
		"restarted more often, though older":      {pod("a", restarted(2)), pod("b", restarted(1), aged(time.Minute))},
		"whose sidecar was restarted more often":  {pod("a", sidecarRestarted(2)), pod("b", sidecarRestarted(1), aged(time.Minute))},
		"younger":                                 {pod("a", aged(time.Minute)), pod("b")},
		"by chance, if of about the same age":     {pod("a", aged(121*time.Minute)), pod("b")},
	} {
		t.Run(name, func(t *testing.T) {
			for _, pods := range [][]*corev1.Pod{{c.a, c.b}, {c.b, c.a}} {
				if got := decide(state(1, pods...)).remove; len(got) != 1 || got[0] != c.a {
					t.Errorf("of %s and %s, %v goes", pods[0].UID, pods[1].UID, got)
				}
			}
		})
	}
}

func TestPodsStaySpreadOverNodes(t *testing.T) {
	s := state(2, pod("c", on("n1")), pod("a", on("n2")), pod("b", on("n1"), readyFor(2*time.Hour)))
	s.related = append(s.related, pod("other", on("n2")), pod("gone", on("n2"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), pod("more", on("n2")))
	if got := decide(s).remove; len(got) != 1 || got[0].UID != "a" {
		t.Errorf("%v goes, though n2 has most pods of the Deployment", got)
	}
}

func TestOneThatIsDeletedDoesNothing(t *testing.T) {
	s := state(3, pod("a"))
	s.set.DeletionTimestamp = &metav1.Time{Time: noon}
	if p := decide(s); !p.nothing() {
		t.Errorf("it does %+v", p)
	}
}

func TestManyPodsComeAndGoInTurns(t *testing.T) {
	if p := decide(state(burst + 1)); p.create != burst || !p.more {
		t.Errorf("%d are made, more is %v", p.create, p.more)
	}
	var many []*corev1.Pod
	for i := range burst + 1 {
		many = append(many, pod(fmt.Sprint(i)))
	}
	if p := decide(state(0, many...)); len(p.remove) != burst || !p.more {
		t.Errorf("%d go, more is %v", len(p.remove), p.more)
	}
}

// random is a state of any pods.
func random(r *rand.Rand) seen {
	var pods []*corev1.Pod
	for i := range r.IntN(12) {
		changes := []func(*corev1.Pod){on(fmt.Sprint("n", r.IntN(3))), readyFor(time.Duration(r.IntN(100)) * time.Minute)}
		for _, c := range []func(*corev1.Pod){
			notReady, unassigned, pending, unknown, costs(fmt.Sprint(r.IntN(3))), restarted(int32(r.IntN(3))), aged(time.Hour),
			func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon} },
		} {
			if r.IntN(3) == 0 {
				changes = append(changes, c)
			}
		}
		pods = append(pods, pod(fmt.Sprint(i), changes...))
	}
	return state(int32(r.IntN(8)), pods...)
}

// apply is what a plan leads to.
func apply(s seen, p plan) seen {
	next := s
	next.pods = slices.DeleteFunc(slices.Clone(s.pods), func(p2 *corev1.Pod) bool { return slices.Contains(p.remove, p2) })
	for i := range p.create {
		next.pods = append(next.pods, pod(fmt.Sprint("new", i), pending, unassigned, notReady))
	}
	next.related = next.pods
	return next
}

func TestAPlanLeadsToWhatIsWantedAndNoFurther(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 3000 {
		s := random(r)
		p := decide(s)
		next := apply(s, p)
		if got := len(next.active()); got != wanted(s.set) {
			t.Fatalf("%d pods, want %d", got, wanted(s.set))
		}
		if again := decide(next); !again.nothing() {
			t.Fatalf("after %+v comes %+v", p, again)
		}
		for _, gone := range p.remove {
			for _, stays := range next.active() {
				if ready(gone) && gone.Spec.NodeName != "" && !ready(stays) && stays.Status.Phase == gone.Status.Phase {
					t.Fatalf("%s goes, which serves, and not %s", gone.UID, stays.UID)
				}
			}
		}
		if st := next.status(nil); st.AvailableReplicas > st.ReadyReplicas || st.ReadyReplicas > st.Replicas || int(st.Replicas+*st.TerminatingReplicas) != len(next.pods) {
			t.Fatalf("the counts are not in order: %+v", st)
		}
	}
}

// Sorting needs an order: no two pods before each other, nor in a circle.
func TestTheOrderIsOne(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		s := random(r)
		rank := s.ranking()
		for _, a := range s.pods {
			for _, b := range s.pods {
				if rank.compare(a, b) != -rank.compare(b, a) {
					t.Fatalf("%s and %s are before each other", a.UID, b.UID)
				}
				for _, c := range s.pods {
					if rank.compare(a, b) < 0 && rank.compare(b, c) < 0 && rank.compare(a, c) >= 0 {
						t.Fatalf("%s, %s and %s are in a circle", a.UID, b.UID, c.UID)
					}
				}
			}
		}
	}
}

func TestSlowStartStopsAtTheFirstFailure(t *testing.T) {
	for name, c := range map[string]struct{ n, works, calls int }{
		"nothing to do":         {0, 0, 0},
		"all work":              {10, 10, 10},
		"none works":            {100, 0, 1},
		"the third batch fails": {100, 3, 7},
	} {
		t.Run(name, func(t *testing.T) {
			turns := make(chan int, c.n)
			for i := range c.n {
				turns <- i
			}
			calls := make(chan struct{}, c.n)
			err := slowStart(c.n, func() error {
				calls <- struct{}{}
				if <-turns >= c.works {
					return fmt.Errorf("no more")
				}
				return nil
			})
			if len(calls) != c.calls || (err != nil) != (c.works < c.n) {
				t.Errorf("%d calls, error %v; want %d calls", len(calls), err, c.calls)
			}
		})
	}
}

// A condition is written once for many failures with different messages.
func TestAFailureIsNotWrittenAgain(t *testing.T) {
	s := state(1)
	s.set.Status = s.status(&failure{failedCreate, fmt.Errorf("web-1 is forbidden")})
	again := s.status(&failure{failedCreate, fmt.Errorf("web-2 is forbidden")})
	if got := again.Conditions; len(got) != 1 || got[0].Message != "web-1 is forbidden" || got[0].Reason != failedCreate {
		t.Errorf("conditions are %v", got)
	}
	if got := s.status(&failure{failedDelete, fmt.Errorf("stays")}).Conditions; len(got) != 1 || got[0].Reason != failedDelete {
		t.Errorf("another failure gives %v", got)
	}
	if got := s.status(nil).Conditions; len(got) != 0 {
		t.Errorf("no failure gives %v", got)
	}
}
