package cronjob

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/even-keel/evenkeel/events"
)

// seen is what there is of a CronJob. Its objects are shared and read-only.
type seen struct {
	cron *batchv1.CronJob
	// jobs are those that it controls.
	jobs []*batchv1.Job
	// since is from when on times count.
	since time.Time
	now   time.Time
	behind
}

// behind is what this reconcile has done already.
type behind struct {
	removed map[types.UID]bool
	// taken is a time whose job's name another has.
	taken time.Time
}

// plan is the next step: jobs to be deleted, one to be made, or a status. After it,
// what there is has to be looked at again.
type plan struct {
	remove []*batchv1.Job
	create *batchv1.Job
	at     time.Time // of the job
	status *batchv1.CronJobStatus
	told   []note        // when the step is taken
	again  time.Duration // if there is nothing to do until then; 0 is never
}

// note is an event about the CronJob.
type note struct {
	kind         events.Type
	reason, text string
}

func warn(reason, format string, args ...any) *note {
	return &note{events.Warning, reason, fmt.Sprintf(format, args...)}
}

func (p plan) nothing() bool { return len(p.remove) == 0 && p.create == nil && p.status == nil }

// decide says what the next step is: the status says what there is, then what is over
// and too old goes, and then the job of the present time is made.
func decide(s seen) plan {
	if status := s.status(); !equality.Semantic.DeepEqual(*status, s.cron.Status) {
		return plan{status: status, told: s.news()}
	}
	if old := s.history(); len(old) > 0 {
		return plan{remove: old}
	}
	do := s.next()
	if do.nothing() {
		do.told = append(s.strangers(), do.told...)
	}
	return do
}

// next is the step to the job of the present time.
func (s seen) next() plan {
	if s.cron.DeletionTimestamp != nil || s.cron.Spec.Suspend != nil && *s.cron.Spec.Suspend {
		return plan{}
	}
	cal, bad := calendarOf(s.cron)
	if bad != nil {
		return plan{told: []note{*bad}}
	}
	return s.start(cal)
}

// strangers are events about jobs that others made.
func (s seen) strangers() []note {
	var out []note
	for _, j := range s.jobs {
		if _, ours := scheduled(j); !ours && !s.lists(j.UID) && ended(j) == "" {
			out = append(out, *warn("UnexpectedJob", "Saw a job that the controller did not create or forgot: %s", j.Name))
		}
	}
	return out
}

// start makes the job of the latest time that has come and has none.
func (s seen) start(cal calendar) plan {
	do := plan{again: cal.next(s.now).Sub(s.now)}
	if unsupported(s.cron) {
		do.told = append(do.told, *warn("UnsupportedSchedule", "CRON_TZ or TZ used in schedule %q is not officially supported, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details", s.cron.Spec.Schedule))
	}
	from, limit := s.from(), s.limit()
	at, _ := cal.last(from, s.now)
	switch {
	case at.IsZero():
		return do
	case at.Before(limit):
		do.told = append(do.told, *warn("MissSchedule", "Missed scheduled time to start a job: %s", at.UTC().Format(time.RFC1123Z)))
		return do
	}
	if _, missed := cal.last(latest(from, limit), s.now); missed > tooMany {
		do.told = append(do.told, *warn("TooManyMissedTimes", "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"))
	}
	running := s.running()
	switch policy := s.cron.Spec.ConcurrencyPolicy; {
	case policy == batchv1.ForbidConcurrent && len(running) > 0:
		do.told = append(do.told, note{events.Normal, "JobAlreadyActive", "Not starting job because prior execution is running and concurrency policy is Forbid"})
		return do
	case policy == batchv1.ReplaceConcurrent && len(running) > 0:
		return plan{remove: running}
	}
	return plan{create: jobOf(s.cron, at), at: at, told: do.told}
}

// from is the time after which times are still to come: that of the last job.
func (s seen) from() time.Time {
	from := s.cron.CreationTimestamp.Time
	if last := s.lastSchedule(); last != nil {
		from = last.Time
	}
	return latest(latest(from, s.since), s.taken)
}

