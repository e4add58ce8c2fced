package cronjob

import (
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/events"
)

// act takes one step.
func (r *reconciler) act(ctx context.Context, cron *batchv1.CronJob, do plan, b *behind) error {
	for _, j := range do.remove {
		if err := r.remove(ctx, cron, j, b); err != nil {
			return err
		}
	}
	if do.create != nil {
		if err := r.create(ctx, cron, do, b); err != nil {
			return err
		}
	}
	if do.status != nil {
		now := cron.DeepCopy()
		now.Status = *do.status
		if _, err := r.crons.UpdateStatus(ctx, now); err != nil {
			return fmt.Errorf("status: %w", err)
		}
	}
	for _, n := range do.told {
		r.told.Event(cron, n.kind, n.reason, "%s", n.text)
	}
	return nil
}

func (r *reconciler) remove(ctx context.Context, cron *batchv1.CronJob, j *batchv1.Job, b *behind) error {
	err := r.jobs.Delete(ctx, client.KeyOf(j), client.IfUID(j.UID), client.Propagation(metav1.DeletePropagationBackground))
	if err != nil && !client.IsNotFound(err) && !client.IsConflict(err) {
		r.told.Event(cron, events.Warning, "FailedDelete", "Deleted job: %s", message(err))
		return fmt.Errorf("delete %s: %w", j.Name, err)
	}
	if b.removed == nil {
		b.removed = map[types.UID]bool{}
	}
	b.removed[j.UID] = true
	if err == nil {
		r.told.Event(cron, events.Normal, "SuccessfulDelete", "Deleted job %s", j.Name)
	}
	return nil
}

// create makes a job. If there is one of that name, it is of this time and the cache
// has yet to learn of it, or another has taken the name.
func (r *reconciler) create(ctx context.Context, cron *batchv1.CronJob, do plan, b *behind) error {
	j, err := r.jobs.Create(ctx, do.create)
	switch {
	case client.IsAlreadyExists(err):
		b.taken = do.at
		return nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return fmt.Errorf("create %s: %w", do.create.Name, err) // no event can be made there
	case err != nil:
		r.told.Event(cron, events.Warning, "FailedCreate", "Error creating job: %s", message(err))
		return fmt.Errorf("create %s: %w", do.create.Name, err)
	}
	r.told.Event(cron, events.Normal, "SuccessfulCreate", "Created job %s", j.Name)
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
