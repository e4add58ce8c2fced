package replicaset_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/controllers/replicaset"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/events"
)

func TestMain(m *testing.M) { evenkeeltest.Main(m) }

// scene is a server whose pods the test itself runs.
type scene struct {
	*evenkeeltest.Env
	t    *testing.T
	pods *client.Client[*corev1.Pod]
	sets *client.Client[*appsv1.ReplicaSet]
}

func begin(t *testing.T, opts ...evenkeeltest.Option) *scene {
	t.Helper()
	env := evenkeeltest.Start(t, opts...)
	return &scene{
		Env: env, t: t,
		pods: client.Of[*corev1.Pod](env.Conn()).In("default"),
		sets: client.Of[*appsv1.ReplicaSet](env.Conn()).In("default"),
	}
}

// runAt runs the controller, which reaches the server as the configuration says.
func (s *scene) runAt(cfg *rest.Config, o controller.BaseOptions) (stop func()) {
	return s.Run(func(ctx context.Context, _ *rest.Config) error { return run(o)(ctx, cfg) })
}

// run is a program with the controller.
func run(o controller.BaseOptions) func(context.Context, *rest.Config) error {
	return func(ctx context.Context, cfg *rest.Config) error {
		o.Logger = slog.New(slog.DiscardHandler)
		o.Informers.DetectMutations = true
		base, err := controller.NewBase(cfg, o)
		if err != nil {
			return err
		}
		told := events.New(base, events.Options{Component: "replicaset-controller", Logger: o.Logger})
		if err := base.Add(replicaset.New(base, told)); err != nil {
			return err
		}
		var g errgroup.Group
		g.Go(func() error { return told.Run(ctx) })
		g.Go(func() error { return base.Run(ctx) })
		return g.Wait()
	}
}

func key(name string) client.Key { return client.Key{Namespace: "default", Name: name} }

// web is a ReplicaSet of pods with the label app=web.
func web(name string, replicas int32) *appsv1.ReplicaSet {
	labels := map[string]string{"app": "web"}
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{"note": "a"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "web:1"}}},
			},
		},
	}
}

// must is for calls that have to succeed: must(f())(t).
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func (s *scene) create(set *appsv1.ReplicaSet) *appsv1.ReplicaSet {
	s.t.Helper()
	return must(s.sets.Create(s.t.Context(), set))(s.t)
}

func (s *scene) scale(name string, n int) {
	s.t.Helper()
	must(s.sets.Patch(s.t.Context(), key(name), client.MergePatch(fmt.Sprintf(`{"spec":{"replicas":%d}}`, n))))(s.t)
}

// status waits until the counts of a status are these: replicas, ready, available,
// terminating.
func (s *scene) status(name, want string) *appsv1.ReplicaSet {
	s.t.Helper()
	return evenkeeltest.Eventually(s.Env, key(name), func(set *appsv1.ReplicaSet) error {
		st := set.Status
		if st.ObservedGeneration != set.Generation {
			return fmt.Errorf("generation %d is not observed", set.Generation)
		}
		var terminating int32 = -1
		if st.TerminatingReplicas != nil {
			terminating = *st.TerminatingReplicas
		}
		if got := fmt.Sprint(st.Replicas, st.ReadyReplicas, st.AvailableReplicas, terminating); got != want {
			return fmt.Errorf("replicas, ready, available, terminating are %s, want %s", got, want)
		}
		return nil
	})
}

// living are the pods that are not about to end, by name.
func (s *scene) living() []*corev1.Pod {
	s.t.Helper()
	var pods []*corev1.Pod
	for p, err := range s.pods.List(s.t.Context()) {
		pods = append(pods, must(p, err)(s.t))
	}
	pods = slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods
}

// start has a node run pods: they become ready.
func (s *scene) start(pods ...*corev1.Pod) {
	s.t.Helper()
	for _, p := range pods {
		s.bind(p, "n1")
		s.ready(p)
	}
}

func (s *scene) bind(p *corev1.Pod, node string) {
	s.t.Helper()
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: node}}
	must(client.Sub[*corev1.Binding](s.pods, "binding").Create(s.t.Context(), client.KeyOf(p), binding))(s.t)
}

func (s *scene) ready(p *corev1.Pod) {
	s.t.Helper()
	status := corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{
		Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Now()).Rfc3339Copy(),
	}}}
	must(s.pods.Status().Patch(s.t.Context(), client.KeyOf(p), client.MergePatch(map[string]any{"status": status})))(s.t)
}

// bury has the node end the pods that are to end.
func (s *scene) bury() {
	s.t.Helper()
	for p, err := range s.pods.List(s.t.Context()) {
		if err == nil && p.DeletionTimestamp != nil {
			err = client.IgnoreNotFound(s.pods.Delete(s.t.Context(), client.KeyOf(p), client.Grace(0)))
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// told waits for events of a reason about an object whose notes, together, are so
// many and begin like that.
func (s *scene) told(name, reason, begins string, count int) {
	s.t.Helper()
	evenkeeltest.EventuallyAll(s.Env, func(all []*eventsv1.Event) error {
		n := 0
		for _, e := range all {
			if e.Regarding.Name == name && e.Reason == reason && strings.HasPrefix(e.Note, begins) {
				n++
			}
		}
		if n < count {
			return fmt.Errorf("%d events %s %q about %s, want %d", n, reason, begins, name, count)
		}
		return nil
	})
}
