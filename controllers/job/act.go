package job

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/events"
)

// together is how many requests there are at once.
const together = 64

// act takes one step.
func (r *reconciler) act(ctx context.Context, job *batchv1.Job, do plan) error {
	each := func(pods []*corev1.Pod, f func(context.Context, *batchv1.Job, *corev1.Pod) error) error {
		var g errgroup.Group
		g.SetLimit(together)
		for _, p := range pods {
			g.Go(func() error { return f(ctx, job, p) })
		}
		return g.Wait()
	}
	err := errors.Join(
		slowStart(do.create, func(s slot) error { return r.create(ctx, job, s) }),
		each(do.remove, r.remove), each(do.discard, r.discard), each(do.track, r.track), each(do.free, r.free),
	)
	if err != nil {
		return fmt.Errorf("pods of %s: %w", client.KeyOf(job), err)
	}
	return r.report(ctx, job, do)
}

// slowStart calls f with each, in batches that double in size as long as none fails:
// what cannot be done at all is tried once, and not often.
func slowStart(all []slot, f func(slot) error) error {
	for batch := 1; len(all) > 0; batch *= 2 {
		batch = min(batch, len(all), together)
		var g errgroup.Group
		for _, s := range all[:batch] {
			g.Go(func() error { return f(s) })
		}
		if err := g.Wait(); err != nil {
			return err
		}
		all = all[batch:]
	}
	return nil
}

func (r *reconciler) create(ctx context.Context, job *batchv1.Job, s slot) error {
	pod, err := r.pods.Create(ctx, podOf(job, s))
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return err // no event can be made there
	case err != nil:
		r.told.Event(job, events.Warning, "FailedCreate", "Error creating: %s", message(err))
		return fmt.Errorf("create: %w", err)
	}
	r.told.Event(job, events.Normal, "SuccessfulCreate", "Created pod: %s", pod.Name)
	return nil
}

func (r *reconciler) remove(ctx context.Context, job *batchv1.Job, p *corev1.Pod) error {
	err := r.pods.Delete(ctx, client.KeyOf(p), client.IfUID(p.UID))
	switch {
	case gone(err):
		return nil
	case err != nil:
		r.told.Event(job, events.Warning, "FailedDelete", "Error deleting: %s", message(err))
		return fmt.Errorf("delete %s: %w", p.Name, err)
	}
	r.told.Event(job, events.Normal, "SuccessfulDelete", "Deleted pod: %s", p.Name)
	return nil
}

func (r *reconciler) discard(ctx context.Context, job *batchv1.Job, p *corev1.Pod) error {
	if err := r.free(ctx, job, p); err != nil {
		return err
	}
	return r.remove(ctx, job, p)
}

func (r *reconciler) track(ctx context.Context, _ *batchv1.Job, p *corev1.Pod) error {
	return r.finalizers(ctx, p, "finalizers")
}

func (r *reconciler) free(ctx context.Context, _ *batchv1.Job, p *corev1.Pod) error {
	if !tracked(p) {
		return nil
	}
	return r.finalizers(ctx, p, "$deleteFromPrimitiveList/finalizers")
}

// finalizers puts on or takes off the finalizer of a pod, if it is still that one.
func (r *reconciler) finalizers(ctx context.Context, p *corev1.Pod, how string) error {
	_, err := r.pods.Patch(ctx, client.KeyOf(p), client.StrategicPatch(map[string]any{
		"metadata": map[string]any{"uid": p.UID, how: []string{batchv1.JobTrackingFinalizer}},
	}))
	if err != nil && !gone(err) {
		return fmt.Errorf("finalizer of %s: %w", p.Name, err)
	}
	return nil
}

// gone reports whether a pod does not exist, or another has its name.
func gone(err error) bool { return client.IsNotFound(err) || client.IsConflict(err) }

// report writes the status, if there is one to write.
func (r *reconciler) report(ctx context.Context, job *batchv1.Job, do plan) error {
	if do.status == nil {
		return nil
	}
	now := job.DeepCopy()
	now.Status = *do.status
	if _, err := r.jobs.UpdateStatus(ctx, now); err != nil {
		return fmt.Errorf("status of %s: %w", client.KeyOf(job), err)
	}
	for _, n := range do.told {
		r.told.Event(job, n.kind, n.reason, "%s", n.text)
	}
	return nil
}

// message is what the server said, without what led to the request.
func message(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Message
	}
	return err.Error()
}
