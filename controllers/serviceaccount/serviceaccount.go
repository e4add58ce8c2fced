// Package serviceaccount has every namespace have a service account "default", which
// pods run as that name none.
package serviceaccount

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/events"
	"github.com/even-keel/evenkeel/informer"
)

// account is the name of the service account.
const account = "default"

type reconciler struct {
	namespaces *client.Client[*corev1.Namespace]
	known      *client.Client[*metav1.PartialObjectMetadata]
	accounts   *client.Client[*corev1.ServiceAccount]
}

// New returns the controller; clients come from the source. It tells no events.
func New(s client.Source, _ *events.Recorder) *controller.Controller {
	kind := corev1.SchemeGroupVersion.WithKind("ServiceAccount")
	r := &reconciler{
		namespaces: client.Of[*corev1.Namespace](s),
		known:      client.Of[*metav1.PartialObjectMetadata](s, client.Kind(kind)),
		accounts:   client.Of[*corev1.ServiceAccount](s),
	}
	return controller.New("serviceaccount", r.reconcile,
		controller.For[*corev1.Namespace](),
		// Metadata alone, so that the cache of some is not asked for others.
		controller.Watches(namespaceOf, controller.Kind(kind), controller.With(informer.Fields("metadata.name="+account))),
	)
}

func namespaceOf(_ context.Context, o *metav1.PartialObjectMetadata) []controller.Key {
	return []controller.Key{{Name: o.Namespace}}
}

func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	ns, err := r.namespaces.Get(ctx, req.Key)
	if client.IsNotFound(err) {
		return controller.Done, nil
	}
	if err != nil {
		return controller.Done, err
	}
	_, err = r.known.Get(ctx, client.Key{Namespace: ns.Name, Name: account})
	if client.IgnoreNotFound(err) != nil {
		return controller.Done, err
	}
	if !decide(ns, err == nil) {
		return controller.Done, nil
	}
	return controller.Done, r.create(ctx, ns.Name)
}

// decide reports whether the account is to be made: one that is missing, where it
// may stay.
func decide(ns *corev1.Namespace, exists bool) bool {
	return !exists && ns.DeletionTimestamp == nil && ns.Status.Phase != corev1.NamespaceTerminating
}

func (r *reconciler) create(ctx context.Context, namespace string) error {
	_, err := r.accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}})
	if err == nil || client.IsAlreadyExists(err) || client.IsNotFound(err) || isTerminating(err) {
		return nil
	}
	return fmt.Errorf("create service account %s/%s: %w", namespace, account, err)
}

// isTerminating reports whether nothing new may come to a namespace that goes.
func isTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}
