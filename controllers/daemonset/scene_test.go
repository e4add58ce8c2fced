package daemonset

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
	"github.com/even-keel/evenkeel/controllers/pods"
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
	sets *client.Client[*appsv1.DaemonSet]
	pods *client.Client[*corev1.Pod]
}

func stage(t *testing.T, opts ...evenkeeltest.Option) *scene {
	t.Helper()
	env := evenkeeltest.Start(t, opts...)
	env.Run(run)
	return &scene{Env: env, Cluster: podstest.Play(t, env), t: t,
		sets: client.Of[*appsv1.DaemonSet](env.Conn()), pods: client.Of[*corev1.Pod](env.Conn())}
}

func run(ctx context.Context, cfg *rest.Config) error {
	base, err := controller.NewBase(cfg, controller.BaseOptions{
		Logger: slog.New(slog.DiscardHandler), Informers: informer.Config{DetectMutations: true},
	})
	if err != nil {
		return err
	}
	told := events.New(base, events.Options{Component: "daemonset-controller", Logger: slog.New(slog.DiscardHandler)})
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

const agent = `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent}, spec: {
	selector: {matchLabels: {app: agent}},
	template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: c, image: "one"}]}}}}`

// with is the set with a part of its spec replaced.
func with(old, now string) string { return strings.ReplaceAll(agent, old, now) }

func key(name string) client.Key { return client.Key{Namespace: "default", Name: name} }

// node makes a node what it should be. A new one is not ready, and has a taint that
// says so, which goes when it is applied again.
func (s *scene) node(name, labels, spec string) {
	s.t.Helper()
	manifest := fmt.Sprintf(`{apiVersion: v1, kind: Node, metadata: {name: %s, labels: {%s}}, spec: {%s}}`, name, labels, cmp.Or(spec, "taints: []"))
	s.Apply(manifest)
	s.Apply(manifest)
}

func (s *scene) patch(patch string) {
	s.t.Helper()
	if _, err := s.sets.Patch(s.t.Context(), key("agent"), client.MergePatch(patch)); err != nil {
		s.t.Fatal(err)
	}
}

const two = `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"two"}]}}}}`

// rolledOut is what `kubectl rollout status` waits for, on a number of nodes.
func rolledOut(n int32) func(*appsv1.DaemonSet) error {
	return func(set *appsv1.DaemonSet) error {
		want := appsv1.DaemonSetStatus{ObservedGeneration: set.Generation, DesiredNumberScheduled: n, CurrentNumberScheduled: n,
			NumberReady: n, UpdatedNumberScheduled: n, NumberAvailable: n}
		if got := set.Status; got.String() != want.String() {
			return fmt.Errorf("the status is %+v", got)
		}
		return nil
	}
}

func (s *scene) eventually(check func(*appsv1.DaemonSet) error) *appsv1.DaemonSet {
	s.t.Helper()
	return evenkeeltest.Eventually(s.Env, key("agent"), check)
}

// images waits until nodes have pods with these images, and returns the pods by node.
func (s *scene) images(want string) map[string]*corev1.Pod {
	s.t.Helper()
	byNode := map[string]*corev1.Pod{}
	evenkeeltest.EventuallyAll(s.Env, func(all []*corev1.Pod) error {
		clear(byNode)
		var out []string
		for _, p := range all {
			state := ""
			switch {
			case p.DeletionTimestamp != nil:
				state = " ends"
			case !pods.Ready(p):
				state = " waits"
			}
			out = append(out, p.Spec.NodeName+" "+p.Spec.Containers[0].Image+state)
			byNode[p.Spec.NodeName] = p
		}
		slices.Sort(out)
		if got := strings.Join(out, ", "); got != want {
			return fmt.Errorf("there is %q, not %q", got, want)
		}
		return nil
	})
	return byNode
}

// told waits for an event about the set.
func (s *scene) told(reason, note string) {
	s.t.Helper()
	evenkeeltest.EventuallyAll(s.Env, func(all []*corev1.Event) error {
		var got []string
		for _, e := range all {
			if e.InvolvedObject.Kind == "DaemonSet" && e.Reason == reason && e.Message == note {
				return nil
			}
			got = append(got, e.Reason+": "+e.Message)
		}
		return fmt.Errorf("there is no %s %q, but %q", reason, note, got)
	})
}
