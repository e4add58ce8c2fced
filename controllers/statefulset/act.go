package statefulset

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controllers/pods"
	"github.com/even-keel/evenkeel/events"
)

// errOutdated says that something was not as it was seen to be: the watch will tell,
// and nothing is to be done until then.
var errOutdated = errors.New("what was seen is out of date")

// act does what is planned; it returns what failed.
func (r *reconciler) act(ctx context.Context, set *appsv1.StatefulSet, do plan) error {
	return errors.Join(
		pods.Each(len(do.own), func(i int) error { return r.own(ctx, set, do.own[i]) }),
		pods.Each(len(do.supply), func(i int) error { return r.supply(ctx, set, do.supply[i]) }),
		pods.Each(len(do.label), func(i int) error { return r.label(ctx, set, do.label[i]) }),
		r.removeAll(ctx, set, do),
		pods.Each(len(do.create), func(i int) error { return r.create(ctx, set, do.create[i]) }),
	)
}

// removeAll deletes pods in their order in ordered sets, so that what fails is the last
// that is tried.
func (r *reconciler) removeAll(ctx context.Context, set *appsv1.StatefulSet, do plan) error {
	if set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement {
		return pods.Each(len(do.remove), func(i int) error { return r.remove(ctx, set, do.remove[i]) })
	}
	for _, p := range do.remove {
		if err := r.remove(ctx, set, p); err != nil {
			return err
		}
	}
	return nil
}

// own writes the owners of a claim.
func (r *reconciler) own(ctx context.Context, set *appsv1.StatefulSet, claim *corev1.PersistentVolumeClaim) error {
	_, err := r.claims.Update(ctx, claim)
	switch {
	case err == nil:
		return nil
	case client.IsNotFound(err), client.IsConflict(err):
		return fmt.Errorf("own claim %s: %w", client.KeyOf(claim), errOutdated)
	}
	r.told.Event(set, events.Warning, "FailedUpdate", "update Claim %s in StatefulSet %s failed error: %s", claim.Name, set.Name, pods.Message(err))
	return fmt.Errorf("own claim %s: %w", client.KeyOf(claim), err)
}

// supply makes the claims of a pod.
func (r *reconciler) supply(ctx context.Context, set *appsv1.StatefulSet, m member) error {
	for _, claim := range m.claims {
		_, err := r.claims.Create(ctx, claim)
		switch {
		case client.IsAlreadyExists(err):
			continue
		case err != nil:
			r.told.Event(set, events.Warning, "FailedCreate", "create Claim %s for Pod %s in StatefulSet %s failed error: %s",
				claim.Name, m.pod.Name, set.Name, pods.Message(err))
			return fmt.Errorf("create claim %s: %w", client.KeyOf(claim), err)
		}
		r.told.Event(set, events.Normal, "SuccessfulCreate", "create Claim %s Pod %s in StatefulSet %s success", claim.Name, m.pod.Name, set.Name)
	}
	return nil
}

// create makes a pod, after its claims.
func (r *reconciler) create(ctx context.Context, set *appsv1.StatefulSet, m member) error {
	if err := r.supply(ctx, set, m); err != nil {
		return err
	}
	_, err := r.pods.Create(ctx, m.pod)
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return fmt.Errorf("create pod %s: its namespace ends: %w", client.KeyOf(m.pod), errOutdated)
	case client.IsAlreadyExists(err):
		return fmt.Errorf("create pod %s: %w", client.KeyOf(m.pod), err) // it is another's, and may go
	}
	return r.tell(set, "create", m.pod, err)
}

// label writes the labels that tell which pod it is.
func (r *reconciler) label(ctx context.Context, set *appsv1.StatefulSet, p *corev1.Pod) error {
	_, err := r.pods.Patch(ctx, client.KeyOf(p), client.MergePatch(map[string]any{
		"metadata": map[string]any{"uid": p.UID, "labels": identity(p.Name, ordinalOf(set, p))},
	}))
	if client.IsNotFound(err) || client.IsConflict(err) {
		return fmt.Errorf("label pod %s: %w", client.KeyOf(p), errOutdated)
	}
	return r.tell(set, "update", p, err)
}

func (r *reconciler) remove(ctx context.Context, set *appsv1.StatefulSet, p *corev1.Pod) error {
	switch p.Status.Phase {
	case corev1.PodFailed:
		r.told.Event(set, events.Warning, "RecreatingFailedPod", "StatefulSet %s/%s is recreating failed Pod %s", set.Namespace, set.Name, p.Name)
	case corev1.PodSucceeded:
		r.told.Event(set, events.Normal, "RecreatingTerminatedPod", "StatefulSet %s/%s is recreating terminated Pod %s", set.Namespace, set.Name, p.Name)
	}
	err := r.pods.Delete(ctx, client.KeyOf(p), client.IfUID(p.UID))
	if client.IsNotFound(err) || client.IsConflict(err) {
		return fmt.Errorf("delete pod %s: %w", client.KeyOf(p), errOutdated) // it is gone, or another has its name
	}
	return r.tell(set, "delete", p, err)
}

// tell records how it went to do something to a pod, and returns the failure.
func (r *reconciler) tell(set *appsv1.StatefulSet, verb string, p *corev1.Pod, err error) error {
	word := strings.ToUpper(verb[:1]) + verb[1:]
	if err == nil {
		r.told.Event(set, events.Normal, "Successful"+word, "%s Pod %s in StatefulSet %s successful", verb, p.Name, set.Name)
		return nil
	}
	r.told.Event(set, events.Warning, "Failed"+word, "%s Pod %s in StatefulSet %s failed error: %s", verb, p.Name, set.Name, pods.Message(err))
	return fmt.Errorf("%s pod %s: %w", verb, client.KeyOf(p), err)
}
