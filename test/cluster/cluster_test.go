// Package cluster has tests of the built-in controllers, the scheduler and node agents
// together: what each of them leaves to the others is done.
package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/controllers/deployment"
	"github.com/even-keel/evenkeel/controllers/endpoints"
	"github.com/even-keel/evenkeel/controllers/endpointslice"
	"github.com/even-keel/evenkeel/controllers/endpointslicemirroring"
	"github.com/even-keel/evenkeel/controllers/garbage"
	"github.com/even-keel/evenkeel/controllers/nodelifecycle"
	"github.com/even-keel/evenkeel/controllers/podgc"
	"github.com/even-keel/evenkeel/controllers/replicaset"
	"github.com/even-keel/evenkeel/controllers/tainteviction"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/events"
	"github.com/even-keel/evenkeel/node"
	"github.com/even-keel/evenkeel/node/simulated"
	"github.com/even-keel/evenkeel/scheduler"
)

func TestMain(m *testing.M) { evenkeeltest.Main(m) }

// together runs what has a base, a recorder and controllers of its own, such as a
// control plane.
func together(build func(*controller.Base, *events.Recorder) ([]*controller.Controller, []func(context.Context) error)) func(context.Context, *rest.Config) error {
	return func(ctx context.Context, cfg *rest.Config) error {
		o := controller.BaseOptions{Logger: slog.New(slog.DiscardHandler)}
		o.Informers.DetectMutations = true
		base, err := controller.NewBase(cfg, o)
		if err != nil {
			return err
		}
		told := events.New(base, events.Options{Component: "test", Logger: o.Logger})
		all, run := build(base, told)
		for _, c := range all {
			if err := base.Add(c); err != nil {
				return err
			}
		}
		var g errgroup.Group
		for _, f := range append(run, told.Run, base.Run) {
			g.Go(func() error { return f(ctx) })
		}
		return g.Wait()
	}
}

// plane has the controllers and the scheduler on one base.
func plane(base *controller.Base, told *events.Recorder) ([]*controller.Controller, []func(context.Context) error) {
	all := []*controller.Controller{
		garbage.New(base, told), replicaset.New(base, told), deployment.New(base, told),
		endpoints.New(base, told), endpointslice.New(base, told), endpointslicemirroring.New(base, told),
		tainteviction.New(base, told), podgc.New(base, told),
	}
	all = append(all, nodelifecycle.New(base, told)...)
	return all, []func(context.Context) error{scheduler.New(base, told, scheduler.Options{Logger: slog.New(slog.DiscardHandler)}).Run}
}

// agent is that of a node, in a zone of the same name.
func agent(name string) func(context.Context, *rest.Config) error {
	return together(func(base *controller.Base, told *events.Recorder) ([]*controller.Controller, []func(context.Context) error) {
		a := node.New(base, told, simulated.New(simulated.Options{}), node.Options{
			Nodes: []node.Node{{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: name}}}, Logger: slog.New(slog.DiscardHandler),
		})
		return a.Controllers(), []func(context.Context) error{a.Run}
	})
}

const web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "web:1", ports: [{name: http, containerPort: 8080}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: http}]}
`

// serving waits until so many pods serve for the service, on these nodes and no other;
// the slices and the Endpoints say the same.
func serving(env *evenkeeltest.Env, pods int, nodes ...string) {
	evenkeeltest.EventuallyAll(env, func(all []*discoveryv1.EndpointSlice) error {
		var on []string
		n := 0
		for _, s := range all {
			if s.Labels[discoveryv1.LabelServiceName] != "web" {
				continue
			}
			for _, e := range s.Endpoints {
				if !*e.Conditions.Ready {
					continue
				}
				n++
				if *e.Zone != *e.NodeName {
					return fmt.Errorf("node %s is in zone %s", *e.NodeName, *e.Zone)
				}
				on = append(on, *e.NodeName)
			}
		}
		slices.Sort(on)
		if on = slices.Compact(on); n != pods || !slices.Equal(on, nodes) {
			return fmt.Errorf("%d pods serve on %v, want %d on %v", n, on, pods, nodes)
		}
		return nil
	})
	//lint:ignore SA1019 Some clients still read it.
	evenkeeltest.Eventually(env, client.Key{Namespace: "default", Name: "web"}, func(e *corev1.Endpoints) error {
		n := 0
		for _, s := range e.Subsets {
			n += len(s.Addresses)
		}
		if n != pods {
			return fmt.Errorf("%d addresses, want %d", n, pods)
		}
		return nil
	})
}

// deploy has pods run on both nodes.
func deploy(env *evenkeeltest.Env) {
	evenkeeltest.EventuallyAll(env, func(nodes []*corev1.Node) error {
		open := slices.DeleteFunc(nodes, func(n *corev1.Node) bool { return len(n.Spec.Taints) > 0 })
		if len(open) != 2 {
			return fmt.Errorf("%d nodes take pods", len(open))
		}
		return nil
	})
	time.Sleep(time.Second) // the scheduler knows it too
	env.Apply(web)
	serving(env, 4, "n1", "n2")
}

// A node dies: its pods stop serving in a minute, others take their place in some more,
// and once the node is removed, nothing is left of it.
func TestADeploymentOutlivesANode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := evenkeeltest.Start(t, evenkeeltest.Bubble())
		env.Run(together(plane))
		env.Run(agent("n1"))
		kill := env.Run(agent("n2"))
		deploy(env)
		stay := podsOn(t, env, "n1")

		kill()
		time.Sleep(time.Minute)
		serving(env, stay, "n1")
		time.Sleep(6 * time.Minute)
		serving(env, 4, "n1")
		if n := podsOn(t, env, "n2"); n != 4-stay {
			t.Errorf("%d pods are on the node that nobody hears of, want %d that are to end", n, 4-stay)
		}
		if err := client.Of[*corev1.Node](env.Conn()).Delete(t.Context(), client.Key{Name: "n2"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if n := podsOn(t, env, "n2"); n != 0 {
			t.Errorf("%d pods are on a node that is gone", n)
		}
		serving(env, 4, "n1")
	})
}

// A node that comes back in time keeps its pods.
func TestANodeThatComesBackKeepsItsPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := evenkeeltest.Start(t, evenkeeltest.Bubble())
		env.Run(together(plane))
		env.Run(agent("n1"))
		kill := env.Run(agent("n2"))
		deploy(env)
		stay := podsOn(t, env, "n1")
		kill()
		time.Sleep(2 * time.Minute)
		serving(env, stay, "n1")
		env.Run(agent("n2"))
		time.Sleep(10 * time.Minute)
		serving(env, 4, "n1", "n2")
	})
}

func podsOn(t *testing.T, env *evenkeeltest.Env, node string) (n int) {
	t.Helper()
	for _, err := range client.Of[*corev1.Pod](env.Conn()).List(t.Context(), client.Field("spec.nodeName", node)) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}
