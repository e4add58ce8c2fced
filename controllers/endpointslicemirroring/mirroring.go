// Package endpointslicemirroring keeps EndpointSlices that say what people have
// written into the Endpoints of services without a selector.
//
// A reconcile looks at Endpoints, their service and the slices that mirror them, and
// writes the slices that differ. There are none if there is no service, if it selects
// its pods, or if the Endpoints say that they want none.
package endpointslicemirroring

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/controllers/services"
	"github.com/even-keel/evenkeel/events"
)

// Name is the controller's.
const Name = "endpointslicemirroring"

// manager is what the label of slices says that this controller manages.
const manager = "endpointslicemirroring-controller.k8s.io"

// workers is how many Endpoints are worked on at once.
const workers = 5

// New returns the controller; clients come from the source, events go to the
// recorder.
func New(s client.Source, told *events.Recorder) *controller.Controller {
	r := &reconciler{
		endpoints: client.Of[*corev1.Endpoints](s), services: client.Of[*corev1.Service](s),
		slices: client.Of[*discoveryv1.EndpointSlice](s), told: told,
	}
	return controller.New(Name, r.reconcile,
		controller.For[*corev1.Endpoints](),
		controller.Watches(func(_ context.Context, s *corev1.Service) []client.Key { return []client.Key{client.KeyOf(s)} }, controller.Where(concerns)),
		controller.Watches(services.ServiceOf(manager), services.ByService()),
		controller.Workers(workers),
		controller.IgnoreOwnWrites())
}

// concerns leaves out changes of services that make no difference to who says their
// endpoints.
func concerns(old, now *corev1.Service) bool {
	return old == nil || now == nil || (old.Spec.Selector == nil) != (now.Spec.Selector == nil)
}

type reconciler struct {
	endpoints *client.Client[*corev1.Endpoints]
	services  *client.Client[*corev1.Service]
	slices    *client.Client[*discoveryv1.EndpointSlice]
	told      *events.Recorder
}

func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	s, err := r.observe(ctx, req.Key)
	if err != nil {
		return controller.Done, fmt.Errorf("observe %s: %w", req.Key, err)
	}
	do := decide(s)
	if do.invalid > 0 {
		r.told.Event(s.endpoints, events.Warning, "InvalidIPAddress", "Skipped %d invalid IP addresses when mirroring to EndpointSlices", do.invalid)
	}
	if do.surplus > 0 {
		r.told.Event(s.endpoints, events.Warning, "TooManyAddressesToMirror",
			"A max of %d addresses can be mirrored to EndpointSlices per Endpoints subset. %d addresses were skipped", most, do.surplus)
	}
	if _, err := do.Apply(ctx, r.slices); err != nil {
		return controller.Done, fmt.Errorf("slices of %s: %w", req.Key, err)
	}
	return controller.Done, nil
}

// observe returns what there is.
func (r *reconciler) observe(ctx context.Context, key client.Key) (s seen, err error) {
	if s.slices, err = services.Slices(ctx, r.slices, key, manager); err != nil {
		return s, err
	}
	endpoints, err := r.endpoints.Get(ctx, key)
	if err != nil {
		return s, client.IgnoreNotFound(err)
	}
	service, err := r.services.Get(ctx, key)
	if err != nil {
		return s, client.IgnoreNotFound(err)
	}
	s.endpoints, s.service = endpoints, service
	return s, nil
}
