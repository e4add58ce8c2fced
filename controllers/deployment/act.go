package deployment

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/events"
)

// scaled is the reason of events about the size of ReplicaSets.
const scaled = "ScalingReplicaSet"

// outcome is what became of a plan.
type outcome struct {
	// created is the ReplicaSet that was made, refused why the server did not want it.
	created, refused string
	// collided says that another has the name.
	collided bool
	err      error
}

// act does what is planned, up to the first failure.
func (r *reconciler) act(ctx context.Context, d *appsv1.Deployment, do plan) (did outcome) {
	if do.create != nil {
		if did = r.create(ctx, d, do.create); did.err != nil || did.collided {
			return did
		}
	}
	for _, c := range do.update {
		if did.err = r.update(ctx, d, c); did.err != nil {
			return did
		}
	}
	for _, set := range do.remove {
		if err := r.sets.Delete(ctx, client.KeyOf(set), client.IfUID(set.UID)); client.IgnoreNotFound(err) != nil {
			did.err = fmt.Errorf("tidy up %s: %w", client.KeyOf(set), err)
			return did
		}
	}
	return did
}

func (r *reconciler) create(ctx context.Context, d *appsv1.Deployment, set *appsv1.ReplicaSet) outcome {
	made, err := r.sets.Create(ctx, set)
	switch {
	case client.IsAlreadyExists(err):
		return r.collision(ctx, d, set, err)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return outcome{err: fmt.Errorf("create %s: %w", client.KeyOf(set), err)}
	case err != nil:
		refused := fmt.Sprintf("Failed to create new replica set %q: %s", set.Name, message(err))
		r.told.Event(d, events.Warning, setCreateError, "%s", refused)
		return outcome{refused: refused, err: fmt.Errorf("create %s: %w", client.KeyOf(set), err)}
	}
	r.tell(d, made, 0)
	return outcome{created: made.Name}
}

// collision looks at who has the name of a ReplicaSet. If it is the one that was to
// be made, the cache has yet to hear of it.
func (r *reconciler) collision(ctx context.Context, d *appsv1.Deployment, set *appsv1.ReplicaSet, because error) outcome {
	there, err := r.sets.Live().Get(ctx, client.KeyOf(set))
	if err != nil {
		return outcome{err: fmt.Errorf("create %s: %w", client.KeyOf(set), err)}
	}
	if controller.Controls(d, there) && sameTemplate(&there.Spec.Template, &d.Spec.Template) {
		return outcome{err: fmt.Errorf("create %s: %w", client.KeyOf(set), because)}
	}
	return outcome{collided: true}
}

func (r *reconciler) update(ctx context.Context, d *appsv1.Deployment, c change) error {
	now, err := r.sets.Update(ctx, c.set)
	if err != nil {
		return fmt.Errorf("scale %s: %w", client.KeyOf(c.set), err)
	}
	r.tell(d, now, c.was)
	return nil
}

// tell tells of a ReplicaSet that has another size than before.
func (r *reconciler) tell(d *appsv1.Deployment, set *appsv1.ReplicaSet, before int32) {
	now, way := replicasOf(set.Spec.Replicas), "up"
	if now < before {
		way = "down"
	}
	if now != before {
		r.told.Event(d, events.Normal, scaled, "Scaled %s replica set %s from %d to %d", way, set.Name, before, now)
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
