package nodelifecycle

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/controllers/podstest"
	"github.com/even-keel/evenkeel/controllers/tainteviction"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/events"
)

func TestMain(m *testing.M) { evenkeeltest.Main(m) }

// run is a program with the controllers, and the one that evicts.
func run(ctx context.Context, cfg *rest.Config) error { return runWith(ctx, cfg, tainteviction.New) }

// runWith is a program with the controllers and others.
func runWith(ctx context.Context, cfg *rest.Config, others ...func(client.Source, *events.Recorder) *controller.Controller) error {
	o := controller.BaseOptions{Logger: slog.New(slog.DiscardHandler)}
	o.Informers.DetectMutations = true
	base, err := controller.NewBase(cfg, o)
	if err != nil {
		return err
	}
	told := events.New(base, events.Options{Component: "node-controller", Logger: o.Logger})
	all := New(base, told)
	for _, other := range others {
		all = append(all, other(base, told))
	}
	for _, c := range all {
		if err := base.Add(c); err != nil {
			return err
		}
	}
	var g errgroup.Group
	g.Go(func() error { return told.Run(ctx) })
	g.Go(func() error { return base.Run(ctx) })
	return g.Wait()
}

// scene is a cluster of nodes that renew their leases, as long as they live, in a
// bubble of time.
type scene struct {
	*evenkeeltest.Env
	t     *testing.T
	alive map[string]bool
}

func begin(t *testing.T, nodes ...string) *scene {
	t.Helper()
	env := evenkeeltest.Start(t, evenkeeltest.Bubble())
	s := &scene{Env: env, t: t, alive: map[string]bool{}}
	for _, name := range nodes {
		podstest.AddNode(t, env, name, "z1")
		s.alive[name] = true
	}
	return s
}

// pass has time pass, in which nodes that live renew their leases.
func (s *scene) pass(d time.Duration) {
	s.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		for _, name := range slices.Sorted(keysOf(s.alive)) {
			s.renew(name)
		}
		time.Sleep(min(10*time.Second, time.Until(end)))
	}
	synctest.Wait()
}

func keysOf(alive map[string]bool) func(func(string) bool) {
	return func(yield func(string) bool) {
		for name, is := range alive {
			if is && !yield(name) {
				return
			}
		}
	}
}

func (s *scene) renew(name string) {
	s.t.Helper()
	if err := renewLease(s.t.Context(), s.Conn(), name); err != nil {
		s.t.Fatal(err)
	}
}

func renewLease(ctx context.Context, conn *client.Conn, name string) error {
	now, leases := metav1.NowMicro(), client.Of[*coordinationv1.Lease](conn).In(corev1.NamespaceNodeLease)
	_, err := leases.Patch(ctx, client.Key{Name: name}, client.MergePatch(map[string]any{"spec": map[string]any{"renewTime": now}}))
	if client.IsNotFound(err) {
		_, err = leases.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &name, RenewTime: &now},
		})
	}
	return err
}

// tells has a node tell its readiness.
func (s *scene) tells(name string, ready corev1.ConditionStatus, more ...corev1.NodeCondition) {
	s.t.Helper()
	now := metav1.Now()
	_, err := client.Of[*corev1.Node](s.Conn()).Status().Patch(s.t.Context(), client.Key{Name: name}, client.StrategicPatch(map[string]any{
		"status": map[string]any{"conditions": append([]corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, LastHeartbeatTime: now, LastTransitionTime: now}}, more...)},
	}))
	if err != nil {
		s.t.Fatal(err)
	}
}

// is checks the readiness of a node, and its taints: without the prefix, and in order.
func (s *scene) is(name, want string) {
	s.t.Helper()
	time.Sleep(time.Second) // what is under way arrives
	synctest.Wait()
	node, err := client.Of[*corev1.Node](s.Conn()).Get(s.t.Context(), client.Key{Name: name})
	if err != nil {
		s.t.Fatal(err)
	}
	got := []string{string(readiness(node))}
	for _, t := range node.Spec.Taints {
		got = append(got, fmt.Sprintf("%s:%s", strings.TrimPrefix(t.Key, "node.kubernetes.io/"), t.Effect))
	}
	slices.Sort(got[1:])
	if text := strings.Join(got, " "); text != want {
		s.t.Errorf("at %s %s is %q, want %q", time.Now().Format(time.TimeOnly), name, text, want)
	}
}

// pod is a pod of the namespace "default"; nil if it is gone.
func (s *scene) pod(name string) *corev1.Pod {
	s.t.Helper()
	p, err := client.Of[*corev1.Pod](s.Conn()).Get(s.t.Context(), client.Key{Namespace: "default", Name: name})
	if client.IgnoreNotFound(err) != nil {
		s.t.Fatal(err)
	}
	return p
}

// told checks that there is an event.
func (s *scene) told(name, reason, note string) {
	s.t.Helper()
	for e, err := range client.Of[*eventsv1.Event](s.Conn()).List(s.t.Context()) {
		if err != nil {
			s.t.Fatal(err)
		}
		if e.Regarding.Name == name && e.Reason == reason && e.Note == note {
			return
		}
	}
	s.t.Errorf("no event %s %q about %s", reason, note, name)
}

const (
	lost    = "Unknown unreachable:NoSchedule"
	evicted = "Unknown unreachable:NoExecute unreachable:NoSchedule"
)

func condition(p *corev1.Pod, kind corev1.PodConditionType) corev1.PodCondition {
	for _, c := range p.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.PodCondition{}
}

func TestANodeDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, "a", "b")
		podstest.AddPod(t, s.Env, "p", "web", "a", "10.0.0.1")
		s.Run(run)
		s.pass(time.Minute)
		s.is("a", "True")
		s.told("a", "RegisteredNode", "Node a event: Registered Node a in Controller")
		s.alive["a"] = false
		s.pass(25 * time.Second) // it was heard of ten seconds before
		s.is("a", "True")
		s.pass(25 * time.Second)
		s.is("a", evicted)
		s.is("b", "True")
		s.told("a", "NodeNotReady", "Node a status is now: NodeNotReady")
		s.told("p", "NodeNotReady", "Node is not ready")
		p := s.pod("p")
		if c := condition(p, corev1.PodReady); c.Status != corev1.ConditionFalse || p.DeletionTimestamp != nil {
			t.Errorf("the pod is %v, deleted at %v", c, p.DeletionTimestamp)
		}
		s.pass(270 * time.Second) // of the 300 that it tolerates
		if p := s.pod("p"); p.DeletionTimestamp != nil {
			t.Errorf("the pod is deleted at %v", p.DeletionTimestamp)
		}
		s.pass(time.Minute)
		p = s.pod("p")
		if c := condition(p, corev1.DisruptionTarget); p.DeletionTimestamp == nil || c.Reason != "DeletionByTaintManager" {
			t.Errorf("the pod is deleted at %v for %v", p.DeletionTimestamp, c)
		}
		s.told("p", "TaintManagerEviction", "Marking for deletion Pod default/p")
	})
}

func TestANodeComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, "a", "b")
		podstest.AddPod(t, s.Env, "p", "web", "a", "10.0.0.1")
		s.Run(run)
		s.alive["a"] = false
		s.pass(2 * time.Minute)
		s.is("a", evicted)
		podstest.AddPod(t, s.Env, "late", "web", "a", "10.0.0.2") // and is ready, says somebody
		s.alive["a"] = true
		s.tells("a", corev1.ConditionTrue)
		s.pass(6 * time.Second)
		s.is("a", "True")
		s.told("p", "TaintManagerEviction", "Cancelling deletion of Pod default/p")
		s.pass(10 * time.Minute)
		if p := s.pod("p"); p.DeletionTimestamp != nil {
			t.Errorf("the pod is deleted at %v", p.DeletionTimestamp)
		}
		if err := client.Of[*corev1.Node](s.Conn()).Delete(t.Context(), client.Key{Name: "b"}); err != nil {
			t.Fatal(err)
		}
		s.pass(6 * time.Second)
		s.told("b", "RemovingNode", "Node b event: Removing Node b from Controller")
	})
}

func TestTaintsFollowConditions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, "a", "b")
		s.is("a", "True not-ready:NoSchedule") // until somebody looks
		s.Run(run)
		s.is("a", "True")
		s.tells("a", corev1.ConditionFalse, corev1.NodeCondition{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue}, corev1.NodeCondition{Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionTrue})
		s.is("a", "False memory-pressure:NoSchedule network-unavailable:NoSchedule not-ready:NoSchedule")
		s.pass(20 * time.Second)
		s.is("a", "False memory-pressure:NoSchedule network-unavailable:NoSchedule not-ready:NoExecute not-ready:NoSchedule")
		s.tells("a", corev1.ConditionTrue, corev1.NodeCondition{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue},
			corev1.NodeCondition{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse}, corev1.NodeCondition{Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionFalse})
		if _, err := client.Of[*corev1.Node](s.Conn()).Patch(t.Context(), client.Key{Name: "a"}, client.MergePatch(`{"spec":{"unschedulable":true}}`)); err != nil {
			t.Fatal(err)
		}
		s.pass(6 * time.Second)
		s.is("a", "True disk-pressure:NoSchedule unschedulable:NoSchedule")
	})
}

// If all nodes fall silent, it is more likely that they are not heard than that they
// are dead.
func TestNobodyIsEvictedIfAllAreSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, "a", "b")
		podstest.AddPod(t, s.Env, "p", "web", "a", "10.0.0.1")
		s.Run(run)
		s.pass(20 * time.Second)
		clear(s.alive)
		s.pass(20 * time.Minute)
		s.is("a", lost)
		s.is("b", lost)
		if p := s.pod("p"); p.DeletionTimestamp != nil {
			t.Errorf("the pod is deleted at %v", p.DeletionTimestamp)
		}
		s.alive["b"] = true
		s.tells("b", corev1.ConditionTrue)
		s.pass(15 * time.Second)
		s.is("a", evicted)
		s.is("b", "True")
	})
}

// The server goes away for a while, and so do the controllers: nodes that live stay
// ready, and one that dies is found.
func TestConvergesWhenTheServerGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, "a", "b", "c")
		podstest.AddPod(t, s.Env, "p", "web", "a", "10.0.0.1")
		stop := s.Run(run)
		for i, trouble := range []func(){s.Cut, func() { s.Restart(nil) }, func() { stop(); stop = s.Run(run) }} {
			s.pass(30 * time.Second)
			trouble()
			s.pass(30 * time.Second)
			for name := range s.alive {
				s.is(name, "True")
			}
			s.alive["a"] = false
			s.pass(20 * time.Second)
			trouble()
			s.pass(70 * time.Second) // a process that begins anew waits anew
			s.is("a", evicted)
			if c := condition(s.pod("p"), corev1.PodReady); c.Status != corev1.ConditionFalse {
				t.Errorf("round %d: the pod is %v", i, c)
			}
			s.alive["a"] = true
			s.tells("a", corev1.ConditionTrue)
			podstest.SetReady(t, s.Env, "p", true)
			s.pass(30 * time.Second)
		}
		s.is("a", "True")
	})
}
