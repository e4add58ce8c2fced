package node_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/events"
	"github.com/even-keel/evenkeel/node"
	"github.com/even-keel/evenkeel/node/simulated"
)

func TestMain(m *testing.M) { evenkeeltest.Main(m) }

// agent runs one on a base of its own.
func agent(rt node.Runtime, o node.Options) func(context.Context, *rest.Config) error {
	return func(ctx context.Context, cfg *rest.Config) error {
		quiet := slog.New(slog.DiscardHandler)
		base, err := controller.NewBase(cfg, controller.BaseOptions{Logger: quiet})
		if err != nil {
			return err
		}
		told := events.New(base, events.Options{Component: "kubelet", Instance: "n1", Logger: quiet})
		o.Logger = quiet
		a := node.New(base, told, rt, o)
		for _, c := range a.Controllers() {
			if err := base.Add(c); err != nil {
				return err
			}
		}
		var work sync.WaitGroup
		defer work.Wait()
		work.Go(func() { _ = told.Run(ctx) })
		work.Go(func() { _ = a.Run(ctx) })
		return base.Run(ctx)
	}
}

// one is a node called n1.
func one() node.Options { return node.Options{Nodes: []node.Node{{Name: "n1"}}} }

// scene is a server with a node in a bubble.
type scene struct {
	*evenkeeltest.Env
	t    *testing.T
	sim  *simulated.Runtime
	pods *client.Client[*corev1.Pod]
	stop func()
}

func begin(t *testing.T) *scene {
	t.Helper()
	s := &scene{Env: evenkeeltest.Start(t, evenkeeltest.Bubble()), t: t, sim: simulated.New(simulated.Options{})}
	s.pods = client.Of[*corev1.Pod](s.Conn()).In("default")
	s.stop = s.Run(agent(s.sim, one()))
	return s
}

// web is a pod with one container, on n1.
func web(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: map[string]string{}},
		Spec:       corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "app", Image: "app:1"}}},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func annotated(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations[key] = value }
}

func policy(r corev1.RestartPolicy) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.RestartPolicy = r }
}

func (s *scene) create(p *corev1.Pod) *corev1.Pod {
	s.t.Helper()
	made, err := s.pods.Create(s.t.Context(), p)
	if err != nil {
		s.t.Fatal(err)
	}
	return made
}

func (s *scene) get(name string) *corev1.Pod {
	s.t.Helper()
	p, err := s.pods.Get(s.t.Context(), client.Key{Name: name})
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

// until waits until a pod is as check says, in the bubble's time.
func (s *scene) until(name string, check func(*corev1.Pod) error) *corev1.Pod {
	s.t.Helper()
	return evenkeeltest.Eventually(s.Env, client.Key{Namespace: "default", Name: name}, check)
}

func ready(p *corev1.Pod) error {
	return evenkeeltest.Condition[*corev1.Pod]("Ready", "True")(p)
}

func inPhase(want corev1.PodPhase) func(*corev1.Pod) error {
	return func(p *corev1.Pod) error {
		if p.Status.Phase != want {
			return fmt.Errorf("it is %s, not %s", p.Status.Phase, want)
		}
		return nil
	}
}

// waits is that the first container waits for a reason.
func waits(reason string) func(*corev1.Pod) error {
	return func(p *corev1.Pod) error {
		if s := p.Status.ContainerStatuses; len(s) == 0 || s[0].State.Waiting == nil || s[0].State.Waiting.Reason != reason {
			return fmt.Errorf("it does not wait for %s: %+v", reason, s)
		}
		return nil
	}
}

func restarted(times int32) func(*corev1.Pod) error {
	return func(p *corev1.Pod) error {
		if s := p.Status.ContainerStatuses; len(s) == 0 || s[0].RestartCount != times || s[0].State.Running == nil {
			return fmt.Errorf("it was not restarted %d times: %+v", times, s)
		}
		return nil
	}
}
