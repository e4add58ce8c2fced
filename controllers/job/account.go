package job

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/even-keel/evenkeel/events"
)

// account says what the status should be and, if it is that, which pods may go.
func (v *view) account() plan {
	b := v.book()
	if v.ends == nil && v.complete() {
		v.ends = v.condition(batchv1.JobSuccessCriteriaMet, corev1.ConditionTrue,
			batchv1.JobReasonCompletionsReached, "Reached expected number of succeeded pods")
	}
	b.settle()
	b.enter()
	if v.indexed() {
		b.status.Succeeded = int32(b.done.count())
		b.status.CompletedIndexes = b.done.String()
		if v.job.Spec.BackoffLimitPerIndex != nil {
			text := v.lost.String()
			b.status.FailedIndexes = &text
		}
	}
	b.times()
	b.conclude()
	switch {
	case !equality.Semantic.DeepEqual(*b.status, v.job.Status):
		return plan{status: b.status, told: b.told}
	case len(b.free) > 0:
		return plan{free: b.free}
	}
	return plan{again: v.again}
}

// book is a status that is being written.
type book struct {
	*view
	status *batchv1.JobStatus
	done   indexes // that the status tells
	free   []*corev1.Pod
	told   []note
}

func (v *view) book() *book {
	b := &book{view: v, status: v.job.Status.DeepCopy()}
	if b.status.UncountedTerminatedPods == nil {
		b.status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
	}
	ready, terminating := v.ready, v.terminating
	b.status.Active, b.status.Ready, b.status.Terminating = int32(len(v.active)), &ready, &terminating
	if v.indexed() {
		b.done = parseIndexes(v.job.Status.CompletedIndexes, v.completions())
	}
	return b
}

// settle counts the pods that are listed and have lost their finalizer.
func (b *book) settle() {
	waits := map[types.UID]bool{}
	for _, p := range b.pods {
		waits[p.UID] = tracked(p)
	}
	count := func(of *[]types.UID) int32 {
		before := len(*of)
		*of = slices.DeleteFunc(*of, func(uid types.UID) bool { return !waits[uid] })
		return int32(before - len(*of))
	}
	u := b.status.UncountedTerminatedPods
	b.status.Succeeded += count(&u.Succeeded)
	b.status.Failed += count(&u.Failed)
}

// enter lists the pods that are done, as many as there is room for. They may go when
// that is written.
func (b *book) enter() {
	u := b.status.UncountedTerminatedPods
	room := burst - len(u.Succeeded) - len(u.Failed)
	fresh := map[int]bool{}
	for _, p := range b.pods {
		if !tracked(p) || !b.mayGo(p) {
			continue
		}
		if !b.owed(p) {
			b.free = append(b.free, p)
			continue
		}
		if room--; room < 0 {
			continue
		}
		b.free = append(b.free, p)
		switch {
		case p.Status.Phase != corev1.PodSucceeded:
			u.Failed = append(u.Failed, p.UID)
		case b.indexed():
			fresh[indexOf(p)] = true
		default:
			u.Succeeded = append(u.Succeeded, p.UID)
		}
	}
	b.done = b.done.union(indexesOf(fresh))
}

// mayGo reports whether a pod is done.
func (v *view) mayGo(p *corev1.Pod) bool {
	if v.job.DeletionTimestamp != nil || v.ends != nil || p.Status.Phase == corev1.PodSucceeded {
		return true
	}
	if !hasFailed(v.job, p) {
		return false
	}
	waits := v.delayed[indexOf(p)]
	return waits == nil || waits.UID != p.UID
}

// owed reports whether a pod that is done has to be counted, and is not listed yet.
// When a job fails, all that it still had count as failed.
func (b *book) owed(p *corev1.Pod) bool {
	switch {
	case !b.valid(p) || b.listed[p.UID]:
		return false
	case p.Status.Phase == corev1.PodSucceeded:
		return !b.indexed() || !b.done.has(indexOf(p)) && !b.lost.has(indexOf(p))
	case hasFailed(b.job, p) || b.ends != nil && b.ends.Type == batchv1.JobFailureTarget:
		return rule(b.job, p).counts()
	}
	return false
}

// times says since when a job is active, and whether it is suspended.
func (b *book) times() {
	now := metav1.NewTime(b.now)
	if b.status.StartTime == nil && (!b.suspended() || b.ends != nil) {
		b.status.StartTime = &now
	}
	if b.ends != nil || b.job.DeletionTimestamp != nil {
		return
	}
	switch was := holds(b.status, batchv1.JobSuspended); {
	case b.suspended() && !was:
		b.set(b.condition(batchv1.JobSuspended, corev1.ConditionTrue, "JobSuspended", "Job suspended"))
		b.tell(events.Normal, "Suspended", "Job suspended")
		b.status.StartTime = nil
	case !b.suspended() && was:
		b.set(b.condition(batchv1.JobSuspended, corev1.ConditionFalse, "JobResumed", "Job resumed"))
		b.tell(events.Normal, "Resumed", "Job resumed")
		b.status.StartTime = &now
	}
}

// conclude says that the job is to end, and once that is written and all is counted
// that it has.
func (b *book) conclude() {
	if b.ends == nil {
		return
	}
	if !holds(&b.job.Status, b.ends.Type) {
		b.set(b.ends)
		return
	}
	u := b.status.UncountedTerminatedPods
	if len(b.free)+len(u.Succeeded)+len(u.Failed) > 0 || b.terminating > 0 {
		return
	}
	now := metav1.NewTime(b.now)
	if b.ends.Type == batchv1.JobFailureTarget {
		b.set(b.condition(batchv1.JobFailed, corev1.ConditionTrue, b.ends.Reason, b.ends.Message))
		b.tell(events.Warning, b.ends.Reason, b.ends.Message)
		return
	}
	b.set(b.condition(batchv1.JobComplete, corev1.ConditionTrue, b.ends.Reason, b.ends.Message))
	b.status.CompletionTime = &now
	if b.job.Spec.Completions != nil && int(b.status.Succeeded) > b.completions() {
		b.tell(events.Warning, "TooManySucceededPods", "Too many succeeded pods running after completion count reached")
	}
	b.tell(events.Normal, "Completed", "Job completed")
}

// set has the status have a condition.
func (b *book) set(c *batchv1.JobCondition) {
	if was := condition(b.status, c.Type); was != nil {
		*was = *c
		return
	}
	b.status.Conditions = append(b.status.Conditions, *c)
}

func (b *book) tell(kind events.Type, reason, text string) {
	b.told = append(b.told, note{kind, reason, text})
}
