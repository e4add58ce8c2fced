package job

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
)

// mayBeOrphan says of which pods it is to be asked whether their job still wants
// them: those that would otherwise be gone, are over, or have no controller.
func mayBeOrphan(_, now *corev1.Pod) bool {
	return now != nil && tracked(now) && (ended(now) || metav1.GetControllerOfNoCopy(now) == nil)
}

// letGo takes the finalizer off a pod that no job is going to count.
func (r *reconciler) letGo(ctx context.Context, req controller.Request) (controller.Result, error) {
	pod, err := r.pods.Get(ctx, req.Key)
	if err != nil || !mayBeOrphan(nil, pod) {
		return controller.Done, client.IgnoreNotFound(err)
	}
	orphan, err := r.orphan(ctx, pod)
	if err != nil {
		return controller.Done, fmt.Errorf("job of %s: %w", req.Key, err)
	}
	if !orphan {
		return controller.Done, nil
	}
	return controller.Done, r.free(ctx, nil, pod)
}

// orphan reports whether a pod has no job, one that is gone or one that is finished.
func (r *reconciler) orphan(ctx context.Context, pod *corev1.Pod) (bool, error) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		wanted, err := r.wanted(ctx, pod)
		return !wanted, err
	}
	if owner.Kind != "Job" || owner.APIVersion != batchv1.SchemeGroupVersion.String() {
		return false, nil
	}
	key := client.Key{Namespace: pod.Namespace, Name: owner.Name}
	job, err := r.jobs.Get(ctx, key)
	if client.IsNotFound(err) || err == nil && job.UID != owner.UID {
		job, err = r.jobs.Live().Get(ctx, key) // the cache may not know it yet
	}
	switch {
	case client.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, err
	}
	return job.UID != owner.UID || finished(job) && !others(job), nil
}

// wanted reports whether a job is going to adopt a pod without a controller.
func (r *reconciler) wanted(ctx context.Context, pod *corev1.Pod) (bool, error) {
	for job, err := range r.jobs.In(pod.Namespace).List(ctx) {
		if err != nil {
			return false, err
		}
		s, err := selectorOf(job)
		if err == nil && !s.Empty() && s.Matches(labels.Set(pod.Labels)) && job.DeletionTimestamp == nil && !finished(job) {
			return true, nil
		}
	}
	return false, nil
}
