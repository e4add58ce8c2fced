package services

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/informer"
)

// serviceIndex has slices by the name of their service.
const serviceIndex = "evenkeel.service"

// ByService has [Slices] find slices in the cache.
func ByService() controller.SourceOption {
	return controller.With(informer.Index(serviceIndex, func(s *discoveryv1.EndpointSlice) []string {
		return []string{s.Labels[discoveryv1.LabelServiceName]}
	}))
}

// Slices returns the slices of a service that somebody manages. Their kind has to be
// watched with [ByService].
func Slices(ctx context.Context, all *client.Client[*discoveryv1.EndpointSlice], service client.Key, by string) ([]*discoveryv1.EndpointSlice, error) {
	var out []*discoveryv1.EndpointSlice
	for s, err := range all.In(service.Namespace).List(ctx, client.Field(serviceIndex, service.Name)) {
		if err != nil {
			return nil, fmt.Errorf("list slices of %s: %w", service, err)
		}
		if s.Labels[discoveryv1.LabelManagedBy] == by {
			out = append(out, s)
		}
	}
	return out, nil
}

// ServiceOf is the key of the service of a slice, if it is one that somebody manages:
// for controller.Watches.
func ServiceOf(by string) func(context.Context, *discoveryv1.EndpointSlice) []client.Key {
	return func(_ context.Context, s *discoveryv1.EndpointSlice) []client.Key {
		if s.Labels[discoveryv1.LabelManagedBy] != by {
			return nil
		}
		return []client.Key{{Namespace: s.Namespace, Name: s.Labels[discoveryv1.LabelServiceName]}}
	}
}

// Apply makes changes, and reports whether it made all. What others have changed or
// removed meanwhile is left as it is: they will be heard of. Nothing is made in a
// namespace that ends.
func (c Changes) Apply(ctx context.Context, all *client.Client[*discoveryv1.EndpointSlice]) (whole bool, err error) {
	var failed []error
	whole = true
	for _, s := range c.Create {
		if _, err := all.Create(ctx, s); err != nil && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			failed = append(failed, fmt.Errorf("create a slice: %w", err))
		}
	}
	note := func(err error, what string, s *discoveryv1.EndpointSlice) {
		switch {
		case client.IsNotFound(err), client.IsConflict(err):
			whole = false
		case err != nil:
			failed = append(failed, fmt.Errorf("%s slice %s: %w", what, s.Name, err))
		}
	}
	for _, s := range c.Update {
		_, err := all.Update(ctx, s)
		note(err, "update", s)
	}
	for _, s := range c.Remove {
		note(all.Delete(ctx, client.KeyOf(s), client.IfUID(s.UID)), "delete", s)
	}
	return whole && len(failed) == 0, errors.Join(failed...)
}
