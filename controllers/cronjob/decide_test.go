package cronjob

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const seeds = 150

// world is a model of a server with one CronJob, whose controller is away now and
// then and may crash after every request.
type world struct {
	*rand.Rand
	cron    *batchv1.CronJob
	jobs    []*batchv1.Job
	now     time.Time
	matches func(time.Time) bool // the schedule, naively
	started map[string]int       // by name
}

// The schedules, and what they say of a minute.
var schedules = map[string]func(time.Time) bool{
	"* * * * *":   func(time.Time) bool { return true },
	"*/7 * * * *": func(t time.Time) bool { return t.Minute()%7 == 0 },
	"30 6-16/4 * * 1-5": func(t time.Time) bool {
		return t.Minute() == 30 && t.Hour() >= 6 && t.Hour() <= 16 && t.Hour()%4 == 2 && t.Weekday() >= 1 && t.Weekday() <= 5
	},
	"0 0 */9 * *":   func(t time.Time) bool { return t.Format("15:04") == "00:00" && t.Day()%9 == 1 },
	"@hourly":       func(t time.Time) bool { return t.Minute() == 0 },
	"@daily":        func(t time.Time) bool { return t.Format("15:04") == "00:00" },
	"15 3 13 * fri": func(t time.Time) bool { return t.Format("15:04") == "03:15" && (t.Day() == 13 || t.Weekday() == 5) },
	"0,20 10-12 * JAN-nov ?": func(t time.Time) bool {
		return t.Minute()%20 == 0 && t.Minute() < 40 && t.Hour() >= 10 && t.Hour() <= 12 && t.Month() <= 11
	},
}

func newWorld(seed uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 3)), started: map[string]int{}}
	w.now = time.Date(2030, 1, 31, 23, 50, w.IntN(60), 0, time.UTC)
	texts := slices.Sorted(func(yield func(string) bool) {
		for text := range schedules {
			if !yield(text) {
				return
			}
		}
	})
	text := texts[w.IntN(len(texts))]
	w.matches = schedules[text]
	w.cron = &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "cron", CreationTimestamp: metav1.NewTime(w.now)},
		Spec: batchv1.CronJobSpec{
			Schedule: text, TimeZone: new("UTC"), ConcurrencyPolicy: batchv1.AllowConcurrent,
			SuccessfulJobsHistoryLimit: new(int32(w.IntN(4))), FailedJobsHistoryLimit: new(int32(1)),
		},
	}
	if w.IntN(2) == 0 {
		w.cron.Spec.StartingDeadlineSeconds = new(int64(w.IntN(1000)))
	}
	return w
}

// due is the latest minute that has to have its job now, by looking at all.
func (w *world) due() (time.Time, bool) {
	from := w.cron.CreationTimestamp.Time
	for _, j := range w.jobs {
		if t, _ := scheduled(j); t.After(from) {
			from = t
		}
	}
	if l := w.cron.Status.LastScheduleTime; l != nil && l.After(from) {
		from = l.Time
	}
	for t := w.now.Truncate(time.Minute); t.After(from); t = t.Add(-time.Minute) {
		if d := w.cron.Spec.StartingDeadlineSeconds; d != nil && w.now.Sub(t) > time.Duration(*d)*time.Second {
			break
		}
		if w.matches(t) {
			return t, true
		}
	}
	return time.Time{}, false
}

// reconcile goes steps until there is nothing to do, or crashes.
func (w *world) reconcile() (again time.Duration, crashed bool, err error) {
	var b behind
	for range rounds {
		do := decide(seen{cron: w.cron.DeepCopy(), jobs: slices.Clone(w.jobs), now: w.now, behind: b})
		if do.nothing() {
			return do.again, false, nil
		}
		if w.IntN(10) == 0 {
			return 0, true, nil
		}
		for _, j := range do.remove {
			w.jobs = slices.DeleteFunc(w.jobs, func(o *batchv1.Job) bool { return o.UID == j.UID })
		}
		if j := do.create; j != nil {
			if w.started[j.Name]++; w.started[j.Name] > 1 {
				return 0, false, fmt.Errorf("%s is started again", j.Name)
			}
			j.UID, j.Status.StartTime = types.UID(j.Name), new(metav1.NewTime(w.now))
			w.jobs = append(w.jobs, j)
		}
		if do.status != nil {
			w.cron.Status = *do.status
		}
	}
	return 0, false, fmt.Errorf("%d steps were not enough", rounds)
}

// finish ends some of the jobs.
func (w *world) finish() {
	for _, j := range w.jobs {
		if ended(j) == "" && w.IntN(2) == 0 {
			how := []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed}[w.IntN(2)]
			j.Status.Conditions = []batchv1.JobCondition{{Type: how, Status: corev1.ConditionTrue}}
			if how == batchv1.JobComplete {
				j.Status.CompletionTime = new(metav1.NewTime(w.now))
			}
		}
	}
}

