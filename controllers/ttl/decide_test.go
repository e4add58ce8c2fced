package ttl

import (
	"math/rand/v2"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// anyJob is a job with conditions of all kinds and a time to live, or none; ended is
// when the condition that ends it came, zero if none has.
func anyJob(r *rand.Rand, now time.Time) (job *batchv1.Job, ended time.Time) {
	job = &batchv1.Job{}
	if r.IntN(4) > 0 {
		job.Spec.TTLSecondsAfterFinished = new(r.Int32N(1000))
	}
	if r.IntN(4) == 0 {
		job.DeletionTimestamp = new(metav1.NewTime(now))
	}
	types := []batchv1.JobConditionType{batchv1.JobSuspended, batchv1.JobFailureTarget, batchv1.JobSuccessCriteriaMet, batchv1.JobComplete, batchv1.JobFailed}
	for range r.IntN(4) {
		c := batchv1.JobCondition{
			Type: types[r.IntN(len(types))], Status: []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown}[r.IntN(3)],
			LastTransitionTime: metav1.NewTime(now.Add(-time.Duration(r.IntN(2000)) * time.Second)),
		}
		if ended.IsZero() && c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			ended = c.LastTransitionTime.Time
		}
		job.Status.Conditions = append(job.Status.Conditions, c)
	}
	return job, ended
}

// A job is deleted if and only if it has ended, its time is up, and nobody deletes it
// already; until then it is looked at when the time is up, and not before.
func TestDecide(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	for range 10_000 {
		job, ended := anyJob(r, now)
		ttl := job.Spec.TTLSecondsAfterFinished
		if got, want := expires(job), ttl != nil && job.DeletionTimestamp == nil && !ended.IsZero(); got != want {
			t.Fatalf("that it expires is %t: %+v", got, job)
		}
		if !expires(job) {
			continue
		}
		up := ended.Add(time.Duration(*ttl) * time.Second)
		left := decide(job, now)
		if (left <= 0) != !now.Before(up) {
			t.Fatalf("%s are left of a job whose time is up at %s: %+v", left, up, job)
		}
		if left > 0 && (decide(job, now.Add(left)) > 0 || decide(job, now.Add(left-1)) <= 0) {
			t.Fatalf("%s are left, and then not all is over: %+v", left, job)
		}
	}
}
