package kinds

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateJobStatus checks a new status against the old one. Most rules bind
// only those who change what they are about, so that a status that broke a rule
// before can still be updated elsewhere.
func validateJobStatus(j, old *batchv1.Job) field.ErrorList {
	p := &problems{}
	s, path := &j.Status, field.NewPath("status")
	p.statusCounts(path,
		count{"active", int64(s.Active)}, count{"succeeded", int64(s.Succeeded)}, count{"failed", int64(s.Failed)},
		count{"ready", int64(replicasOf(s.Ready))}, count{"terminating", int64(replicasOf(s.Terminating))})
	p.uncountedPods(path.Child("uncountedTerminatedPods"), s.UncountedTerminatedPods)
	p.jobConditions(path.Child("conditions"), j, old)
	p.jobTimes(path, j, old)
	p.finishedJob(path, j, old)
	p.jobIndexes(path, j, old)
	if (!sameInt(s.Ready, old.Status.Ready) || s.Active != old.Status.Active) && replicasOf(s.Ready) > s.Active {
		p.invalid(path.Child("ready"), *s.Ready, "cannot set more ready pods than active")
	}
	p.jobCounters(path, j, old)
	return p.list
}

func (p *problems) uncountedPods(path *field.Path, u *batchv1.UncountedTerminatedPods) {
	if u == nil {
		return
	}
	before := map[types.UID]bool{}
	for _, l := range []struct {
		name string
		uids []types.UID
	}{{"succeeded", u.Succeeded}, {"failed", u.Failed}} {
		for i, uid := range l.uids {
			at := path.Child(l.name).Index(i)
			switch {
			case uid == "":
				p.invalid(at, uid, "must not be empty")
			case before[uid]:
				p.duplicate(at, uid)
			}
			before[uid] = true
		}
	}
}

// changed reports whether one of the conditions became or ceased to be true.
func jobChanged(j, old *batchv1.Job, conditions ...batchv1.JobConditionType) bool {
	for _, t := range conditions {
		if jobIs(j, t) != jobIs(old, t) {
			return true
		}
	}
	return false
}

func (p *problems) jobConditions(path *field.Path, j, old *batchv1.Job) {
	complete, failed := batchv1.JobComplete, batchv1.JobFailed
	target, met := batchv1.JobFailureTarget, batchv1.JobSuccessCriteriaMet
	for _, rule := range []struct {
		broken bool
		detail string
	}{
		{jobIs(j, complete) && jobIs(j, failed) && jobChanged(j, old, complete, failed), "cannot set Complete=True and Failed=true conditions"},
		{jobIs(j, complete) && jobIs(j, target) && jobChanged(j, old, complete, target), "cannot set Complete=True and FailureTarget=true conditions"},
		{jobIs(j, failed) && !jobIs(j, target) && (jobChanged(j, old, failed) || !sameString(j.Status.FailedIndexes, old.Status.FailedIndexes)),
			"cannot set Failed=True condition without the FailureTarget=true condition"},
		{jobIs(j, complete) && !jobIs(j, met) && jobChanged(j, old, complete, met), "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"},
		{jobIs(j, met) && jobIs(j, failed), "cannot set SuccessCriteriaMet=True and Failed=true conditions"},
		{jobIs(j, met) && jobIs(j, target), "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"},
		{j.Spec.SuccessPolicy != nil && !jobIs(j, met) && jobIs(j, complete), "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"},
		{jobIs(old, failed) && !jobIs(j, failed), "cannot disable the terminal Failed=True condition"},
		{jobIs(old, complete) && !jobIs(j, complete), "cannot disable the terminal Complete=True condition"},
		{jobIs(old, target) && !jobIs(j, target), "cannot disable the terminal FailureTarget=True condition"},
		{jobIs(old, met) && !jobIs(j, met), "cannot disable the SuccessCriteriaMet=True condition"},
		{jobIs(old, complete) && !jobIs(old, met) && jobIs(j, met), "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"},
	} {
		if rule.broken {
			p.invalid(path, field.OmitValueType{}, rule.detail)
		}
	}
}

func (p *problems) jobTimes(path *field.Path, j, old *batchv1.Job) {
	start, end := j.Status.StartTime, j.Status.CompletionTime
	wasStart, wasEnd := old.Status.StartTime, old.Status.CompletionTime
	startMoved, endMoved := !sameTime(start, wasStart), !sameTime(end, wasEnd)
	complete := jobIs(j, batchv1.JobComplete)
	if endMoved || jobChanged(j, old, batchv1.JobComplete) {
		switch {
		case end != nil && !complete:
			p.invalid(path.Child("completionTime"), end, "cannot set completionTime when there is no Complete=True condition")
		case end == nil && complete:
			p.required(path.Child("completionTime"), "completionTime is required for Complete jobs")
		}
	}
	if (startMoved || endMoved) && start != nil && end != nil && end.Before(start) {
		p.invalid(path.Child("completionTime"), end, "must be equal to or after `startTime`")
	}
	if end != nil && wasEnd != nil && endMoved {
		p.invalid(path.Child("completionTime"), end, "field is immutable")
	}
	resuming := jobIs(old, batchv1.JobSuspended) && jobCondition(j, batchv1.JobSuspended, corev1.ConditionFalse)
	suspended := j.Spec.Suspend != nil && *j.Spec.Suspend
	if startMoved && wasStart != nil && !resuming && !suspended {
		p.invalid(path.Child("startTime"), start, "field is immutable for unsuspended job once set")
	}
}

