package replicaset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/events"
)

// The reasons of events, and of the condition ReplicaFailure.
const (
	created      = "SuccessfulCreate"
	deleted      = "SuccessfulDelete"
	failedCreate = "FailedCreate"
	failedDelete = "FailedDelete"
)

// together is how many requests there are at once.
const together = 64

// failure is why there are not the pods that there should be.
type failure struct {
	reason string
	err    error
}

// act makes and deletes pods; it returns what failed.
func (r *reconciler) act(ctx context.Context, set *appsv1.ReplicaSet, do plan) *failure {
	if err := slowStart(do.create, func() error { return r.create(ctx, set) }); err != nil {
		return &failure{failedCreate, fmt.Errorf("create pods of %s: %w", client.KeyOf(set), err)}
	}
	var g errgroup.Group
	g.SetLimit(together)
	for _, pod := range do.remove {
		g.Go(func() error { return r.remove(ctx, set, pod) })
	}
	if err := g.Wait(); err != nil {
		return &failure{failedDelete, fmt.Errorf("delete pods of %s: %w", client.KeyOf(set), err)}
	}
	return nil
}

// slowStart calls f n times, in batches that double in size as long as none fails:
// what cannot be done at all is tried once, and not n times.
func slowStart(n int, f func() error) error {
	for batch := 1; n > 0; batch *= 2 {
		batch = min(batch, n, together)
		var g errgroup.Group
		for range batch {
			g.Go(f)
		}
		if err := g.Wait(); err != nil {
			return err
		}
		n -= batch
	}
	return nil
}

func (r *reconciler) create(ctx context.Context, set *appsv1.ReplicaSet) error {
	pod, err := r.pods.Create(ctx, podOf(set))
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil // it would be deleted at once
	case err != nil:
		r.told.Event(set, events.Warning, failedCreate, "Error creating: %s", message(err))
		return err
	}
	r.told.Event(set, events.Normal, created, "Created pod: %s", pod.Name)
	return nil
}

func (r *reconciler) remove(ctx context.Context, set *appsv1.ReplicaSet, pod *corev1.Pod) error {
	err := r.pods.Delete(ctx, client.KeyOf(pod), client.IfUID(pod.UID))
	switch {
	case client.IsNotFound(err), client.IsConflict(err):
		return nil // it is gone, or another has its name
	case err != nil:
		r.told.Event(set, events.Warning, failedDelete, "Error deleting: %s", message(err))
		return err
	}
	r.told.Event(set, events.Normal, deleted, "Deleted pod: %s", pod.Name)
	return nil
}

// podOf is a pod as the template has it, and controlled by the ReplicaSet.
func podOf(set *appsv1.ReplicaSet) *corev1.Pod {
	t := &set.Spec.Template
	prefix := set.Name + "-"
	if len(prefix) > validation.DNS1123SubdomainMaxLength {
		prefix = set.Name
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: set.Namespace, GenerateName: prefix,
			Labels: maps.Clone(t.Labels), Annotations: maps.Clone(t.Annotations), Finalizers: slices.Clone(t.Finalizers),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))},
		},
		Spec: t.Spec,
	}
}

// message is what the server said, without what led to the request.
func message(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Message
	}
	return err.Error()
}
