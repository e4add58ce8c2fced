// Package endpointslice keeps the EndpointSlices of services that select pods.
//
// A reconcile looks at a service, its pods, the nodes of these and the slices that
// there are, decides what slices there should be, and writes those that differ. The
// slices of a service whose selector goes are removed; those of a service that is
// deleted go with it, by garbage collection. Slices that others manage are left alone.
//
// Hints are given where a service has a traffic distribution. The older annotation
// service.kubernetes.io/topology-mode is not followed: there are no hints then.
package endpointslice

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/controllers/pods"
	"github.com/even-keel/evenkeel/controllers/services"
	"github.com/even-keel/evenkeel/events"
)

// Name is the controller's.
const Name = "endpointslice"

// manager is what the label of slices says that this controller manages.
const manager = "endpointslice-controller.k8s.io"

// workers is how many services are worked on at once.
const workers = 5

// New returns the controller; clients come from the source, events go to the
// recorder.
func New(s client.Source, told *events.Recorder) *controller.Controller {
	r := &reconciler{
		services: client.Of[*corev1.Service](s), pods: client.Of[*corev1.Pod](s), nodes: client.Of[*corev1.Node](s),
		slices: client.Of[*discoveryv1.EndpointSlice](s), told: told, triggers: services.NewTriggers(),
	}
	return controller.New(Name, r.reconcile,
		controller.For[*corev1.Service](),
		controller.Watches(r.servicesOf, pods.ByNode(), controller.Where(services.Concerns)),
		controller.Watches(services.ServiceOf(manager), services.ByService()),
		controller.Watches(r.servicesOn, controller.Where(moved)),
		controller.Workers(workers),
		controller.IgnoreOwnWrites())
}

type reconciler struct {
	services *client.Client[*corev1.Service]
	pods     *client.Client[*corev1.Pod]
	nodes    *client.Client[*corev1.Node]
	slices   *client.Client[*discoveryv1.EndpointSlice]
	told     *events.Recorder
	triggers *services.Triggers
}

func (r *reconciler) servicesOf(ctx context.Context, pod *corev1.Pod) []client.Key {
	return services.Of(ctx, r.services, pod)
}

// moved leaves out changes of nodes that make no difference to where they are.
func moved(old, now *corev1.Node) bool {
	return old == nil || now == nil || zoneOf(old) != zoneOf(now)
}

// servicesOn are the keys of services that have pods on a node.
func (r *reconciler) servicesOn(ctx context.Context, node *corev1.Node) []client.Key {
	on, err := pods.OnNode(ctx, r.pods, node.Name)
	if err != nil {
		return nil // the controller ends
	}
	var out []client.Key
	for _, p := range on {
		if services.Member(p) {
			out = append(out, r.servicesOf(ctx, p)...)
		}
	}
	return out
}

func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	s, err := r.observe(ctx, req.Key)
	if client.IsNotFound(err) {
		r.triggers.Forget(req.Key)
		return controller.Done, nil
	}
	if err != nil {
		return controller.Done, fmt.Errorf("observe %s: %w", req.Key, err)
	}
	whole, err := decide(s).Apply(ctx, r.slices)
	if err != nil {
		r.told.Event(s.service, events.Warning, "FailedToUpdateEndpointSlices", "Error updating Endpoint Slices for Service %s: %s", req.Key, pods.Message(err))
		return controller.Done, fmt.Errorf("slices of %s: %w", req.Key, err)
	}
	if whole {
		r.triggers.Keep(req.Key, s.trigger)
	}
	return controller.Done, nil
}

// observe returns what there is of a service.
func (r *reconciler) observe(ctx context.Context, key client.Key) (seen, error) {
	service, err := r.services.Get(ctx, key)
	if err != nil {
		return seen{}, err
	}
	s := seen{service: service, nodes: map[string]*corev1.Node{}}
	if s.slices, err = services.Slices(ctx, r.slices, key, manager); err != nil {
		return seen{}, err
	}
	if !services.Selects(service) {
		return s, nil
	}
	if s.pods, err = services.Pods(ctx, r.pods, service); err != nil {
		return seen{}, err
	}
	s.trigger = r.triggers.Now(service, s.pods)
	for _, p := range s.pods {
		if _, ok := s.nodes[p.Spec.NodeName]; ok || p.Spec.NodeName == "" {
			continue
		}
		node, err := r.nodes.Get(ctx, client.Key{Name: p.Spec.NodeName})
		if client.IgnoreNotFound(err) != nil {
			return seen{}, err
		}
		if err == nil {
			s.nodes[node.Name] = node
		}
	}
	return s, nil
}
