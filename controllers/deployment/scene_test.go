package deployment_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/controllers/deployment"
	"github.com/even-keel/evenkeel/controllers/replicaset"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/events"
)

func TestMain(m *testing.M) { evenkeeltest.Main(m) }

// scene is a server with Deployments.
type scene struct {
	*evenkeeltest.Env
	t           *testing.T
	deployments *client.Client[*appsv1.Deployment]
	sets        *client.Client[*appsv1.ReplicaSet]
	pods        *client.Client[*corev1.Pod]
}

func begin(t *testing.T, opts ...evenkeeltest.Option) *scene {
	t.Helper()
	env := evenkeeltest.Start(t, opts...)
	return &scene{
		Env: env, t: t,
		deployments: client.Of[*appsv1.Deployment](env.Conn()).In("default"),
		sets:        client.Of[*appsv1.ReplicaSet](env.Conn()).In("default"),
		pods:        client.Of[*corev1.Pod](env.Conn()).In("default"),
	}
}

var quiet = slog.New(slog.DiscardHandler)

// controllers is a program with the controllers of Deployments and ReplicaSets.
func controllers(ctx context.Context, cfg *rest.Config) error {
	o := controller.BaseOptions{Logger: quiet}
	o.Informers.DetectMutations = true
	base, err := controller.NewBase(cfg, o)
	if err != nil {
		return err
	}
	told := events.New(base, events.Options{Component: "deployment-controller", Logger: quiet})
	if err := errors.Join(base.Add(deployment.New(base, told)), base.Add(replicaset.New(base, told))); err != nil {
		return err
	}
	var g errgroup.Group
	g.Go(func() error { return told.Run(ctx) })
	g.Go(func() error { return base.Run(ctx) })
	return g.Wait()
}

// kubelet is a program that runs all pods: they become ready, except for those with
// a bad image, and end when they are to.
func kubelet(ctx context.Context, cfg *rest.Config) error {
	base, err := controller.NewBase(cfg, controller.BaseOptions{Logger: quiet})
	if err != nil {
		return err
	}
	pods := client.Of[*corev1.Pod](base)
	err = base.Add(controller.New("kubelet", func(ctx context.Context, req controller.Request) (controller.Result, error) {
		p, err := pods.Get(ctx, req.Key)
		switch {
		case err != nil:
			return controller.Done, client.IgnoreNotFound(err)
		case p.DeletionTimestamp != nil:
			err = pods.Delete(ctx, req.Key, client.Grace(0), client.IfUID(p.UID))
		case p.Spec.NodeName == "":
			binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: "n1"}}
			binding.Namespace, binding.Name = p.Namespace, p.Name
			_, err = client.Sub[*corev1.Binding](pods, "binding").Create(ctx, req.Key, binding)
		case p.Status.Phase == corev1.PodPending && !strings.HasPrefix(p.Spec.Containers[0].Image, "bad"):
			_, err = pods.Status().Patch(ctx, req.Key, client.MergePatch(map[string]any{"status": running(time.Now())}))
		}
		if client.IsConflict(err) {
			return controller.Requeue, nil
		}
		return controller.Done, client.IgnoreNotFound(err)
	}, controller.For[*corev1.Pod](), controller.Workers(16), controller.RetryRate(-1, 0)))
	if err != nil {
		return err
	}
	return base.Run(ctx)
}

func running(since time.Time) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{
		Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(since).Rfc3339Copy(),
	}}}
}

func key(name string) client.Key { return client.Key{Namespace: "default", Name: name} }

// web is a Deployment.
func web(name string, replicas int32, change ...func(*appsv1.DeploymentSpec)) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "web:1"}}},
			},
		},
	}
	for _, c := range change {
		c(&d.Spec)
	}
	return d
}

