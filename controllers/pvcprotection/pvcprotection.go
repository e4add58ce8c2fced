// Package pvcprotection has persistent volume claims that are deleted wait until no pod
// on a node uses them: it gives them a finalizer, and takes it off then.
package pvcprotection

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/events"
)

// Name is the controller's.
const Name = "pvcprotection"

// Finalizer is that of claims.
const Finalizer = "kubernetes.io/pvc-protection"

// workers is how many claims are worked on at once.
const workers = 2

// errInUse says that a claim has to wait.
var errInUse = errors.New("a pod uses it")

// New returns the controller; clients come from the source. It tells of no events.
func New(s client.Source, _ *events.Recorder) *controller.Controller {
	r := &reconciler{
		claims: client.Of[*corev1.PersistentVolumeClaim](s),
		pods:   client.Of[*corev1.Pod](s), now: client.Of[*corev1.Pod](s.Conn()),
	}
	return controller.New(Name, r.reconcile,
		controller.For[*corev1.PersistentVolumeClaim](),
		controller.Watches(func(_ context.Context, p *corev1.Pod) []controller.Key { return claimsOf(p) }),
		controller.Workers(workers))
}

type reconciler struct {
	claims *client.Client[*corev1.PersistentVolumeClaim]
	pods   *client.Client[*corev1.Pod]
	now    *client.Client[*corev1.Pod] // asks the server
}

func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	claim, err := r.claims.Get(ctx, req.Key)
	if err != nil {
		return controller.Done, client.IgnoreNotFound(err)
	}
	_, _, err = controller.Finalize(ctx, r.claims, claim, Finalizer, r.free)
	if errors.Is(err, errInUse) {
		return controller.Done, nil // the pod tells when it goes
	}
	return controller.Done, client.IgnoreNotFound(err)
}

// free is nil if no pod uses a claim. What the cache says is not enough: a pod may have
// been bound just now.
func (r *reconciler) free(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	for _, pods := range []*client.Client[*corev1.Pod]{r.pods, r.now} {
		for p, err := range pods.In(claim.Namespace).List(ctx) {
			if err != nil {
				return fmt.Errorf("list pods: %w", err)
			}
			if uses(p, claim) {
				return errInUse
			}
		}
	}
	return nil
}

// uses reports whether a pod uses a claim: it is on a node and names it.
func uses(p *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
	if p.Spec.NodeName == "" {
		return false
	}
	for _, key := range claimsOf(p) {
		if key == client.KeyOf(claim) {
			return true
		}
	}
	return false
}

// claimsOf are the claims that a pod names, those made for it included.
func claimsOf(p *corev1.Pod) []controller.Key {
	var keys []controller.Key
	for _, v := range p.Spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			keys = append(keys, controller.Key{Namespace: p.Namespace, Name: v.PersistentVolumeClaim.ClaimName})
		case v.Ephemeral != nil:
			keys = append(keys, controller.Key{Namespace: p.Namespace, Name: p.Name + "-" + v.Name})
		}
	}
	return keys
}
