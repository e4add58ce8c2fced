// Package statefulset keeps pods that have a name, a number and storage of their own,
// as StatefulSets say.
//
// A reconcile looks at the pods, claims and revisions of a StatefulSet, decides what
// the next step is, takes it, and looks again, until there is nothing left to do before
// somebody else has done something: a pod got ready, or has ended. Then it reports. It
// needs no expectations, for clients read what they have written.
package statefulset

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
const Name = "statefulset"

// workers is how many StatefulSets are worked on at once.
const workers = 5

// steps is how many a reconcile takes before others have their turn.
const steps = 32

// hashLabel is the label of revisions that tells their hash.
const hashLabel = "controller.kubernetes.io/hash"

var kind = appsv1.SchemeGroupVersion.WithKind("StatefulSet")

// New returns the controller; clients come from the source, events go to the
// recorder.
func New(s client.Source, told *events.Recorder) *controller.Controller {
	r := &reconciler{
		sets: client.Of[*appsv1.StatefulSet](s), pods: client.Of[*corev1.Pod](s),
		claims: client.Of[*corev1.PersistentVolumeClaim](s), revisions: client.Of[*appsv1.ControllerRevision](s),
		told: told,
	}
	return controller.New(Name, r.reconcile,
		controller.For[*appsv1.StatefulSet](),
		controller.Claims[*corev1.Pod](selectorOf),
		controller.Claims[*appsv1.ControllerRevision](selectorOf),
		controller.Watches(r.claimants, controller.Where(concerns)),
		controller.Workers(workers),
		controller.IgnoreOwnWrites())
}

func selectorOf(set *appsv1.StatefulSet) (labels.Selector, error) {
	return metav1.LabelSelectorAsSelector(set.Spec.Selector)
}

type reconciler struct {
	sets      *client.Client[*appsv1.StatefulSet]
	pods      *client.Client[*corev1.Pod]
	claims    *client.Client[*corev1.PersistentVolumeClaim]
	revisions *client.Client[*appsv1.ControllerRevision]
	told      *events.Recorder
}

// concerns leaves out changes of claims that make no difference to pods.
func concerns(old, now *corev1.PersistentVolumeClaim) bool {
	return old == nil || now == nil || old.DeletionTimestamp.IsZero() != now.DeletionTimestamp.IsZero() ||
		!equality.Semantic.DeepEqual(old.OwnerReferences, now.OwnerReferences)
}

// claimants are the sets that a claim is for, by its name.
func (r *reconciler) claimants(ctx context.Context, claim *corev1.PersistentVolumeClaim) []client.Key {
	var out []client.Key
	for set, err := range r.sets.In(claim.Namespace).List(ctx) {
		if err != nil {
			return out // the controller ends
		}
		if claimedBy(set, claim.Name) {
			out = append(out, client.KeyOf(set))
		}
	}
	return out
}

func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	for range steps {
		s, err := r.observe(ctx, req.Key)
		if err != nil || s.set.DeletionTimestamp != nil {
			return controller.Done, client.IgnoreNotFound(err)
		}
		do := decide(s)
		if do.nothing() {
			return r.report(ctx, s)
		}
		if err := r.act(ctx, s.set, do); err != nil {
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
	_, err = r.report(ctx, s)
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
	s := seen{set: set, now: time.Now()}
	s.pods, err = controller.Claim(ctx, r.sets, set, r.pods, selector, func(p *corev1.Pod) bool { return ordinalOf(set, p) >= 0 })
	if err != nil {
		return seen{}, fmt.Errorf("observe %s: %w", key, err)
	}
	if err := r.record(ctx, &s, selector); err != nil {
		return seen{}, fmt.Errorf("observe %s: %w", key, err)
	}
	s.claims, err = r.claimsOf(ctx, s)
	return s, err
}

// record makes the set's template its newest revision.
func (r *reconciler) record(ctx context.Context, s *seen, selector labels.Selector) error {
	all, err := controller.Claim(ctx, r.sets, s.set, r.revisions, selector, nil)
	if err != nil {
		return err
	}
	subject := revision.Subject{Owner: s.set, Kind: kind, Template: &s.set.Spec.Template, Collisions: collisionsOf(s.set), HashLabel: hashLabel}
	if s.history, err = revision.Record(ctx, r.revisions, revision.Sorted(all), &subject); err != nil {
		return err
	}
	s.collisions = subject.Collisions
	s.update = s.history[len(s.history)-1].Name
	s.current, s.currentTemplate = s.update, &s.set.Spec.Template
	if was := s.rollsFrom(); was != nil {
		s.current = was.Name
		s.currentTemplate, err = revision.Template(was)
	}
	return err
}

// rollsFrom is the revision that the set has, or had before an update: as its status
// tells, or else the oldest that a pod is of, for a set may be changed before its first
// status is written. It is nil if there are neither.
func (s *seen) rollsFrom() *appsv1.ControllerRevision {
	if was := s.history.Named(s.set.Status.CurrentRevision); was != nil {
		return was
	}
	for _, r := range s.history {
		if slices.ContainsFunc(s.pods, func(p *corev1.Pod) bool { return revisionOf(p) == r.Name }) {
			return r
		}
	}
	return nil
}

// claimsOf returns the claims of all pods that there are or should be, by name.
func (r *reconciler) claimsOf(ctx context.Context, s seen) (map[string]*corev1.PersistentVolumeClaim, error) {
	out := map[string]*corev1.PersistentVolumeClaim{}
	for ordinal := range s.ordinals() {
		for i := range s.set.Spec.VolumeClaimTemplates {
			name := claimName(s.set, i, ordinal)
			claim, err := r.claims.Get(ctx, client.Key{Namespace: s.set.Namespace, Name: name})
			switch {
			case err == nil:
				out[name] = claim
			case !client.IsNotFound(err):
				return nil, fmt.Errorf("observe claim %s of %s: %w", name, client.KeyOf(s.set), err)
			}
		}
	}
	return out, nil
}

// report writes the status, if it is not what is there, forgets old revisions, and
// says when to look again.
func (r *reconciler) report(ctx context.Context, s seen) (controller.Result, error) {
	status := s.status()
	if !equality.Semantic.DeepEqual(s.set.Status, status) {
		now := s.set.DeepCopy()
		now.Status = status
		if _, err := r.sets.UpdateStatus(ctx, now); err != nil {
			return controller.Done, client.IgnoreNotFound(fmt.Errorf("report %s: %w", client.KeyOf(now), err))
		}
	}
	if err := revision.Trim(ctx, r.revisions, s.history.Surplus(s.set.Spec.RevisionHistoryLimit, s.alive(status))); err != nil {
		return controller.Done, err
	}
	if wait := s.untilAvailable(); wait > 0 {
		return controller.RequeueAfter(wait), nil
	}
	return controller.Done, nil
}

func collisionsOf(set *appsv1.StatefulSet) int32 {
	if set.Status.CollisionCount == nil {
		return 0
	}
	return *set.Status.CollisionCount
}
