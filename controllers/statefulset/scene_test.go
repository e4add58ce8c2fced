package statefulset

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/controllers/podstest"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/events"
	"github.com/even-keel/evenkeel/informer"
)

func TestMain(m *testing.M) { evenkeeltest.Main(m) }

// scene is a server on which the controller runs, and kubelets.
type scene struct {
	*evenkeeltest.Env
	*podstest.Cluster
	t    *testing.T
	sets *client.Client[*appsv1.StatefulSet]
	pods *client.Client[*corev1.Pod]
}

func stage(t *testing.T, opts ...evenkeeltest.Option) *scene {
	t.Helper()
	env := evenkeeltest.Start(t, opts...)
	env.Run(run)
	return &scene{Env: env, Cluster: podstest.Play(t, env), t: t,
		sets: client.Of[*appsv1.StatefulSet](env.Conn()), pods: client.Of[*corev1.Pod](env.Conn())}
}

func run(ctx context.Context, cfg *rest.Config) error {
	base, err := controller.NewBase(cfg, controller.BaseOptions{
		Logger: slog.New(slog.DiscardHandler), Informers: informer.Config{DetectMutations: true},
	})
	if err != nil {
		return err
	}
	told := events.New(base, events.Options{Component: "statefulset-controller", Logger: slog.New(slog.DiscardHandler)})
	if err := base.Add(New(base, told)); err != nil {
		return err
	}
	telling, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- told.Run(telling) }()
	err = base.Run(ctx)
	stop()
	return cmp.Or(err, <-done)
}

const web = `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: web, annotations: {kubernetes.io/change-cause: first}}, spec: {
	replicas: 3, serviceName: web, selector: {matchLabels: {app: web}},
	template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: "one"}]}}}}`

// with is the set with a part of its spec replaced.
func with(old, now string) string { return strings.ReplaceAll(web, old, now) }

func key(name string) client.Key { return client.Key{Namespace: "default", Name: name} }

// patch changes the set.
func (s *scene) patch(patch string) {
	s.t.Helper()
	if _, err := s.sets.Patch(s.t.Context(), key("web"), client.MergePatch(patch)); err != nil {
		s.t.Fatal(err)
	}
}

// rolledOut is what `kubectl rollout status` waits for, of a number of pods.
func rolledOut(n int32) func(*appsv1.StatefulSet) error {
	return func(set *appsv1.StatefulSet) error {
		st := set.Status
		if st.ObservedGeneration != set.Generation || st.Replicas != n || st.ReadyReplicas != n || st.AvailableReplicas != n ||
			st.UpdatedReplicas != n || st.CurrentReplicas != n || st.CurrentRevision != st.UpdateRevision || st.UpdateRevision == "" {
			return fmt.Errorf("generation %d, status %+v", set.Generation, st)
		}
		return nil
	}
}

func (s *scene) eventually(check func(*appsv1.StatefulSet) error) *appsv1.StatefulSet {
	s.t.Helper()
	return evenkeeltest.Eventually(s.Env, key("web"), check)
}

// images waits until there are pods with these images, by name.
func (s *scene) images(want string) {
	s.t.Helper()
	evenkeeltest.EventuallyAll(s.Env, func(all []*corev1.Pod) error {
		slices.SortFunc(all, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
		var out []string
		for _, p := range all {
			state := ""
			switch {
			case p.DeletionTimestamp != nil:
				state = " ends"
			case p.Spec.NodeName == "": // to delete it would take no time
				state = " has no node"
			case !running(p):
				state = " waits"
			}
			out = append(out, p.Name+" "+p.Spec.Containers[0].Image+state)
		}
		if got := strings.Join(out, ", "); got != want {
			return fmt.Errorf("there is %q, not %q", got, want)
		}
		return nil
	})
}

// told waits for an event about the set.
func (s *scene) told(reason, note string) {
	s.t.Helper()
	evenkeeltest.EventuallyAll(s.Env, func(all []*corev1.Event) error {
		var got []string
		for _, e := range all {
			if e.InvolvedObject.Kind == "StatefulSet" && e.Reason == reason && e.Message == note {
				return nil
			}
			got = append(got, e.Reason+": "+e.Message)
		}
		return fmt.Errorf("there is no %s %q, but %q", reason, note, got)
	})
}