// limit is the time before which it is too late.
func (s seen) limit() time.Time {
	if d := s.cron.Spec.StartingDeadlineSeconds; d != nil {
		return s.now.Add(-time.Duration(*d) * time.Second)
	}
	return time.Time{}
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// scheduled is the time that a job was made for; ok is false for those that people
// made.
func scheduled(j *batchv1.Job) (t time.Time, ok bool) {
	t, err := time.Parse(time.RFC3339, j.Annotations[batchv1.CronJobScheduledTimestampAnnotation])
	return t, err == nil
}

// lastSchedule is the latest time of which it is known that it had its job.
func (s seen) lastSchedule() *metav1.Time {
	last := s.cron.Status.LastScheduleTime
	for _, j := range s.jobs {
		if t, ok := scheduled(j); ok && !t.After(s.now) && (last == nil || t.After(last.Time)) {
			last = new(metav1.NewTime(t))
		}
	}
	return last
}

// running are the jobs that count as active. One that is to be replaced does not from
// when on it is being deleted.
func (s seen) running() []*batchv1.Job {
	var out []*batchv1.Job
	for _, j := range s.jobs {
		_, ours := scheduled(j)
		if ours = ours || s.lists(j.UID); !ours || ended(j) != "" || s.removed[j.UID] {
			continue
		}
		if j.DeletionTimestamp == nil || s.cron.Spec.ConcurrencyPolicy != batchv1.ReplaceConcurrent {
			out = append(out, j)
		}
	}
	slices.SortFunc(out, byStart)
	return out
}

func (s seen) lists(uid types.UID) bool {
	return slices.ContainsFunc(s.cron.Status.Active, func(r corev1.ObjectReference) bool { return r.UID == uid })
}

// ended is how a job ended, empty if it has not.
func ended(j *batchv1.Job) batchv1.JobConditionType {
	for _, c := range j.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return c.Type
		}
	}
	return ""
}

// history are the finished jobs that are beyond the limits, the oldest first.
func (s seen) history() []*batchv1.Job {
	var out []*batchv1.Job
	for how, limit := range map[batchv1.JobConditionType]*int32{
		batchv1.JobComplete: s.cron.Spec.SuccessfulJobsHistoryLimit, batchv1.JobFailed: s.cron.Spec.FailedJobsHistoryLimit,
	} {
		of := slices.DeleteFunc(slices.Clone(s.jobs), func(j *batchv1.Job) bool {
			return ended(j) != how || j.DeletionTimestamp != nil || s.removed[j.UID]
		})
		if limit == nil || len(of) <= int(*limit) {
			continue
		}
		slices.SortFunc(of, byStart)
		out = append(out, of[:len(of)-int(*limit)]...)
	}
	return out
}

func byStart(a, b *batchv1.Job) int {
	switch x, y := a.Status.StartTime, b.Status.StartTime; {
	case x != nil && y != nil:
		return cmp.Or(x.Compare(y.Time), strings.Compare(a.Name, b.Name))
	case x != nil:
		return -1
	case y != nil:
		return 1
	}
	return strings.Compare(a.Name, b.Name)
}

// status is what there is to tell.
func (s seen) status() *batchv1.CronJobStatus {
	status := s.cron.Status.DeepCopy()
	status.LastScheduleTime = s.lastSchedule()
	for _, j := range s.jobs {
		end := j.Status.CompletionTime
		if ended(j) == batchv1.JobComplete && end != nil && (status.LastSuccessfulTime == nil || end.After(status.LastSuccessfulTime.Time)) {
			status.LastSuccessfulTime = end.DeepCopy()
		}
	}
	status.Active = slices.DeleteFunc(status.Active, func(r corev1.ObjectReference) bool {
		return !slices.ContainsFunc(s.running(), func(j *batchv1.Job) bool { return j.UID == r.UID })
	})
	for _, j := range s.running() {
		if !slices.ContainsFunc(status.Active, func(r corev1.ObjectReference) bool { return r.UID == j.UID }) {
			status.Active = append(status.Active, refTo(j))
		}
	}
	return status
}

// news are the events about jobs that the status lists and that no longer run.
func (s seen) news() []note {
	var out []note
	for _, r := range s.cron.Status.Active {
		i := slices.IndexFunc(s.jobs, func(j *batchv1.Job) bool { return j.UID == r.UID })
		switch {
		case s.removed[r.UID]:
		case i < 0:
			out = append(out, note{events.Normal, "MissingJob", "Active job went missing: " + r.Name})
		case ended(s.jobs[i]) != "":
			out = append(out, note{events.Normal, "SawCompletedJob", fmt.Sprintf("Saw completed job: %s, condition: %s", r.Name, ended(s.jobs[i]))})
		}
	}
	return out
}

func refTo(j *batchv1.Job) corev1.ObjectReference {
	return corev1.ObjectReference{
		Kind: "Job", APIVersion: batchv1.SchemeGroupVersion.String(),
		Namespace: j.Namespace, Name: j.Name, UID: j.UID, ResourceVersion: j.ResourceVersion,
	}
}

// jobOf is the job of a time.
func jobOf(c *batchv1.CronJob, at time.Time) *batchv1.Job {
	t := &c.Spec.JobTemplate
	annotations := maps.Clone(t.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	zone, err := time.LoadLocation(zoneOf(c)) // UTC if there is none
	if err != nil {
		zone = time.UTC
	}
	annotations[batchv1.CronJobScheduledTimestampAnnotation] = at.In(zone).Format(time.RFC3339)
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.Namespace, Name: nameOf(c, at), Labels: maps.Clone(t.Labels), Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(c, batchv1.SchemeGroupVersion.WithKind("CronJob"))},
		},
		Spec: *t.Spec.DeepCopy(),
	}
}
