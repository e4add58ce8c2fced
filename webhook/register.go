package webhook

import (
	"context"
	"errors"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/client"
)

const (
	// recheck is how often certificates and registrations are looked after.
	recheck = time.Hour
	// The first and the longest pause after a failure.
	firstRetry, maxRetry = 100 * time.Millisecond, time.Minute
)

// keep keeps certificates fresh, and the server registered at a URL or its service,
// until ctx ends.
func (s *Server) keep(ctx context.Context, certs certificates, url string) error {
	retry := firstRetry
	for {
		pause := recheck
		bundle, err := certs.refresh(ctx)
		if err == nil && !s.opts.Unregistered {
			err = s.register(ctx, url, bundle)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			retry = firstRetry
			s.set(s.Addr(), nil)
		default:
			s.opts.Logger.Error("webhooks cannot be registered", "error", err, "again", retry)
			if s.Ready() != nil { // what API servers know already may well do
				s.set(s.Addr(), err)
			}
			pause, retry = retry, min(2*retry, maxRetry)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// register writes all configurations that the hooks need.
func (s *Server) register(ctx context.Context, url string, bundle []byte) (err error) {
	for _, c := range s.converters {
		err = errors.Join(err, s.registerConversion(ctx, c.hub, s.reachedAt(url, "/convert", bundle)))
	}
	webhooks := map[string][]admissionregistrationv1.MutatingWebhook{}
	for _, h := range s.hooks {
		if h.resource.Empty() {
			resource, missing := s.conn.Resolve(ctx, h.gvk)
			if missing != nil {
				return errors.Join(err, fmt.Errorf("register %s: %w", h.path(), missing))
			}
			h.resource = resource.GroupVersionResource
		}
		w := h.registered(s.opts.Name)
		w.ClientConfig = s.reachedAt(url, h.path(), bundle)
		webhooks[configurations[h.verb]] = append(webhooks[configurations[h.verb]], w)
	}
	for kind, list := range webhooks {
		err = errors.Join(err, s.apply(ctx, admissionregistrationv1.SchemeGroupVersion.WithKind(kind), s.opts.Name, "webhooks", list))
	}
	return err
}

// configurations are the kinds that have webhooks. In JSON, those of both are the same.
var configurations = map[string]string{"mutate": "MutatingWebhookConfiguration", "validate": "ValidatingWebhookConfiguration"}

// apply makes a field of an object what value says.
func (s *Server) apply(ctx context.Context, kind schema.GroupVersionKind, name, field string, value any) error {
	objects := client.Of[*unstructured.Unstructured](s.conn, client.Kind(kind))
	_, err := objects.Patch(ctx, client.Key{Name: name}, client.ApplyPatch(map[string]any{
		"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind, "metadata": map[string]any{"name": name}, field: value,
	}), client.FieldManager(s.opts.Name), client.Force())
	if err != nil {
		return fmt.Errorf("register in %s %s: %w", kind.Kind, name, err)
	}
	return nil
}

// reachedAt tells where a path of the server is.
func (s *Server) reachedAt(url, path string, bundle []byte) admissionregistrationv1.WebhookClientConfig {
	if url != "" {
		return admissionregistrationv1.WebhookClientConfig{URL: new(url + path), CABundle: bundle}
	}
	return admissionregistrationv1.WebhookClientConfig{CABundle: bundle, Service: &admissionregistrationv1.ServiceReference{
		Namespace: s.opts.Service.Namespace, Name: s.opts.Service.Name, Port: &s.opts.ServicePort, Path: &path,
	}}
}

// registered is the entry of a hook in a configuration, but for where it is.
func (h Hook) registered(configuration string) admissionregistrationv1.MutatingWebhook {
	r := h.resource
	w := admissionregistrationv1.MutatingWebhook{
		Name: h.name(configuration), SideEffects: new(admissionregistrationv1.SideEffectClassNone),
		AdmissionReviewVersions: []string{"v1"},
		Rules: []admissionregistrationv1.RuleWithOperations{{Rule: admissionregistrationv1.Rule{
			APIGroups: []string{r.Group}, APIVersions: []string{r.Version}, Resources: []string{r.Resource},
		}}},
	}
	for _, o := range h.operations {
		w.Rules[0].Operations = append(w.Rules[0].Operations, admissionregistrationv1.OperationType(o))
	}
	if h.configure != nil {
		h.configure(&w)
	}
	return w
}

var definitionKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// registerConversion has the definition of a kind, which is served, name the webhook.
func (s *Server) registerConversion(ctx context.Context, hub schema.GroupVersionKind, at admissionregistrationv1.WebhookClientConfig) error {
	resource, err := s.conn.Resolve(ctx, hub)
	if err != nil {
		return fmt.Errorf("register the conversion of %v: %w", hub, err)
	}
	return s.apply(ctx, definitionKind, resource.GroupResource().String(), "spec", map[string]any{"conversion": map[string]any{
		"strategy": "Webhook",
		"webhook":  map[string]any{"conversionReviewVersions": []string{"v1"}, "clientConfig": at},
	}})
}
