// Package controlplane gives a test's server the rest of a control plane: the built-in
// controllers, the scheduler, and nodes on which pods go through their life without
// anything running. Deployments become available, jobs complete, namespaces go away.
//
//	env := evenkeeltest.Start(t)
//	controlplane.Run(env, controlplane.Options{})
//	env.Run(runMyController)
package controlplane

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/controllers"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/manager"
	"github.com/even-keel/evenkeel/node"
	"github.com/even-keel/evenkeel/node/simulated"
	"github.com/even-keel/evenkeel/scheduler"
)

// Options say what is run; the zero value is everything and one node.
type Options struct {
	// Controllers are the names of those that run, as in `evenkeel serve
	// --controllers`; nil is all.
	Controllers []string
	// Nodes is how many nodes there are, called node-1, node-2...; 0 is one.
	Nodes int
	// Simulated is how pods live.
	Simulated simulated.Options
	// Logger hears of failures; nil is nobody.
	Logger *slog.Logger
}

// Run runs a control plane on the server of a test. It ends with the test, before the
// server, or when stop is called.
func Run(env *evenkeeltest.Env, o Options) (stop func()) {
	return env.Run(func(ctx context.Context, cfg *rest.Config) error {
		m, err := o.manager(cfg)
		if err != nil {
			return fmt.Errorf("control plane: %w", err)
		}
		return m.Run(ctx)
	})
}

func (o Options) manager(cfg *rest.Config) (*manager.Manager, error) {
	log := o.Logger
	if log == nil {
		log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	m, err := manager.New(manager.Options{Config: cfg, Logger: log})
	if err != nil {
		return nil, err
	}
	list := o.Controllers
	if list == nil {
		list = []string{"*"}
	}
	names, err := controllers.Choose(list, controllers.Names())
	if err != nil {
		return nil, err
	}
	if err := controllers.Add(m, names, controllers.Options{RootCA: cfg.CAData}); err != nil {
		return nil, err
	}
	m.Go("scheduler", scheduler.New(m.Base, m.Events("default-scheduler"), scheduler.Options{Logger: log}).Run)
	agent := node.New(m, m.Events("kubelet"), simulated.New(o.Simulated), node.Options{Nodes: o.nodes(), Logger: log})
	m.Add(agent.Controllers()...)
	m.Go("node agent", agent.Run)
	return m, nil
}

func (o Options) nodes() []node.Node {
	nodes := make([]node.Node, max(o.Nodes, 1))
	for i := range nodes {
		nodes[i].Name = fmt.Sprintf("node-%d", i+1)
	}
	return nodes
}