// finishedJob checks that nothing of a finished job is still going on.
func (p *problems) finishedJob(path *field.Path, j, old *batchv1.Job) {
	if !jobIs(j, batchv1.JobComplete) && !jobIs(j, batchv1.JobFailed) {
		return
	}
	s, was := &j.Status, &old.Status
	finished := !jobIs(old, batchv1.JobComplete) && !jobIs(old, batchv1.JobFailed)
	if s.Active > 0 && (finished || s.Active != was.Active) {
		p.invalid(path.Child("active"), s.Active, "active>0 is invalid for finished job")
	}
	emptyAndSuspended := j.Spec.Suspend != nil && *j.Spec.Suspend && j.Spec.Completions != nil && *j.Spec.Completions == 0
	if s.StartTime == nil && !emptyAndSuspended && (finished || !sameTime(s.StartTime, was.StartTime)) {
		p.required(path.Child("startTime"), "startTime is required for finished job")
	}
	if u := s.UncountedTerminatedPods; u != nil && len(u.Failed)+len(u.Succeeded) > 0 &&
		(finished || !equality.Semantic.DeepEqual(u, was.UncountedTerminatedPods)) {
		p.invalid(path.Child("uncountedTerminatedPods"), u, "must be empty for finished job")
	}
	if replicasOf(s.Terminating) > 0 && (finished || !sameInt(s.Terminating, was.Terminating)) {
		p.invalid(path.Child("terminating"), *s.Terminating, "terminating>0 is invalid for finished job")
	}
}

func (p *problems) jobIndexes(path *field.Path, j, old *batchv1.Job) {
	done, failed := j.Status.CompletedIndexes, j.Status.FailedIndexes
	doneMoved, failedMoved := done != old.Status.CompletedIndexes, !sameString(failed, old.Status.FailedIndexes)
	completions := replicasOf(j.Spec.Completions)
	doneRanges, doneErr := parseIndexes(done, completions)
	if doneMoved && j.Spec.Completions != nil && doneErr != nil {
		p.invalid(path.Child("completedIndexes"), done, fmt.Sprintf("error parsing completedIndexes: %s", doneErr))
	}
	if doneMoved && done != "" && !jobIndexed(&j.Spec) {
		p.invalid(path.Child("completedIndexes"), done, "cannot set non-empty completedIndexes when non-indexed completion mode")
	}
	if failed == nil {
		return
	}
	failedRanges, failedErr := parseIndexes(*failed, completions)
	if failedMoved && j.Spec.Completions != nil && j.Spec.BackoffLimitPerIndex != nil && failedErr != nil {
		p.invalid(path.Child("failedIndexes"), *failed, fmt.Sprintf("error parsing failedIndexes: %s", failedErr))
	}
	if failedMoved && j.Spec.BackoffLimitPerIndex == nil {
		p.invalid(path.Child("failedIndexes"), *failed, "cannot set non-null failedIndexes when backoffLimitPerIndex is null")
	}
	if at, both := overlap(doneRanges, failedRanges); both && (doneMoved || failedMoved) && j.Spec.Completions != nil {
		p.invalid(path.Child("failedIndexes"), *failed, fmt.Sprintf("failedIndexes and completedIndexes overlap at index: %d", at))
	}
}

// jobCounters checks that the counts of finished pods do not shrink, but for
// indexed jobs that are scaled down.
func (p *problems) jobCounters(path *field.Path, j, old *batchv1.Job) {
	if j.Status.Failed < old.Status.Failed {
		p.invalid(path.Child("failed"), j.Status.Failed, "cannot decrease the failed counter")
	}
	scalable := jobIndexed(&j.Spec) && sameInt(j.Spec.Completions, j.Spec.Parallelism)
	if j.Status.Succeeded < old.Status.Succeeded && !scalable {
		p.invalid(path.Child("succeeded"), j.Status.Succeeded, "cannot decrease the succeeded counter")
	}
}

func sameInt(a, b *int32) bool     { return a == b || a != nil && b != nil && *a == *b }
func sameString(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }
func sameTime(a, b *metav1.Time) bool {
	return a == b || a != nil && b != nil && a.Time.Equal(b.Time)
}
