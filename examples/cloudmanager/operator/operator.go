package operator

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/events"
	v1 "github.com/even-keel/evenkeel/examples/cloudmanager/api/v1"
	"github.com/even-keel/evenkeel/informer"
	"github.com/even-keel/evenkeel/manager"
)

// Options say how the operator works. The zero value is right for most.
type Options struct {
	// Namespace is the one to work in; "" is all.
	Namespace string
	// Workers is how many applications are looked at at once: 1.
	Workers int
}

// The indexes of the caches.
const (
	// byOwner has objects by the UID of what controls them.
	byOwner = "owner"
	// byName has CloudManagers by the objects that they name.
	byName = "names"
)

// reconciler looks at one application at a time.
type reconciler struct {
	managers     *client.Client[*v1.CloudManager]
	secrets      *client.Client[*corev1.Secret]
	statefulSets *client.Client[*appsv1.StatefulSet]
	deployments  *client.Client[*appsv1.Deployment]
	events       *events.Recorder
}

// New returns the controller, for a manager to run.
func New(mgr *manager.Manager, o Options) *controller.Controller {
	r := &reconciler{
		managers:     client.Of[*v1.CloudManager](mgr), // they read from the cache, and see what they wrote
		secrets:      client.Of[*corev1.Secret](mgr),
		statefulSets: client.Of[*appsv1.StatefulSet](mgr),
		deployments:  client.Of[*appsv1.Deployment](mgr),
		events:       mgr.Events("cloudmanager"),
	}
	here := informer.InNamespace(o.Namespace)
	opts := []controller.Option{
		controller.For[*v1.CloudManager](controller.With(here, informer.Index(byName, namesOf))),
		controller.Workers(max(o.Workers, 1)),
	}
	opts = append(opts, concerns[*corev1.Secret](r, here)...)
	opts = append(opts, concerns[*appsv1.StatefulSet](r, here)...)
	opts = append(opts, concerns[*appsv1.Deployment](r, here)...)
	return controller.NewTyped("cloudmanager", r.reconcile, opts...)
}

// concerns has the controller hear of objects that an application owns, and of those
// that have a name which it wants for its own.
func concerns[T client.Object](r *reconciler, here informer.Option) []controller.Option {
	with := controller.With(here, informer.Index(byOwner, ownerOf[T]))
	return []controller.Option{
		controller.Owns[T](with),
		controller.Watches(func(ctx context.Context, obj T) []controller.Key { return r.naming(ctx, obj) }, with),
	}
}

// ownerOf is the UID of what controls an object.
func ownerOf[T client.Object](obj T) []string {
	if owner := metav1.GetControllerOfNoCopy(obj); owner != nil {
		return []string{string(owner.UID)}
	}
	return nil
}

// naming are the applications that name an object.
func (r *reconciler) naming(ctx context.Context, obj client.Object) []controller.Key {
	var keys []controller.Key
	for cm, err := range r.managers.In(obj.GetNamespace()).List(ctx, client.Field(byName, nameOf(obj))) {
		if err != nil {
			return nil // it ends
		}
		keys = append(keys, client.KeyOf(cm))
	}
	return keys
}

func (r *reconciler) reconcile(ctx context.Context, req controller.Request, cm *v1.CloudManager) (controller.Result, error) {
	if cm == nil || cm.DeletionTimestamp != nil {
		return controller.Done, nil // what it owns goes with it
	}
	s, err := r.observe(ctx, cm)
	if err != nil {
		return controller.Done, fmt.Errorf("observe %s: %w", req.Key, err)
	}
	return controller.Done, r.act(ctx, cm, decide(s))
}

// observe reads all that is the application's, and all that has a name it wants.
func (r *reconciler) observe(ctx context.Context, cm *v1.CloudManager) (seen, error) {
	s := seen{cm: cm, objects: map[string]client.Object{}}
	err := look(ctx, r.secrets, s, authName(cm))
	if err == nil {
		err = look(ctx, r.statefulSets, s, cm.Spec.DB.Name)
	}
	if err == nil {
		err = look(ctx, r.deployments, s, cm.Spec.Identity.Name, cm.Spec.Front.Name)
	}
	return s, err
}

// look reads the objects of a kind that are owned, and those of some names.
func look[T client.Object](ctx context.Context, c *client.Client[T], s seen, names ...string) error {
	c = c.In(s.cm.Namespace)
	for obj, err := range c.List(ctx, client.Field(byOwner, string(s.cm.UID))) {
		if err != nil {
			return err
		}
		s.objects[nameOf(obj)] = obj
	}
	for _, name := range names {
		if name == "" {
			continue
		}
		obj, err := c.Get(ctx, client.Key{Name: name})
		if client.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		s.objects[nameOf(obj)] = obj
	}
	return nil
}
