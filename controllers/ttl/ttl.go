// Package ttl deletes Jobs that have been finished for as long as they say, with
// their pods.
package ttl

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/events"
)

// Name is the controller's.
const Name = "ttl"

// workers is how many jobs are worked on at once.
const workers = 5

// New returns the controller; clients come from the source. It tells of no events.
func New(s client.Source, _ *events.Recorder) *controller.Controller {
	r := &reconciler{jobs: client.Of[*batchv1.Job](s)}
	return controller.New(Name, r.reconcile,
		controller.For[*batchv1.Job](controller.Where(func(_, now *batchv1.Job) bool { return now != nil && expires(now) })),
		controller.Workers(workers))
}

type reconciler struct{ jobs *client.Client[*batchv1.Job] }

func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	job, err := r.jobs.Get(ctx, req.Key)
	if err != nil || !expires(job) {
		return controller.Done, client.IgnoreNotFound(err)
	}
	if left := decide(job, time.Now()); left > 0 {
		return controller.RequeueAfter(left), nil
	}
	// The revision has the job be deleted as it is known, or be looked at again.
	err = r.jobs.Delete(ctx, req.Key, client.IfUID(job.UID), client.IfRevision(job.ResourceVersion),
		client.Propagation(metav1.DeletePropagationForeground))
	if client.IgnoreNotFound(err) != nil {
		return controller.Done, fmt.Errorf("delete %s: %w", req.Key, err)
	}
	return controller.Done, nil
}

// expires reports whether a job is finished and is to be deleted some time.
func expires(job *batchv1.Job) bool {
	return job.Spec.TTLSecondsAfterFinished != nil && job.DeletionTimestamp == nil && !finishedAt(job).IsZero()
}

// decide says how long a job that expires is still to be there; it is to be deleted
// if that is not positive.
func decide(job *batchv1.Job, now time.Time) time.Duration {
	return finishedAt(job).Add(time.Duration(*job.Spec.TTLSecondsAfterFinished) * time.Second).Sub(now)
}

// finishedAt is when a job finished, zero if it has not.
func finishedAt(job *batchv1.Job) time.Time {
	for _, c := range job.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}
