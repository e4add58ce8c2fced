// Package rootca has every namespace have the config map kube-root-ca.crt, by which
// pods check the certificate of the API server.
package rootca

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/events"
	"github.com/even-keel/evenkeel/informer"
)

const (
	// mapName is the name of the config map, and dataKey where the certificates are.
	mapName = "kube-root-ca.crt"
	dataKey = "ca.crt"
	// noteKey is the annotation that tells people what the map is for.
	noteKey = "kubernetes.io/description"
	note    = "What to check the API server's certificate against when it is reached from inside the cluster, as kubernetes.default.svc."
)

// Options say what is published.
type Options struct {
	// CA are the certificates that the API server's is checked against, in PEM.
	CA []byte
}

type reconciler struct {
	ca         string
	namespaces *client.Client[*corev1.Namespace]
	maps       *client.Client[*unstructured.Unstructured]
}

// New returns the controller; clients come from the source. It tells no events.
func New(s client.Source, _ *events.Recorder, o Options) *controller.Controller {
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	r := &reconciler{
		ca:         string(o.CA),
		namespaces: client.Of[*corev1.Namespace](s),
		maps:       client.Of[*unstructured.Unstructured](s, client.Kind(kind)),
	}
	return controller.New("rootca", r.reconcile,
		controller.For[*corev1.Namespace](),
		// Not of the Go type, so that the cache of some is not asked for others.
		controller.Watches(namespaceOf, controller.Kind(kind), controller.With(informer.Fields("metadata.name="+mapName))),
	)
}

func namespaceOf(_ context.Context, o *unstructured.Unstructured) []controller.Key {
	return []controller.Key{{Name: o.GetNamespace()}}
}

func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	ns, err := r.namespaces.Get(ctx, req.Key)
	if client.IsNotFound(err) {
		return controller.Done, nil
	}
	if err != nil {
		return controller.Done, err
	}
	has, err := r.maps.Get(ctx, client.Key{Namespace: ns.Name, Name: mapName})
	if client.IgnoreNotFound(err) != nil {
		return controller.Done, err
	}
	if err != nil {
		has = nil
	}
	return controller.Done, r.write(ctx, decide(ns, has, r.ca))
}

// decide returns the config map as it is to be written, or nil if there is nothing to
// do. Has is nil if there is none.
func decide(ns *corev1.Namespace, has *unstructured.Unstructured, ca string) *unstructured.Unstructured {
	if ns.DeletionTimestamp != nil || ns.Status.Phase == corev1.NamespaceTerminating {
		return nil
	}
	want := map[string]string{dataKey: ca}
	out := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	if has != nil {
		if data, _, err := unstructured.NestedStringMap(has.Object, "data"); err == nil && maps.Equal(data, want) {
			return nil
		}
		out = has.DeepCopy()
	}
	out.SetNamespace(ns.Name)
	out.SetName(mapName)
	notes := out.GetAnnotations()
	if notes == nil {
		notes = map[string]string{}
	}
	notes[noteKey] = note
	out.SetAnnotations(notes)
	out.Object["data"] = map[string]any{dataKey: ca}
	return out
}

func (r *reconciler) write(ctx context.Context, want *unstructured.Unstructured) (err error) {
	switch {
	case want == nil:
		return nil
	case want.GetResourceVersion() == "":
		_, err = r.maps.Create(ctx, want)
	default:
		_, err = r.maps.Update(ctx, want)
	}
	if err == nil || client.IsAlreadyExists(err) || client.IsNotFound(err) || isTerminating(err) {
		return nil
	}
	return fmt.Errorf("write config map %s: %w", client.KeyOf(want), err)
}

// isTerminating reports whether nothing new may come to a namespace that goes.
func isTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}
