package operator

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/events"
	v1 "github.com/even-keel/evenkeel/examples/cloudmanager/api/v1"
)

// act makes the writes of a plan, and says what became of the application. What the
// server refuses is said too; other failures are tried again.
func (r *reconciler) act(ctx context.Context, cm *v1.CloudManager, p plan) error {
	for _, w := range p.writes {
		err := r.write(ctx, cm, w)
		switch {
		case err == nil:
		case client.IsInvalid(err): // and will be, until the specification changes
			return errors.Join(controller.Terminal(err), r.tell(ctx, cm, stuck(v1.Failed, refused, "%v", err)))
		case client.IsForbidden(err): // by a quota or for want of a right: that may change
			return errors.Join(err, r.tell(ctx, cm, stuck(v1.Pending, refused, "%v", err)))
		default:
			return err
		}
	}
	return r.tell(ctx, cm, p)
}

func (r *reconciler) write(ctx context.Context, cm *v1.CloudManager, w write) error {
	var err error
	switch obj := w.obj.(type) {
	case *corev1.Secret:
		err = send(ctx, r.secrets, w.verb, obj)
	case *appsv1.StatefulSet:
		err = send(ctx, r.statefulSets, w.verb, obj)
	case *appsv1.Deployment:
		err = send(ctx, r.deployments, w.verb, obj)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", w, err)
	}
	note := nameOf(w.obj)
	if w.why != "" {
		note += ": " + w.why
	}
	controller.Log(ctx).Info(past[w.verb], "object", note)
	r.events.Record(events.Event{Regarding: cm, Related: w.obj, Type: events.Normal, Reason: past[w.verb], Action: string(w.verb), Note: note})
	return nil
}

// past is what an event calls a write.
var past = map[verb]string{create: "Created", update: "Updated", remove: "Deleted"}

// send writes an object. An update or a deletion is of just what was seen.
func send[T client.Object](ctx context.Context, c *client.Client[T], v verb, obj T) (err error) {
	switch v {
	case create:
		_, err = c.Create(ctx, obj)
	case update:
		_, err = c.Update(ctx, obj)
	case remove:
		err = client.IgnoreNotFound(c.Delete(ctx, client.KeyOf(obj), client.IfUID(obj.GetUID())))
	}
	return err
}

// tell writes the status if there is something new to say, and an event if people
// should hear of it.
func (r *reconciler) tell(ctx context.Context, cm *v1.CloudManager, p plan) error {
	now := cm.DeepCopy()
	now.Status.Phase, now.Status.ObservedGeneration = p.phase, cm.Generation
	var news []condition
	for _, c := range p.conditions {
		if controller.SetCondition(now, &now.Status.Conditions, c.kind, c.status(), c.reason, "%s", c.message) {
			news = append(news, c)
		}
	}
	if equality.Semantic.DeepEqual(cm.Status, now.Status) {
		return nil
	}
	if _, err := r.managers.UpdateStatus(ctx, now); err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	for _, c := range news {
		if c.warns {
			r.events.Event(cm, events.Warning, c.reason, "%s", c.message)
		}
	}
	if p.phase == v1.Running && cm.Status.Phase != v1.Running {
		r.events.Event(cm, events.Normal, string(v1.Running), "all parts are ready")
	}
	return nil
}
