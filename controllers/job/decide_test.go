package job

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

const seeds = 3000

// Whatever happens to pods, and wherever the controller crashes, no more pods run
// than may, each is counted once, none is lost, and the job ends.
func TestJobsEndAndCountEachPodOnce(t *testing.T) {
	ends := map[string]int{}
	for seed := range uint64(seeds) {
		w := newWorld(seed)
		w.live(t, seed)
		w.calm(t, seed)
		w.audit(t, seed)
		for _, c := range w.job.Status.Conditions {
			ends[c.Reason]++
		}
		if t.Failed() {
			t.Fatalf("seed %d: spec %+v, status %+v", seed, w.job.Spec, w.job.Status)
		}
	}
	for _, reason := range []string{
		batchv1.JobReasonCompletionsReached, batchv1.JobReasonSuccessPolicy, batchv1.JobReasonBackoffLimitExceeded, batchv1.JobReasonDeadlineExceeded,
		batchv1.JobReasonPodFailurePolicy, batchv1.JobReasonMaxFailedIndexesExceeded, batchv1.JobReasonFailedIndexes,
	} {
		if ends[reason] == 0 {
			t.Errorf("no job ended because of %s: %v", reason, ends)
		}
	}
}

// live has all take turns.
func (w *world) live(t *testing.T, seed uint64) {
	for range 200 {
		w.now = w.now.Add(time.Duration(w.IntN(20)) * time.Second)
		switch w.IntN(8) {
		case 0:
			w.people()
		case 1, 2, 3:
			w.node()
		default:
			if finished(w.job) {
				return
			}
			if _, err := w.controller(true); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
	}
}

// calm has the job be left in peace, until it ends.
func (w *world) calm(t *testing.T, seed uint64) {
	w.job.Spec.Suspend = nil
	for range 1000 {
		if finished(w.job) {
			return
		}
		do, err := w.controller(false)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if do.nothing() {
			w.node()
			w.now = w.now.Add(do.again)
		}
	}
	t.Fatalf("seed %d: the job does not end: spec %+v, status %+v", seed, w.job.Spec, w.job.Status)
}

// audit compares the status with what has happened.
func (w *world) audit(t *testing.T, seed uint64) {
	indexed := w.job.Spec.CompletionMode != nil
	for uid, phase := range w.done {
		ignored := phase == corev1.PodFailed && w.job.Spec.PodFailurePolicy != nil || indexed
		if !ignored && !w.dodged[uid] && !w.listed[uid] {
			t.Errorf("seed %d: pod %s is %s, and was not counted", seed, uid, phase)
		}
	}
	for _, p := range w.pods {
		if tracked(p) {
			t.Errorf("seed %d: pod %s still has the finalizer", seed, p.UID)
		}
		if active(p) {
			t.Errorf("seed %d: pod %s runs on", seed, p.UID)
		}
	}
	complete, failed := holds(&w.job.Status, batchv1.JobComplete), holds(&w.job.Status, batchv1.JobFailed)
	if complete == failed || complete != holds(&w.job.Status, batchv1.JobSuccessCriteriaMet) || failed != holds(&w.job.Status, batchv1.JobFailureTarget) {
		t.Errorf("seed %d: conditions are %v", seed, w.job.Status.Conditions)
	}
	if text := w.unfounded(); text != "" {
		t.Errorf("seed %d: %s", seed, text)
	}
	if s := w.job.Status; s.Active != 0 || *s.Terminating != 0 || s.StartTime == nil || complete != (s.CompletionTime != nil) {
		t.Errorf("seed %d: status is %+v", seed, s)
	}
}

// unfounded says what speaks against the reason for which the job ended.
func (w *world) unfounded() string {
	s, st := w.job.Spec, w.job.Status
	switch reason := st.Conditions[len(st.Conditions)-1].Reason; {
	case reason == batchv1.JobReasonCompletionsReached && int(st.Succeeded) < number32(s.Completions, 1):
		return fmt.Sprintf("%d pods have succeeded", st.Succeeded)
	case reason == batchv1.JobReasonBackoffLimitExceeded && st.Failed <= *s.BackoffLimit:
		return fmt.Sprintf("%d pods have failed", st.Failed)
	}
	return ""
}
