package nodelifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/events"
	"github.com/even-keel/evenkeel/informer"
)

// The names of the controllers.
const (
	Name       = "nodelifecycle"
	TaintsName = "nodelifecycle-taints"
)

// period is how often all nodes are looked at.
const period = 5 * time.Second

// together is how many nodes are written at once.
const together = 8

// New returns the controllers; clients come from the source, events go to the
// recorder.
func New(s client.Source, told *events.Recorder) []*controller.Controller {
	m := &monitor{
		nodes: client.Of[*corev1.Node](s), leases: client.Of[*coordinationv1.Lease](s).In(corev1.NamespaceNodeLease), told: told,
	}
	return []*controller.Controller{
		controller.New(Name, m.reconcile,
			controller.Reads[*corev1.Node](),
			controller.Reads[*coordinationv1.Lease](controller.With(informer.InNamespace(corev1.NamespaceNodeLease))),
			controller.Feed("clock", tick)),
		newTaints(s, told),
	}
}

// all is the key of all nodes together.
var all = client.Key{Name: "nodes"}

// tick asks for a look at all nodes now, and then every period.
func tick(ctx context.Context, tell func(controller.Notice)) {
	every := time.NewTicker(period)
	defer every.Stop()
	for {
		tell(controller.Notice{Key: all, Note: "it is time"})
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
	}
}

// monitor looks at all nodes.
type monitor struct {
	nodes  *client.Client[*corev1.Node]
	leases *client.Client[*coordinationv1.Lease]
	told   *events.Recorder
	// memory is the worker's own: there is one key, which is with one worker at a time.
	memory memory
}

func (m *monitor) reconcile(ctx context.Context, _ controller.Request) (controller.Result, error) {
	s, err := m.observe(ctx)
	if err != nil {
		return controller.Done, fmt.Errorf("observe the nodes: %w", err)
	}
	do := decide(s)
	m.memory = do.memory
	for _, n := range do.told {
		m.told.Event(n.about, events.Normal, n.reason, "%s", n.text)
	}
	return controller.Done, m.act(ctx, do.changes)
}

// observe returns what there is.
func (m *monitor) observe(ctx context.Context) (seen, error) {
	s := seen{leases: map[string]*coordinationv1.Lease{}, memory: m.memory, now: time.Now()}
	for node, err := range m.nodes.List(ctx) {
		if err != nil {
			return s, err
		}
		s.nodes = append(s.nodes, node)
	}
	for lease, err := range m.leases.List(ctx) {
		if err != nil {
			return s, err
		}
		s.leases[lease.Name] = lease
	}
	return s, nil
}

// act writes what changes of nodes. What others wrote meanwhile is looked at in the
// next round.
func (m *monitor) act(ctx context.Context, changes []change) error {
	failed := make([]error, len(changes))
	var g errgroup.Group
	g.SetLimit(together)
	for i, c := range changes {
		g.Go(func() error {
			if err := m.write(ctx, c); err != nil && !client.IsNotFound(err) && !client.IsConflict(err) {
				failed[i] = fmt.Errorf("node %s: %w", c.node.Name, err)
			}
			return nil
		})
	}
	_ = g.Wait()
	return errors.Join(failed...)
}

func (m *monitor) write(ctx context.Context, c change) error {
	node := *c.node
	if c.status != nil {
		node.Status = *c.status
		now, err := m.nodes.UpdateStatus(ctx, &node)
		if err != nil {
			return fmt.Errorf("update status: %w", err)
		}
		if c.lost {
			m.told.Event(c.node, events.Normal, "NodeNotReady", "Node %s status is now: NodeNotReady", node.Name)
		}
		node = *now
	}
	if c.retaint {
		node.Spec.Taints = c.taints
		if _, err := m.nodes.Update(ctx, &node); err != nil {
			return fmt.Errorf("update taints: %w", err)
		}
	}
	return nil
}
