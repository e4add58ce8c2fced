// Package daemonset keeps one pod running on each node that a DaemonSet is for.
//
// A reconcile looks at all nodes, and at the pods and revisions of a DaemonSet. It
// decides which pods are to be made, each for a node that its affinity names, and which
// are to go; does that, and looks again, until there is nothing left to do before
// somebody else has done something. Then it reports. The scheduler binds the pods.
package daemonset

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/controllers/revision"
	"github.com/even-keel/evenkeel/events"
)

// Name is the controller's.
const Name = "daemonset"

// workers is how many DaemonSets are worked on at once.
const workers = 2

// steps is how many a reconcile takes before others have their turn.
const steps = 32

var kind = appsv1.SchemeGroupVersion.WithKind("DaemonSet")

// New returns the controller; clients come from the source, events go to the
// recorder.
func New(s client.Source, told *events.Recorder) *controller.Controller {
	r := &reconciler{
		sets: client.Of[*appsv1.DaemonSet](s), pods: client.Of[*corev1.Pod](s),
		nodes: client.Of[*corev1.Node](s), revisions: client.Of[*appsv1.ControllerRevision](s),
		told: told, failures: newFailures(),
	}
	return controller.New(Name, r.reconcile,
		controller.For[*appsv1.DaemonSet](),
		controller.Claims[*corev1.Pod](selectorOf),
		controller.Claims[*appsv1.ControllerRevision](selectorOf),
		controller.Watches(r.all, controller.Where(concerns)),
		controller.Workers(workers),
		controller.IgnoreOwnWrites())
}

func selectorOf(set *appsv1.DaemonSet) (labels.Selector, error) {
	return metav1.LabelSelectorAsSelector(set.Spec.Selector)
}

type reconciler struct {
	sets      *client.Client[*appsv1.DaemonSet]
	pods      *client.Client[*corev1.Pod]
	nodes     *client.Client[*corev1.Node]
	revisions *client.Client[*appsv1.ControllerRevision]
	told      *events.Recorder
	failures  *failures
}

// concerns leaves out changes of nodes that make no difference to where pods belong:
// above all, that they are alive.
func concerns(old, now *corev1.Node) bool {
	return old == nil || now == nil || !labels.Equals(old.Labels, now.Labels) || !equality.Semantic.DeepEqual(old.Spec.Taints, now.Spec.Taints)
}

// all are the keys of all sets, each of which a node may be for.
func (r *reconciler) all(ctx context.Context, _ *corev1.Node) []client.Key {
	var out []client.Key
	for set, err := range r.sets.List(ctx) {
		if err != nil {
			return out // the controller ends
		}
		out = append(out, client.KeyOf(set))
	}
	return out
}

func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	for range steps {
		s, err := r.observe(ctx, req.Key)
		if client.IsNotFound(err) {
			r.failures.forget(req.Key)
		}
		if err != nil || s.set.DeletionTimestamp != nil {
			return controller.Done, client.IgnoreNotFound(err)
		}
		do := decide(s)
		if do.nothing() {
			return r.report(ctx, s, do)
		}
		if err := r.act(ctx, s, do); err != nil {
			return controller.Done, r.stopped(ctx, req.Key, err)
		}
	}
	return controller.RequeueAfter(0), nil
}

// stopped reports how far a reconcile has come that could not go on.
func (r *reconciler) stopped(ctx context.Context, key client.Key, why error) error {
	if errors.Is(why, errOutdated) {
		why = nil
	}
	s, err := r.observe(ctx, key)
	if err != nil || s.set.DeletionTimestamp != nil {
		return errors.Join(why, client.IgnoreNotFound(err))
	}
	_, err = r.report(ctx, s, plan{})
	return errors.Join(why, err)
}

// observe claims the pods and revisions of a set, records its template, and returns
// what there is.
func (r *reconciler) observe(ctx context.Context, key client.Key) (seen, error) {
	set, err := r.sets.Get(ctx, key)
	if err != nil || set.DeletionTimestamp != nil {
		return seen{set: set}, err
	}
	selector, err := selectorOf(set)
	if err != nil {
		return seen{}, controller.Terminal(fmt.Errorf("selector of %s: %w", key, err))
	}
	s := seen{set: set, now: time.Now(), failed: r.failures.of(set)}
	if s.pods, err = controller.Claim(ctx, r.sets, set, r.pods, selector, nil); err != nil {
		return seen{}, fmt.Errorf("observe %s: %w", key, err)
	}
	if err := r.record(ctx, &s, selector); err != nil {
		return seen{}, fmt.Errorf("observe %s: %w", key, err)
	}
	for node, err := range r.nodes.List(ctx) {
		if err != nil {
			return seen{}, fmt.Errorf("observe the nodes for %s: %w", key, err)
		}
		s.nodes = append(s.nodes, node)
	}
	return s, nil
}

// record makes the set's template its newest revision.
func (r *reconciler) record(ctx context.Context, s *seen, selector labels.Selector) error {
	all, err := controller.Claim(ctx, r.sets, s.set, r.revisions, selector, nil)
	if err != nil {
		return err
	}
	subject := revision.Subject{Owner: s.set, Kind: kind, Template: &s.set.Spec.Template, HashLabel: appsv1.DefaultDaemonSetUniqueLabelKey}
	if n := s.set.Status.CollisionCount; n != nil {
		subject.Collisions = *n
	}
	if s.history, err = revision.Record(ctx, r.revisions, revision.Sorted(all), &subject); err != nil {
		return err
	}
	s.collisions = subject.Collisions
	s.hash = s.history[len(s.history)-1].Labels[appsv1.DefaultDaemonSetUniqueLabelKey]
	return nil
}

// report writes the status, if it is not what is there, forgets old revisions, and
// says when to look again.
func (r *reconciler) report(ctx context.Context, s seen, do plan) (controller.Result, error) {
	status := s.status()
	if !equality.Semantic.DeepEqual(s.set.Status, status) {
		now := s.set.DeepCopy()
		now.Status = status
		if _, err := r.sets.UpdateStatus(ctx, now); err != nil {
			return controller.Done, client.IgnoreNotFound(fmt.Errorf("report %s: %w", client.KeyOf(now), err))
		}
	}
	if err := revision.Trim(ctx, r.revisions, s.history.Surplus(s.set.Spec.RevisionHistoryLimit, s.alive())); err != nil {
		return controller.Done, err
	}
	if wait := s.wait(do); wait > 0 {
		return controller.RequeueAfter(wait), nil
	}
	return controller.Done, nil
}
