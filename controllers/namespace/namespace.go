package namespace

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/events"
	"github.com/even-keel/evenkeel/workqueue"
)

// workers is how many namespaces are emptied at once, as with the real one.
const workers = 10

// A namespace that is not empty is looked at again after a while, which grows.
const (
	againAfter  = 50 * time.Millisecond
	againAtMost = 5 * time.Second
)

type reconciler struct {
	conn       *client.Conn
	namespaces *client.Client[*corev1.Namespace]
	finalize   *client.Subresource[*corev1.Namespace]
}

// New returns the controller; clients come from the source. It tells no events.
func New(s client.Source, _ *events.Recorder) *controller.Controller {
	r := &reconciler{conn: s.Conn(), namespaces: client.Of[*corev1.Namespace](s)}
	r.finalize = client.Sub[*corev1.Namespace](r.namespaces, "finalize")
	return controller.New("namespace", r.reconcile,
		controller.For[*corev1.Namespace](controller.Where(deleted)),
		controller.Workers(workers),
		controller.Backoff(workqueue.Exponential(againAfter, againAtMost)),
		controller.RetryRate(-1, 0),
		controller.IgnoreOwnWrites(),
	)
}

// deleted leaves out namespaces that stay, and those that are gone.
func deleted(_, now *corev1.Namespace) bool { return now != nil && now.DeletionTimestamp != nil }

func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	// From the server: what the cache shows may have gone, and another may have come
	// that stays. One that waits for this controller goes nowhere without it.
	ns, err := r.namespaces.Live().Get(ctx, req.Key)
	if err != nil || ns.DeletionTimestamp == nil || !held(ns) {
		return controller.Done, client.IgnoreNotFound(err)
	}
	conditions, done := decide(empty(ctx, r.conn, ns.Name))
	if err := ctx.Err(); err != nil {
		return controller.Done, err // what failed, failed for that
	}
	if ns, err = r.tell(ctx, ns, conditions); err != nil {
		return controller.Done, client.IgnoreNotFound(err)
	}
	if !done {
		return controller.Requeue, nil
	}
	return controller.Done, client.IgnoreNotFound(r.release(ctx, ns))
}

// held says that the namespace waits for this controller.
func held(ns *corev1.Namespace) bool {
	return slices.Contains(ns.Spec.Finalizers, corev1.FinalizerKubernetes)
}

// tell writes what has changed in the namespace's status.
func (r *reconciler) tell(ctx context.Context, ns *corev1.Namespace, conditions []corev1.NamespaceCondition) (*corev1.Namespace, error) {
	changed := merge(&ns.Status.Conditions, conditions, metav1.Now())
	if ns.Status.Phase != corev1.NamespaceTerminating {
		ns.Status.Phase, changed = corev1.NamespaceTerminating, true
	}
	if !changed {
		return ns, nil
	}
	ns, err := r.namespaces.UpdateStatus(ctx, ns)
	if err != nil {
		return nil, fmt.Errorf("write the status: %w", err)
	}
	return ns, nil
}

// release takes the controller's finalizer from an empty namespace.
func (r *reconciler) release(ctx context.Context, ns *corev1.Namespace) error {
	ns.Spec.Finalizers = slices.DeleteFunc(ns.Spec.Finalizers, func(f corev1.FinalizerName) bool { return f == corev1.FinalizerKubernetes })
	if _, err := r.finalize.Update(ctx, client.KeyOf(ns), ns); err != nil {
		return fmt.Errorf("finalize: %w", err)
	}
	return nil
}
