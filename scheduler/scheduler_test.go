package scheduler

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/events"
	"github.com/even-keel/evenkeel/informer"
)

func TestMain(m *testing.M) { evenkeeltest.Main(m) }

// scene is a server with a scheduler.
type scene struct {
	*evenkeeltest.Env
	t     testing.TB
	pods  *client.Client[*corev1.Pod]
	nodes *client.Client[*corev1.Node]
}

func newScene(t testing.TB) *scene {
	env := evenkeeltest.Start(t)
	return &scene{Env: env, t: t, pods: client.Of[*corev1.Pod](env.Conn()), nodes: client.Of[*corev1.Node](env.Conn())}
}

// runScheduler is a program with nothing but a scheduler.
func runScheduler(o Options, informers informer.Config) func(ctx context.Context, cfg *rest.Config) error {
	return func(ctx context.Context, cfg *rest.Config) error {
		base, err := controller.NewBase(cfg, controller.BaseOptions{Informers: informers})
		if err != nil {
			return err
		}
		told := events.New(base.Conn(), events.Options{Component: Component})
		s := New(base, told, o)
		g, ctx := errgroup.WithContext(ctx)
		for _, run := range []func(context.Context) error{base.Run, told.Run, s.Run} {
			g.Go(func() error { return run(ctx) })
		}
		return g.Wait()
	}
}

func (s *scene) schedule(o Options) (stop func()) {
	return s.Run(runScheduler(o, informer.Config{MaxBackoff: 100 * time.Millisecond, DetectMutations: true}))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// addNode makes a node that is ready: the server keeps pods off new ones.
func (s *scene) addNode(n *corev1.Node) {
	s.t.Helper()
	made := must(s.nodes.Create(s.t.Context(), n))
	made.Spec.Taints = n.Spec.Taints
	must(s.nodes.Update(s.t.Context(), made))
}

// addPod makes a pod, which gets its UID from the server, however often the
// connection breaks.
func (s *scene) addPod(name string, opts ...podOption) *corev1.Pod {
	s.t.Helper()
	pod := newPod(name, opts...)
	pod.UID = ""
	for {
		made, err := s.pods.Create(s.t.Context(), pod)
		switch {
		case err == nil:
			return made
		case client.IsAlreadyExists(err): // the answer was lost
			return must(s.pods.Get(s.t.Context(), client.KeyOf(pod)))
		case s.t.Context().Err() != nil:
			s.t.Fatal(err)
		}
	}
}

func (s *scene) eventuallyOn(name string, nodes ...string) *corev1.Pod {
	s.t.Helper()
	return evenkeeltest.Eventually(s.Env, client.Key{Namespace: "default", Name: name}, func(p *corev1.Pod) error {
		for _, n := range nodes {
			if p.Spec.NodeName == n {
				return nil
			}
		}
		return fmt.Errorf("it is on %q: %v", p.Spec.NodeName, p.Status.Conditions)
	})
}

func (s *scene) eventuallyUnschedulable(name, message string) *corev1.Pod {
	s.t.Helper()
	return evenkeeltest.Eventually(s.Env, client.Key{Namespace: "default", Name: name}, func(p *corev1.Pod) error {
		c := conditionOf(p, corev1.PodScheduled)
		if c == nil || c.Status != corev1.ConditionFalse || c.Reason != corev1.PodReasonUnschedulable || !strings.HasPrefix(c.Message, message) {
			return fmt.Errorf("%q: its condition is %+v", p.Spec.NodeName, c)
		}
		return nil
	})
}

func (s *scene) eventuallyTold(pod *corev1.Pod, kind, reason, note string) {
	s.t.Helper()
	evenkeeltest.EventuallyAll(s.Env, func(all []*eventsv1.Event) error {
		var seen []string
		for _, e := range all {
			if e.Regarding.UID == pod.UID && e.Type == kind && e.Reason == reason && strings.HasPrefix(e.Note, note) && e.ReportingController == Component {
				return nil
			}
			seen = append(seen, e.Reason+": "+e.Note)
		}
		return fmt.Errorf("events are %q", seen)
	})
}

func TestPodsGetNodes(t *testing.T) {
	s := newScene(t)
	s.schedule(Options{})
	s.addNode(newNode("small", has("cpu", "1")))
	s.addNode(newNode("large"))
	pod := s.addPod("p", asks("cpu", "2"))
	bound := s.eventuallyOn("p", "large")
	var scheduled []corev1.PodCondition
	for _, c := range bound.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			scheduled = append(scheduled, c)
		}
	}
	if len(scheduled) != 1 || scheduled[0].Status != corev1.ConditionTrue {
		t.Errorf("%+v", scheduled)
	}
	s.eventuallyTold(pod, "Normal", "Scheduled", "Successfully assigned default/p to large")
}

func TestPodsWaitForANode(t *testing.T) {
	s := newScene(t)
	s.schedule(Options{MinBackoff: time.Millisecond})
	pod := s.addPod("p", asks("cpu", "2"), selecting("disk", "ssd"))
	s.eventuallyUnschedulable("p", "no nodes available to schedule pods")
	s.addNode(newNode("a"))
	const mismatch = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. preemption: 0/1 nodes are available: " +
		"1 Preemption is not helpful for scheduling."
	s.eventuallyUnschedulable("p", mismatch)
	s.eventuallyTold(pod, "Warning", "FailedScheduling", mismatch)
	must(s.nodes.Patch(t.Context(), client.Key{Name: "a"}, client.MergePatch(`{"metadata":{"labels":{"disk":"ssd"}}}`)))
	bound := s.eventuallyOn("p", "a")
	if n := len(bound.Status.Conditions); n != 1 || conditionOf(bound, corev1.PodScheduled).Status != corev1.ConditionTrue {
		t.Errorf("%+v", bound.Status.Conditions)
	}
}

