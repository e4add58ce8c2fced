package job

import (
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/even-keel/evenkeel/events"
)

// burst is how many pods are made or deleted in one step, and how many finished ones
// a status lists at most.
const burst = 500

// seen is what there is of a job that is not finished. Its objects are shared and
// read-only.
type seen struct {
	job *batchv1.Job
	// pods are all that it controls and selects.
	pods  []*corev1.Pod
	fails backoff
	// still says that pods could not be made or deleted, and are not to be.
	still bool
	now   time.Time
}

// plan is the next step: one of pods, a status, or pods to let go of. After it, what
// there is has to be looked at again.
type plan struct {
	create []slot
	remove []*corev1.Pod
	// discard are pods to be deleted and not to be counted: their finalizer goes first.
	discard []*corev1.Pod
	// track are pods to be given the finalizer.
	track []*corev1.Pod

	status *batchv1.JobStatus
	told   []note // once the status is written

	free []*corev1.Pod // of the finalizer

	again time.Duration // if there is nothing to do until then; 0 is never
}

// note is an event about the job.
type note struct {
	kind         events.Type
	reason, text string
}

func (p plan) touchesPods() bool {
	return len(p.create)+len(p.remove)+len(p.discard)+len(p.track) > 0
}

func (p plan) nothing() bool { return !p.touchesPods() && p.status == nil && len(p.free) == 0 }

// decide says what the next step is. Pods come first, so that a status tells of them;
// then the status, which lists pods that are done; and only when it is written are
// these let go.
func decide(s seen) plan {
	v := look(s)
	if !s.still {
		if p := v.manage(); !p.nothing() {
			return p
		}
	}
	if v.ends != nil && len(v.active) > 0 {
		return plan{} // it cannot end while pods run
	}
	return v.account()
}

// view is what is seen, and what follows from it.
type view struct {
	seen
	active             []*corev1.Pod
	ready, terminating int32
	// done and lost are the indexes that have succeeded and failed, if pods have any.
	done, lost indexes
	// delayed are the pods whose indexes are to be tried again, which keep the
	// finalizer until then: the new pod has their count of failures.
	delayed map[int]*corev1.Pod
	// listed are the pods that the status lists.
	listed map[types.UID]bool
	// succeeded and failed are all pods that did, whether counted or not.
	succeeded, failed int
	start             time.Time
	ends              *batchv1.JobCondition // SuccessCriteriaMet or FailureTarget
	again             time.Duration
}

func look(s seen) *view {
	v := &view{seen: s, start: s.now}
	if t := s.job.Status.StartTime; t != nil {
		v.start = t.Time
	}
	for _, p := range s.pods {
		switch {
		case active(p):
			v.active = append(v.active, p)
			if ready(p) {
				v.ready++
			}
		case terminating(p):
			v.terminating++
		}
	}
	v.tally()
	if v.indexed() {
		v.tallyIndexes()
	}
	v.ends = v.verdict()
	return v
}

// tally counts the pods that have finished.
func (v *view) tally() {
	u := uncounted(v.job)
	v.succeeded = int(v.job.Status.Succeeded) + len(u.Succeeded)
	v.failed = int(v.job.Status.Failed) + len(u.Failed)
	v.listed = make(map[types.UID]bool, len(u.Succeeded)+len(u.Failed))
	for _, uid := range slices.Concat(u.Succeeded, u.Failed) {
		v.listed[uid] = true
	}
	for _, p := range v.pods {
		switch {
		case !tracked(p) || !v.valid(p) || v.listed[p.UID]:
		case p.Status.Phase == corev1.PodSucceeded:
			v.succeeded++
		case hasFailed(v.job, p) && rule(v.job, p).counts():
			v.failed++
		}
	}
}

func (v *view) tallyIndexes() {
	done, lost := map[int]bool{}, map[int]bool{}
	for _, p := range v.pods {
		switch {
		case !tracked(p) || !v.valid(p):
		case p.Status.Phase == corev1.PodSucceeded && !v.listed[p.UID]: // else it is among the failed
			done[indexOf(p)] = true
		case v.losesIndex(p):
			lost[indexOf(p)] = true
		}
	}
	if was := v.job.Status.FailedIndexes; was != nil {
		v.lost = parseIndexes(*was, v.completions())
	}
	maps.DeleteFunc(done, func(i int, _ bool) bool { return v.lost.has(i) })
	v.done = parseIndexes(v.job.Status.CompletedIndexes, v.completions()).union(indexesOf(done))
	v.succeeded = v.done.count()
	maps.DeleteFunc(lost, func(i int, _ bool) bool { return v.done.has(i) })
	v.lost = v.lost.union(indexesOf(lost))
	if v.job.Spec.BackoffLimitPerIndex != nil {
		v.delay()
	}
}

// losesIndex reports whether a pod has failed and its index is not tried again.
func (v *view) losesIndex(p *corev1.Pod) bool {
	limit := v.job.Spec.BackoffLimitPerIndex
	if limit == nil || !hasFailed(v.job, p) {
		return false
	}
	r := rule(v.job, p)
	failures, _ := failuresOf(p)
	return r.action == batchv1.PodFailurePolicyActionFailIndex || r.counts() && failures >= int(*limit)
}

// delay finds the pods whose count of failures is still needed: of each index the
// one that has most.
func (v *view) delay() {
	settled, total := v.done.union(v.lost).union(v.indexesIn(v.active)), func(p *corev1.Pod) int {
		failures, ignored := failuresOf(p)
		return failures + ignored
	}
	v.delayed = map[int]*corev1.Pod{}
	for _, p := range v.pods {
		if !tracked(p) || !v.valid(p) || !hasFailed(v.job, p) || settled.has(indexOf(p)) {
			continue
		}
		was := v.delayed[indexOf(p)]
		if was == nil || total(p) > total(was) || total(p) == total(was) && !endOf(p).Before(endOf(was)) {
			v.delayed[indexOf(p)] = p
		}
	}
}

func (v *view) indexesIn(pods []*corev1.Pod) indexes {
	of := map[int]bool{}
	for _, p := range pods {
		if v.valid(p) {
			of[indexOf(p)] = true
		}
	}
	return indexesOf(of)
}

// valid reports whether a pod counts: those of indexed jobs need an index.
func (v *view) valid(p *corev1.Pod) bool {
	return !v.indexed() || indexOf(p) != none && indexOf(p) < v.completions()
}

func (v *view) indexed() bool {
	mode := v.job.Spec.CompletionMode
	return mode != nil && *mode == batchv1.IndexedCompletion
}

func (v *view) completions() int { return number32(v.job.Spec.Completions, 0) }

func (v *view) suspended() bool { return v.job.Spec.Suspend != nil && *v.job.Spec.Suspend }

func number32(p *int32, otherwise int) int {
	if p == nil {
		return otherwise
	}
	return int(*p)
}

func uncounted(job *batchv1.Job) batchv1.UncountedTerminatedPods {
	if u := job.Status.UncountedTerminatedPods; u != nil {
		return *u
	}
	return batchv1.UncountedTerminatedPods{}
}
