// Package replicaset keeps as many pods running as ReplicaSets say.
//
// A reconcile looks at the pods that a ReplicaSet has, after orphans that it selects
// were adopted and pods that it no longer selects were released. It decides how many
// are to be made, or which are to go; does that; looks again, and reports what it
// sees. There are no expectations of what is still to be seen: clients read what they
// have written.
package replicaset

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/events"
)

// Name is the controller's.
const Name = "replicaset"

// workers is how many ReplicaSets are worked on at once.
const workers = 5

// New returns the controller; clients come from the source, events go to the
// recorder.
func New(s client.Source, told *events.Recorder) *controller.Controller {
	r := &reconciler{sets: client.Of[*appsv1.ReplicaSet](s), pods: client.Of[*corev1.Pod](s), told: told}
	return controller.New(Name, r.reconcile,
		controller.For[*appsv1.ReplicaSet](controller.ByController[*appsv1.ReplicaSet]()),
		controller.Claims[*corev1.Pod](selectorOf),
		controller.Workers(workers),
		controller.IgnoreOwnWrites(),
		controller.Paced())
}

func selectorOf(set *appsv1.ReplicaSet) (labels.Selector, error) {
	return metav1.LabelSelectorAsSelector(set.Spec.Selector)
}

type reconciler struct {
	sets *client.Client[*appsv1.ReplicaSet]
	pods *client.Client[*corev1.Pod]
	told *events.Recorder
}

func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	s, err := r.observe(ctx, req.Key)
	if err != nil {
		return controller.Done, unlessPassed(err)
	}
	do := decide(s)
	failed := r.act(ctx, s.set, do)
	if !do.nothing() {
		if s, err = r.observe(ctx, req.Key); err != nil {
			return controller.Done, unlessPassed(err)
		}
	}
	if err := r.report(ctx, s, failed); err != nil {
		return controller.Done, err
	}
	switch wait := s.untilAvailable(); {
	case failed != nil:
		return controller.Done, failed.err
	case do.more:
		return controller.RequeueAfter(0), nil
	case wait > 0:
		return controller.RequeueAfter(wait), nil
	}
	return controller.Done, nil
}

// unlessPassed is nil if the object is gone, or was written by another since it was
// seen: the event of that is still to come, or waits already, and there is no need
// to try again before.
func unlessPassed(err error) error {
	if client.IsNotFound(err) || client.IsConflict(err) {
		return nil
	}
	return err
}

// observe claims the pods of a ReplicaSet, and returns what there is.
func (r *reconciler) observe(ctx context.Context, key client.Key) (seen, error) {
	set, err := r.sets.Get(ctx, key)
	if err != nil {
		return seen{}, fmt.Errorf("observe %s: %w", key, err)
	}
	selector, err := selectorOf(set)
	if err != nil {
		return seen{}, controller.Terminal(fmt.Errorf("selector of %s: %w", key, err))
	}
	pods, err := controller.Claim(ctx, r.sets, set, r.pods, selector, runs)
	if err != nil {
		return seen{}, fmt.Errorf("observe %s: %w", key, err)
	}
	s := seen{set: set, pods: pods, related: pods, now: time.Now()}
	if owner := metav1.GetControllerOfNoCopy(set); owner != nil && len(s.active()) > wanted(set) {
		s.related, err = r.siblings(ctx, set.Namespace, owner)
	}
	return s, err
}

// siblings are the pods of all ReplicaSets that have the same controller.
func (r *reconciler) siblings(ctx context.Context, namespace string, owner *metav1.OwnerReference) ([]*corev1.Pod, error) {
	sets, err := controller.Controlled(ctx, r.sets, namespace, owner.UID)
	if err != nil {
		return nil, err
	}
	var out []*corev1.Pod
	for _, set := range sets {
		pods, err := controller.Controlled(ctx, r.pods, namespace, set.UID)
		if err != nil {
			return nil, err
		}
		out = append(out, pods...)
	}
	return out, nil
}

// report writes the status, if it is not what is there.
func (r *reconciler) report(ctx context.Context, s seen, failed *failure) error {
	status := s.status(failed)
	if equality.Semantic.DeepEqual(s.set.Status, status) {
		return nil
	}
	now := s.set.DeepCopy()
	now.Status = status
	if _, err := r.sets.UpdateStatus(ctx, now); err != nil {
		return unlessPassed(fmt.Errorf("report %s: %w", client.KeyOf(now), err))
	}
	return nil
}