func TestPodsWaitForRoom(t *testing.T) {
	s := newScene(t)
	s.schedule(Options{MinBackoff: time.Millisecond})
	s.addNode(newNode("a", has("pods", "1")))
	first := s.addPod("first")
	s.eventuallyOn("first", "a")
	s.addPod("second")
	s.eventuallyUnschedulable("second", "0/1 nodes are available: 1 Too many pods.")
	if err := s.pods.Delete(t.Context(), client.KeyOf(first), client.Grace(0)); err != nil {
		t.Fatal(err)
	}
	s.eventuallyOn("second", "a")
}

func TestPodsOfOthersAndGatedOnesAreLeftAlone(t *testing.T) {
	s := newScene(t)
	s.schedule(Options{})
	s.addPod("other", func(p *corev1.Pod) { p.Spec.SchedulerName = "other" })
	gated := s.addPod("gated", func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/g"}} })
	s.addNode(newNode("a"))
	s.addPod("last")
	s.eventuallyOn("last", "a") // the others were first
	for _, name := range []string{"other", "gated"} {
		if p := must(s.pods.Get(t.Context(), client.Key{Namespace: "default", Name: name})); p.Spec.NodeName != "" {
			t.Errorf("%s is on %s", name, p.Spec.NodeName)
		}
	}
	must(s.pods.Patch(t.Context(), client.KeyOf(gated), client.MergePatch(`{"spec":{"schedulingGates":null}}`)))
	s.eventuallyOn("gated", "a")
}

func TestImportantPodsPreempt(t *testing.T) {
	s := newScene(t)
	s.schedule(Options{MinBackoff: time.Millisecond})
	s.addNode(newNode("a", has("cpu", "2")))
	victim := s.addPod("victim", asks("cpu", "1500m"))
	s.eventuallyOn("victim", "a")
	s.addPod("bystander", asks("cpu", "500m"))
	s.eventuallyOn("bystander", "a")
	boss := s.addPod("boss", asks("cpu", "1"), priority(1000))
	nominated := s.eventuallyUnschedulable("boss", "0/1 nodes are available: 1 Insufficient cpu.")
	if nominated.Status.NominatedNodeName != "a" {
		t.Errorf("%+v", nominated.Status)
	}
	leaving := evenkeeltest.Eventually(s.Env, client.KeyOf(victim), func(p *corev1.Pod) error {
		if p.DeletionTimestamp == nil {
			return errors.New("it is not being deleted")
		}
		return nil
	})
	if c := conditionOf(leaving, corev1.DisruptionTarget); c == nil || c.Reason != corev1.PodReasonPreemptionByScheduler {
		t.Errorf("%+v", leaving.Status.Conditions)
	}
	s.eventuallyTold(victim, "Normal", "Preempted", fmt.Sprintf("Preempted by pod %s on node a", boss.UID))
	// The kubelet ends it. One that is less important does not get the room.
	s.addPod("late", asks("cpu", "1"))
	if err := s.pods.Delete(t.Context(), client.KeyOf(victim), client.Grace(0)); err != nil {
		t.Fatal(err)
	}
	bound := s.eventuallyOn("boss", "a")
	if bound.Status.NominatedNodeName != "" {
		t.Errorf("it is still nominated for %s", bound.Status.NominatedNodeName)
	}
	s.eventuallyUnschedulable("late", "0/1 nodes are available: 1 Insufficient cpu.")
	if p := must(s.pods.Get(t.Context(), client.Key{Namespace: "default", Name: "bystander"})); p.DeletionTimestamp != nil {
		t.Error("a pod goes that need not")
	}
}

// Whatever happens to connections and server, all pods come to be on nodes, and on
// none more than fit.
func TestSchedulingConverges(t *testing.T) {
	for name, disturb := range map[string]func(*scene){
		"cut":     func(s *scene) { s.Cut() },
		"restart": func(s *scene) { s.Restart(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.schedule(Options{MinBackoff: time.Millisecond, MaxBackoff: 50 * time.Millisecond})
			const nodes, each = 5, 8
			for i := range nodes {
				s.addNode(newNode(fmt.Sprintf("n%d", i), has("pods", fmt.Sprint(each))))
			}
			for i := range nodes * each {
				s.addPod(fmt.Sprintf("p%02d", i))
				if i%10 == 5 {
					disturb(s)
				}
			}
			evenkeeltest.EventuallyAll(s.Env, func(all []*corev1.Pod) error {
				on := map[string]int{}
				for _, p := range all {
					on[p.Spec.NodeName]++
				}
				if on[""] > 0 || len(all) != nodes*each {
					return fmt.Errorf("of %d pods on nodes: %v", len(all), on)
				}
				for node, n := range on {
					if n > each {
						return fmt.Errorf("%s has %d pods", node, n)
					}
				}
				return nil
			})
		})
	}
}
