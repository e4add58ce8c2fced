package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/events"
	"github.com/even-keel/evenkeel/examples/foo/api/v1alpha1"
	"github.com/even-keel/evenkeel/informer"
	"github.com/even-keel/evenkeel/manager"
)

// resync is how often every Foo is looked at, even if nothing has changed.
const resync = 30 * time.Second

// The reasons of the events.
const (
	synced         = "Synced"
	resourceExists = "ErrResourceExists"
)

var errNoName = errors.New("spec.deploymentName is not set")

// reconciler makes of each Foo a Deployment.
type reconciler struct {
	foos        *client.Client[*v1alpha1.Foo]
	deployments *client.Client[*appsv1.Deployment]
	events      *events.Recorder
}

// newController returns the controller, for a manager to run.
func newController(mgr *manager.Manager) *controller.Controller {
	r := &reconciler{
		// These read from the cache, and see their own writes.
		foos:        client.Of[*v1alpha1.Foo](mgr),
		deployments: client.Of[*appsv1.Deployment](mgr),
		events:      mgr.Events("foo-controller"),
	}
	return controller.New("foo", r.reconcile,
		controller.For[*v1alpha1.Foo](controller.Resync(resync)),
		controller.Owns[*appsv1.Deployment](controller.With(informer.Index("owner", ownerOf))),
		controller.Workers(2),
	)
}

// ownerOf is the UID of what controls a Deployment.
func ownerOf(d *appsv1.Deployment) []string {
	if c := metav1.GetControllerOfNoCopy(d); c != nil {
		return []string{string(c.UID)}
	}
	return nil
}

func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	foo, err := r.foos.Get(ctx, req.Key)
	if err != nil {
		return controller.Done, client.IgnoreNotFound(err)
	}
	if foo.DeletionTimestamp != nil {
		return controller.Done, nil // its Deployment goes with it
	}
	if foo.Spec.DeploymentName == "" {
		return controller.Done, controller.Terminal(errNoName) // trying again would not help
	}
	deployment, deployed, err := r.deploy(ctx, foo)
	if err != nil {
		return controller.Done, err
	}
	if err := r.prune(ctx, foo); err != nil {
		return controller.Done, err
	}
	if !deployed && foo.Status.AvailableReplicas == deployment.Status.AvailableReplicas {
		return controller.Done, nil
	}
	if err := r.tell(ctx, foo, deployment); err != nil {
		return controller.Done, err
	}
	r.events.Event(foo, events.Normal, synced, "Foo synced successfully")
	return controller.Done, nil
}

// deploy makes the Deployment what the Foo says, and reports whether it wrote.
func (r *reconciler) deploy(ctx context.Context, foo *v1alpha1.Foo) (now *appsv1.Deployment, wrote bool, err error) {
	key := client.Key{Namespace: foo.Namespace, Name: foo.Spec.DeploymentName}
	there, err := r.deployments.Get(ctx, key)
	switch {
	case client.IsNotFound(err):
		wanted := newDeployment(key, foo.Spec.Replicas)
		if err := controller.SetController(r.foos.Conn(), foo, wanted); err != nil {
			return nil, false, err
		}
		now, err = r.deployments.Create(ctx, wanted)
	case err != nil:
		return nil, false, err
	case !controller.Controls(foo, there):
		r.events.Event(foo, events.Warning, resourceExists, "Deployment %q already exists and is not managed by Foo %q", key.Name, foo.Name)
		return nil, false, fmt.Errorf("deployment %s: %w", key, errNotManaged)
	case foo.Spec.Replicas == nil || there.Spec.Replicas != nil && *there.Spec.Replicas == *foo.Spec.Replicas:
		return there, false, nil
	default:
		changed := there.DeepCopy() // what the cache returns is shared
		changed.Spec.Replicas = foo.Spec.Replicas
		now, err = r.deployments.Update(ctx, changed)
	}
	return now, err == nil, err
}

var errNotManaged = errors.New("it exists and is not managed by the Foo")

// prune deletes Deployments of the Foo that it no longer names.
func (r *reconciler) prune(ctx context.Context, foo *v1alpha1.Foo) error {
	for d, err := range r.deployments.In(foo.Namespace).List(ctx, client.Field("owner", string(foo.UID))) {
		if err != nil {
			return err
		}
		if d.Name == foo.Spec.DeploymentName {
			continue
		}
		if err := r.deployments.Delete(ctx, client.KeyOf(d), client.IfUID(d.UID)); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// tell writes into the Foo's status what became of it.
func (r *reconciler) tell(ctx context.Context, foo *v1alpha1.Foo, d *appsv1.Deployment) error {
	foo = foo.DeepCopy()
	foo.Status.AvailableReplicas = d.Status.AvailableReplicas
	_, err := r.foos.UpdateStatus(ctx, foo)
	return err
}

// newDeployment is one of nginx; a real controller would have more to say here.
func newDeployment(key client.Key, replicas *int32) *appsv1.Deployment {
	labels := map[string]string{"app": "nginx", "controller": key.Name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec: appsv1.DeploymentSpec{
			Replicas: replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx:latest"}}},
			},
		},
	}
}
