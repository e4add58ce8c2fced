// Package deployment rolls Deployments out: it makes a ReplicaSet of each template
// that a Deployment has had, and moves replicas from the old ones to the new.
//
// A reconcile looks at the ReplicaSets of a Deployment, decides how large each should
// be, writes that, and reports. Pods are the business of package replicaset: how many
// there are, run and are about to end is read from the status of their ReplicaSets,
// and no pod is watched here.
package deployment

import (
	"context"
	"fmt"
	"maps"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/events"
)

// Name is the controller's.
const Name = "deployment"

// workers is how many Deployments are worked on at once.
const workers = 5

// New returns the controller; clients come from the source, events go to the
// recorder.
func New(s client.Source, told *events.Recorder) *controller.Controller {
	r := &reconciler{deployments: client.Of[*appsv1.Deployment](s), sets: client.Of[*appsv1.ReplicaSet](s), told: told}
	return controller.New(Name, r.reconcile,
		controller.For[*appsv1.Deployment](),
		controller.Claims[*appsv1.ReplicaSet](selectorOf),
		controller.Workers(workers),
		controller.IgnoreOwnWrites(),
		controller.Paced())
}

func selectorOf(d *appsv1.Deployment) (labels.Selector, error) {
	return metav1.LabelSelectorAsSelector(d.Spec.Selector)
}

type reconciler struct {
	deployments *client.Client[*appsv1.Deployment]
	sets        *client.Client[*appsv1.ReplicaSet]
	told        *events.Recorder
}

func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	s, err := r.observe(ctx, req.Key)
	if err != nil {
		return controller.Done, unlessPassed(err)
	}
	do := decide(s)
	if do.nothing() {
		return r.report(ctx, s, outcome{})
	}
	did := r.act(ctx, s.deployment, do)
	if s, err = r.observe(ctx, req.Key); err != nil {
		return controller.Done, unlessPassed(err)
	}
	return r.report(ctx, s, did)
}

// unlessPassed is nil if an object is gone, or was written by another since it was
// seen: the event of that is still to come, or waits already, and there is no need
// to try again before.
func unlessPassed(err error) error {
	if client.IsNotFound(err) || client.IsConflict(err) {
		return nil
	}
	return err
}

// observe claims the ReplicaSets of a Deployment, and returns what there is.
func (r *reconciler) observe(ctx context.Context, key client.Key) (seen, error) {
	d, err := r.deployments.Get(ctx, key)
	if err != nil {
		return seen{}, fmt.Errorf("observe %s: %w", key, err)
	}
	selector, err := selectorOf(d)
	if err != nil {
		return seen{}, controller.Terminal(fmt.Errorf("selector of %s: %w", key, err))
	}
	sets, err := controller.Claim(ctx, r.deployments, d, r.sets, selector, nil)
	if err != nil {
		return seen{}, fmt.Errorf("observe %s: %w", key, err)
	}
	return seen{deployment: d, sets: sets, now: time.Now()}, nil
}

// report writes the status and the revision, if they are not what is there, and says
// when to look again.
func (r *reconciler) report(ctx context.Context, s seen, did outcome) (controller.Result, error) {
	now := s.deployment.DeepCopy()
	now.Status = s.status(did)
	if revision := s.revision(); revision != "" {
		metav1.SetMetaDataAnnotation(&now.ObjectMeta, revisionAnnotation, revision)
	}
	if !equality.Semantic.DeepEqual(s.deployment.Status, now.Status) || !maps.Equal(s.deployment.Annotations, now.Annotations) {
		if _, err := r.deployments.UpdateStatus(ctx, now); err != nil {
			return controller.Done, unlessPassed(fmt.Errorf("report %s: %w", client.KeyOf(now), err))
		}
	}
	switch wait := untilDeadline(now, s.now); {
	case did.err != nil:
		return controller.Done, unlessPassed(did.err)
	case did.collided:
		return controller.RequeueAfter(0), nil
	case wait > 0:
		return controller.RequeueAfter(wait), nil
	}
	return controller.Done, nil
}