// No run is started twice, and none is missed that is within the deadline, whenever
// the controller looks and wherever it crashes.
func TestEachRunIsStartedOnce(t *testing.T) {
	runs := 0
	for seed := range uint64(seeds) {
		w := newWorld(seed)
		for range 60 {
			due, isDue := w.due()
			again, crashed, err := w.reconcile()
			if err != nil {
				t.Fatalf("seed %d: %s at %v: %v", seed, w.cron.Spec.Schedule, w.now, err)
			}
			if crashed {
				continue
			}
			if _, still := w.due(); still {
				t.Fatalf("seed %d: %s at %v: the run of %v was missed", seed, w.cron.Spec.Schedule, w.now, due)
			}
			if isDue && w.started[nameOf(w.cron, due)] != 1 {
				t.Fatalf("seed %d: %s at %v: the run of %v was not started", seed, w.cron.Spec.Schedule, w.now, due)
			}
			w.finish()
			w.pass(again)
		}
		runs += len(w.started)
	}
	if runs < seeds {
		t.Errorf("%d runs are too few to tell", runs)
	}
}

// pass lets time pass: until the controller wanted to look again, somewhat earlier,
// or much later.
func (w *world) pass(again time.Duration) {
	switch w.IntN(6) {
	case 0:
		w.now = w.now.Add(time.Duration(w.Int64N(int64(again) + 1)))
	case 1:
		w.now = w.now.Add(again + time.Duration(w.IntN(100_000))*time.Second)
	default:
		w.now = w.now.Add(again)
	}
}

// A calendar finds the same time whether it has to count or not.
func TestManyMissedTimesAreNotWalked(t *testing.T) {
	from := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for schedule, want := range map[string]string{
		"*/7 * * * *": "2030-12-31T23:56:00Z", "@every 31s": "2030-12-31T23:59:50Z", "@every 90m": "2030-12-31T22:30:00Z",
		"30 3 * * 2": "2030-12-31T03:30:00Z", "0 0 29 2 *": "", "0 0 1 */3 *": "2030-10-01T00:00:00Z",
		"0 0 1 JAN,mar *": "2030-03-01T00:00:00Z",
	} {
		cal, bad := calendarOf(&batchv1.CronJob{
			ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(from)},
			Spec:       batchv1.CronJobSpec{Schedule: schedule, TimeZone: new("UTC")},
		})
		if bad != nil {
			t.Fatal(bad.text)
		}
		got, _ := cal.last(from, time.Date(2030, 12, 31, 23, 59, 59, 0, time.UTC))
		if text := got.Format(time.RFC3339); text != want && !(want == "" && got.IsZero()) {
			t.Errorf("%s: the last time is %s, want %s", schedule, text, want)
		}
	}
}

func TestSchedulesThatCannotBe(t *testing.T) {
	for want, spec := range map[string]batchv1.CronJobSpec{
		`InvalidSchedule: invalid schedule: 59 23 31 2 * : time difference between two schedules is less than 1 second`: {Schedule: "59 23 31 2 *"},
		`UnparseableSchedule: unparseable schedule: "nonsense" : expected exactly 5 fields, found 1: [nonsense]`:        {Schedule: "nonsense"},
		`UnknownTimeZone: invalid timeZone: "Mars/Base": unknown time zone Mars/Base`:                                   {Schedule: "@daily", TimeZone: new("Mars/Base")},
	} {
		do := decide(seen{cron: &batchv1.CronJob{Spec: spec}, now: time.Now()})
		if !do.nothing() || do.again != 0 || len(do.told) != 1 || do.told[0].reason+": "+do.told[0].text != want {
			t.Errorf("plan is %+v, want %s", do, want)
		}
	}
}

// Times that a change of the clock leaves out have no run; those that it brings
// twice have two, as the schedule says nothing else.
func TestDaylightSaving(t *testing.T) {
	for name, c := range map[string]struct {
		schedule, from, to string
		want               []string
	}{
		"spring, in the gap":  {"30 2 * * *", "2026-03-28T12:00:00+01:00", "2026-03-30T12:00:00+02:00", []string{"2026-03-30T02:30:00+02:00"}},
		"spring, after it":    {"0 3 * * *", "2026-03-28T12:00:00+01:00", "2026-03-30T12:00:00+02:00", []string{"2026-03-29T03:00:00+02:00", "2026-03-30T03:00:00+02:00"}},
		"autumn, in the fold": {"30 2 * * *", "2026-10-24T12:00:00+02:00", "2026-10-26T12:00:00+01:00", []string{"2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00", "2026-10-26T02:30:00+01:00"}},
		"autumn, every hour":  {"0 * * * *", "2026-10-25T00:30:00+02:00", "2026-10-25T03:30:00+01:00", []string{"2026-10-25T01:00:00+02:00", "2026-10-25T02:00:00+02:00", "2026-10-25T02:00:00+01:00", "2026-10-25T03:00:00+01:00"}},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := parse(t, c.from), parse(t, c.to)
			cron := &batchv1.CronJob{
				ObjectMeta: metav1.ObjectMeta{Name: "c", CreationTimestamp: metav1.NewTime(from)},
				Spec:       batchv1.CronJobSpec{Schedule: c.schedule, TimeZone: new("Europe/Berlin")},
			}
			var got []string
			for now := from; now.Before(to); {
				do := decide(seen{cron: cron, now: now})
				if do.create != nil {
					got = append(got, do.create.Annotations[batchv1.CronJobScheduledTimestampAnnotation])
					cron.Status.LastScheduleTime = new(metav1.NewTime(do.at))
					continue
				}
				now = now.Add(do.again)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("runs are %v, want %v", got, c.want)
			}
		})
	}
}

func parse(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}