func bounds(surge, unavailable string) func(*appsv1.DeploymentSpec) {
	return func(s *appsv1.DeploymentSpec) {
		a, b := intstr.Parse(surge), intstr.Parse(unavailable)
		s.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: &a, MaxUnavailable: &b}
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

func (s *scene) create(d *appsv1.Deployment) *appsv1.Deployment {
	s.t.Helper()
	return must(s.deployments.Create(s.t.Context(), d))(s.t)
}

// patch changes the specification.
func (s *scene) patch(name, spec string, args ...any) {
	s.t.Helper()
	body := fmt.Sprintf(`{"spec":`+spec+`}`, args...)
	must(s.deployments.Patch(s.t.Context(), key(name), client.StrategicPatch(body)))(s.t)
}

func (s *scene) image(name, image string) {
	s.t.Helper()
	s.patch(name, `{"template":{"spec":{"containers":[{"name":"main","image":%q}]}}}`, image)
}

// complete waits for what `kubectl rollout status` waits for.
func (s *scene) complete(name string, n int32) *appsv1.Deployment {
	s.t.Helper()
	return evenkeeltest.Eventually(s.Env, key(name), func(d *appsv1.Deployment) error {
		st := d.Status
		if st.ObservedGeneration != d.Generation || *d.Spec.Replicas != n || st.Replicas != n || st.UpdatedReplicas != n || st.AvailableReplicas != n ||
			st.ReadyReplicas != n || st.UnavailableReplicas != 0 || st.TerminatingReplicas == nil || *st.TerminatingReplicas != 0 {
			return fmt.Errorf("of %d, the status is %+v", n, st)
		}
		for t, reason := range map[string]string{"Available": "MinimumReplicasAvailable", "Progressing": "NewReplicaSetAvailable"} {
			if err := evenkeeltest.Condition[*appsv1.Deployment](t, "True", evenkeeltest.Reason(reason))(d); err != nil {
				return err
			}
		}
		return nil
	})
}

// progressing waits for a reason of the condition Progressing.
func (s *scene) progressing(name, status, reason string) *appsv1.Deployment {
	s.t.Helper()
	return evenkeeltest.Eventually(s.Env, key(name), evenkeeltest.Condition[*appsv1.Deployment]("Progressing", metav1.ConditionStatus(status), evenkeeltest.Reason(reason), evenkeeltest.Current()))
}

// sizes are the ReplicaSets of a Deployment, by revision: the image, and how many
// replicas they have.
func (s *scene) sizes(of string) string {
	s.t.Helper()
	var out []string
	for set, err := range s.sets.List(s.t.Context(), client.Label("app", of)) {
		set = must(set, err)(s.t)
		out = append(out, fmt.Sprintf("%s %s %d", set.Annotations["deployment.kubernetes.io/revision"], set.Spec.Template.Spec.Containers[0].Image, *set.Spec.Replicas))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// told waits for an event about a Deployment.
func (s *scene) told(name, reason string, note func(string) bool) {
	s.t.Helper()
	evenkeeltest.EventuallyAll(s.Env, func(all []*eventsv1.Event) error {
		var notes []string
		for _, e := range all {
			if e.Regarding.Kind == "Deployment" && e.Regarding.Name == name && e.Reason == reason {
				if note(e.Note) {
					return nil
				}
				notes = append(notes, e.Note)
			}
		}
		return fmt.Errorf("events about %s: %q", name, notes)
	})
}

// watchdog is a program that fails if the pods of a Deployment are ever more, or those
// that serve fewer.
func (s *scene) watchdog(app string, most, least int) func(context.Context, *rest.Config) error {
	return func(ctx context.Context, cfg *rest.Config) error {
		conn, err := client.Connect(cfg, client.Logger(quiet))
		if err != nil {
			return err
		}
		pods := map[string]*corev1.Pod{}
		for event, err := range client.Of[*corev1.Pod](conn).In("default").Watch(ctx, client.Label("app", app), client.InitialEvents()) {
			if err != nil {
				return err
			}
			switch event.Type {
			case client.Deleted:
				delete(pods, event.Object.Name)
			case client.Added, client.Modified:
				pods[event.Object.Name] = event.Object
			}
			var all, ready int
			for _, p := range pods {
				if p.DeletionTimestamp == nil {
					all++
					ready += serving(p)
				}
			}
			if all > most || ready < least && event.Type != client.Added {
				return fmt.Errorf("there are %d pods of at most %d, and %d serve of at least %d", all, most, ready, least)
			}
		}
		return nil
	}
}

func serving(p *corev1.Pod) int {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return 1
		}
	}
	return 0
}

// writes counts the writes of a program, by the method and the resource.
type writes struct {
	mu sync.Mutex
	of map[string]int
}

func (w *writes) add(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of == nil {
		w.of = map[string]int{}
	}
	w.of[what]++
}

// take returns what was counted, and begins anew.
func (w *writes) take() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	total, out := 0, ""
	for _, what := range slices.Sorted(maps.Keys(w.of)) {
		total += w.of[what]
		out += fmt.Sprintf("; %d %s", w.of[what], what)
	}
	w.of = nil
	return fmt.Sprintf("%d writes%s", total, out)
}

// counting is a way to the server that counts what is written.
func (s *scene) counting(n *writes) *rest.Config {
	return s.InFront(s.t, func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		if r.Method != http.MethodGet {
			what := r.Method
			for _, element := range strings.Split(r.URL.Path, "/") {
				if slices.Contains([]string{"pods", "replicasets", "deployments", "events", "status"}, element) {
					what += " " + element
				}
			}
			n.add(what)
		}
		server.ServeHTTP(w, r)
	})
}
