package job

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// defaultLimit is that of failures, if a job has none.
const defaultLimit = 6

// verdict says whether a job is to end before its completions are reached, or was
// said to end; nil is no. What was said once stays.
func (v *view) verdict() *batchv1.JobCondition {
	for _, t := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobFailureTarget} {
		if c := condition(&v.job.Status, t); c != nil && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	reason, text := v.failure()
	if reason != "" {
		return v.condition(batchv1.JobFailureTarget, corev1.ConditionTrue, reason, text)
	}
	if !v.indexed() {
		return nil
	}
	if text, ok := satisfied(v.job.Spec.SuccessPolicy, v.done, v.completions()); ok {
		return v.condition(batchv1.JobSuccessCriteriaMet, corev1.ConditionTrue, batchv1.JobReasonSuccessPolicy, text)
	}
	return nil
}

// failure is why a job fails; the reason is empty if it does not.
func (v *view) failure() (reason, text string) {
	if text := v.ruledOut(); text != "" {
		return batchv1.JobReasonPodFailurePolicy, text
	}
	if limit := number32(v.job.Spec.BackoffLimit, defaultLimit); v.failed > limit || v.restarted(limit) {
		return batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit"
	}
	if v.late() {
		return batchv1.JobReasonDeadlineExceeded, "Job was active longer than specified deadline"
	}
	if v.job.Spec.BackoffLimitPerIndex == nil || !v.indexed() {
		return "", ""
	}
	switch lost := v.lost.count(); {
	case v.job.Spec.MaxFailedIndexes != nil && lost > int(*v.job.Spec.MaxFailedIndexes):
		return batchv1.JobReasonMaxFailedIndexesExceeded, "Job has exceeded the specified maximal number of failed indexes"
	case lost > 0 && lost+v.done.count() >= v.completions():
		return batchv1.JobReasonFailedIndexes, "Job has failed indexes"
	}
	return "", ""
}

// ruledOut is why the pod failure policy has the job fail. Pods without the
// finalizer were deleted by the controller itself, or judged before.
func (v *view) ruledOut() string {
	if v.job.Spec.PodFailurePolicy == nil {
		return ""
	}
	for _, p := range v.pods {
		if !tracked(p) || !hasFailed(v.job, p) {
			continue
		}
		if r := rule(v.job, p); r.action == batchv1.PodFailurePolicyActionFailJob {
			return r.why
		}
	}
	return ""
}

// restarted reports whether containers were restarted too often, in pods that do
// that themselves.
func (v *view) restarted(limit int) bool {
	if v.job.Spec.Template.Spec.RestartPolicy != corev1.RestartPolicyOnFailure {
		return false
	}
	n := 0
	for _, p := range v.pods {
		if p.Status.Phase == corev1.PodRunning || p.Status.Phase == corev1.PodPending {
			n += restarts(p)
		}
	}
	return n >= max(limit, 1)
}

// late reports whether the deadline has passed; if not, the job is looked at when it
// does.
func (v *view) late() bool {
	if v.job.Spec.ActiveDeadlineSeconds == nil || v.suspended() {
		return false
	}
	left := time.Duration(*v.job.Spec.ActiveDeadlineSeconds)*time.Second - v.now.Sub(v.start)
	v.lookAgain(left)
	return left <= 0
}

func (v *view) lookAgain(after time.Duration) {
	if after > 0 && (v.again == 0 || after < v.again) {
		v.again = after
	}
}

// complete reports whether a job has reached what it is for.
func (v *view) complete() bool {
	switch {
	case len(v.active) > 0:
		return false
	case v.job.Spec.Completions == nil:
		return v.succeeded > 0
	}
	return v.succeeded >= v.completions()
}

func (v *view) condition(t batchv1.JobConditionType, status corev1.ConditionStatus, reason, text string) *batchv1.JobCondition {
	now := metav1.NewTime(v.now)
	return &batchv1.JobCondition{Type: t, Status: status, Reason: reason, Message: text, LastProbeTime: now, LastTransitionTime: now}
}

// condition finds one of a status; nil is none.
func condition(s *batchv1.JobStatus, t batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == t {
			return &s.Conditions[i]
		}
	}
	return nil
}

func holds(s *batchv1.JobStatus, t batchv1.JobConditionType) bool {
	c := condition(s, t)
	return c != nil && c.Status == corev1.ConditionTrue
}

// finished reports whether nothing is left to do for a job.
func finished(job *batchv1.Job) bool {
	return holds(&job.Status, batchv1.JobComplete) || holds(&job.Status, batchv1.JobFailed)
}
