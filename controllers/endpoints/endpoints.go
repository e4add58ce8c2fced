// Package endpoints keeps the Endpoints of services that select pods, for clients that
// do not read EndpointSlices.
//
// A reconcile looks at a service and its pods, decides what its Endpoints should be,
// and writes them if they differ. They keep the name of their service, and go when that
// goes. Those of a service that has lost its selector stay as they are: from then on,
// they are for people to write.
package endpoints

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/controllers/pods"
	"github.com/even-keel/evenkeel/controllers/services"
	"github.com/even-keel/evenkeel/events"
)

// Name is the controller's.
const Name = "endpoints"

// workers is how many services are worked on at once.
const workers = 5

// New returns the controller; clients come from the source, events go to the
// recorder.
func New(s client.Source, told *events.Recorder) *controller.Controller {
	r := &reconciler{
		services: client.Of[*corev1.Service](s), pods: client.Of[*corev1.Pod](s), endpoints: client.Of[*corev1.Endpoints](s),
		told: told, triggers: services.NewTriggers(),
	}
	return controller.New(Name, r.reconcile,
		controller.For[*corev1.Service](),
		controller.Watches(r.servicesOf, controller.Where(services.Concerns)),
		controller.Watches(r.serviceOf),
		controller.Workers(workers),
		controller.IgnoreOwnWrites())
}

type reconciler struct {
	services  *client.Client[*corev1.Service]
	pods      *client.Client[*corev1.Pod]
	endpoints *client.Client[*corev1.Endpoints]
	told      *events.Recorder
	triggers  *services.Triggers
}

func (r *reconciler) servicesOf(ctx context.Context, pod *corev1.Pod) []client.Key {
	return services.Of(ctx, r.services, pod)
}

// serviceOf is the key of the service of Endpoints. Those that people wrote without a
// service concern nobody.
func (r *reconciler) serviceOf(ctx context.Context, e *corev1.Endpoints) []client.Key {
	key := client.KeyOf(e)
	if _, err := r.services.Get(ctx, key); err != nil && !mine(e) {
		return nil
	}
	return []client.Key{key}
}

func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	s, err := r.observe(ctx, req.Key)
	if err != nil {
		return controller.Done, fmt.Errorf("observe %s: %w", req.Key, err)
	}
	err = r.act(ctx, s, decide(s))
	switch {
	case client.IsNotFound(err), client.IsConflict(err):
		return controller.Done, nil // what others have changed meanwhile will be heard of
	case err != nil:
		return controller.Done, fmt.Errorf("endpoints of %s: %w", req.Key, err)
	case s.service == nil:
		r.triggers.Forget(req.Key)
	default:
		r.triggers.Keep(req.Key, s.trigger)
	}
	return controller.Done, nil
}

// observe returns what there is. That a service is gone is believed of the server
// only, as what another process wrote may be known earlier than what it is about.
func (r *reconciler) observe(ctx context.Context, key client.Key) (s seen, err error) {
	s.endpoints, err = r.endpoints.Get(ctx, key)
	if client.IgnoreNotFound(err) != nil {
		return s, err
	}
	if err != nil {
		s.endpoints = nil
	}
	s.service, err = r.services.Get(ctx, key)
	if client.IsNotFound(err) && s.endpoints != nil {
		s.service, err = r.services.Live().Get(ctx, key)
	}
	if err != nil {
		s.service = nil
		return s, client.IgnoreNotFound(err)
	}
	if !services.Selects(s.service) {
		return s, nil
	}
	if s.pods, err = services.Pods(ctx, r.pods, s.service); err != nil {
		return s, err
	}
	s.trigger = r.triggers.Now(s.service, s.pods)
	return s, nil
}

// act does what is planned.
func (r *reconciler) act(ctx context.Context, s seen, do plan) error {
	var err error
	switch {
	case do.remove:
		err = r.endpoints.Delete(ctx, client.KeyOf(s.endpoints), client.IfUID(s.endpoints.UID))
	case do.write == nil:
	case s.endpoints == nil:
		_, err = r.endpoints.Create(ctx, do.write)
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apierrors.IsAlreadyExists(err) {
			return nil
		}
		r.tell(do.write, err, "FailedToCreateEndpoint", "Failed to create endpoint for service")
	default:
		_, err = r.endpoints.Update(ctx, do.write)
		r.tell(do.write, err, "FailedToUpdateEndpoint", "Failed to update endpoint")
	}
	return err
}

func (r *reconciler) tell(about *corev1.Endpoints, err error, reason, what string) {
	if err != nil && !client.IsConflict(err) {
		r.told.Event(about, events.Warning, reason, "%s %s: %s", what, client.KeyOf(about), pods.Message(err))
	}
}
