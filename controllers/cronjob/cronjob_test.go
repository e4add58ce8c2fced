package cronjob_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/controllers/cronjob"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/events"
)

func TestMain(m *testing.M) { evenkeeltest.Main(m) }

// scene is a server in a bubble, whose jobs the test itself runs.
type scene struct {
	*evenkeeltest.Env
	t     *testing.T
	crons *client.Client[*batchv1.CronJob]
	jobs  *client.Client[*batchv1.Job]
}

// bubble runs a test whose time is its own.
func bubble(t *testing.T, test func(t *testing.T, s *scene)) {
	synctest.Test(t, func(t *testing.T) {
		env := evenkeeltest.Start(t, evenkeeltest.Bubble())
		test(t, &scene{
			Env: env, t: t,
			crons: client.Of[*batchv1.CronJob](env.Conn()).In("default"),
			jobs:  client.Of[*batchv1.Job](env.Conn()).In("default"),
		})
	})
}

func run(ctx context.Context, cfg *rest.Config) error {
	o := controller.BaseOptions{Logger: slog.New(slog.DiscardHandler)}
	o.Informers.DetectMutations = true
	base, err := controller.NewBase(cfg, o)
	if err != nil {
		return err
	}
	told := events.New(base, events.Options{Component: "cronjob-controller", Logger: o.Logger})
	if err := base.Add(cronjob.New(base, told)); err != nil {
		return err
	}
	var g errgroup.Group
	g.Go(func() error { return told.Run(ctx) })
	g.Go(func() error { return base.Run(ctx) })
	return g.Wait()
}

func key(name string) client.Key { return client.Key{Namespace: "default", Name: name} }

// must is for calls that have to succeed: must(f())(t).
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// create makes the CronJob "tick".
func (s *scene) create(schedule string, change func(*batchv1.CronJobSpec)) *batchv1.CronJob {
	s.t.Helper()
	c := &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "tick"},
		Spec: batchv1.CronJobSpec{Schedule: schedule, JobTemplate: batchv1.JobTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "tick"}, Annotations: map[string]string{"note": "a"}},
			Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "tick:1"}},
			}}},
		}},
	}
	if change != nil {
		change(&c.Spec)
	}
	return must(s.crons.Create(s.t.Context(), c))(s.t)
}

func (s *scene) change(patch string) {
	s.t.Helper()
	must(s.crons.Patch(s.t.Context(), key("tick"), client.MergePatch(patch)))(s.t)
}

func (s *scene) cron() *batchv1.CronJob { return must(s.crons.Get(s.t.Context(), key("tick")))(s.t) }

// all are the jobs, by name.
func (s *scene) all() []*batchv1.Job {
	s.t.Helper()
	var jobs []*batchv1.Job
	for j, err := range s.jobs.List(s.t.Context()) {
		jobs = append(jobs, must(j, err)(s.t))
	}
	slices.SortFunc(jobs, func(a, b *batchv1.Job) int { return strings.Compare(a.Name, b.Name) })
	return jobs
}

// finish has a job end, as the controller of jobs does.
func (s *scene) finish(j *batchv1.Job, how batchv1.JobConditionType) {
	s.t.Helper()
	now := metav1.Now().Rfc3339Copy()
	before := batchv1.JobSuccessCriteriaMet
	if how == batchv1.JobFailed {
		before = batchv1.JobFailureTarget
	}
	j = must(s.jobs.Get(s.t.Context(), client.KeyOf(j)))(s.t)
	j.Status.StartTime = &now
	for _, c := range []batchv1.JobConditionType{before, how} {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: c, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	if how == batchv1.JobComplete {
		j.Status.CompletionTime = &now
	}
	must(s.jobs.UpdateStatus(s.t.Context(), j))(s.t)
}

// told waits for events about the CronJob.
func (s *scene) told(kind events.Type, reason, text string) {
	s.t.Helper()
	evenkeeltest.EventuallyAll(s.Env, func(all []*eventsv1.Event) error {
		for _, e := range all {
			if e.Regarding.Kind == "CronJob" && e.Type == string(kind) && e.Reason == reason && e.Note == text {
				return nil
			}
		}
		return fmt.Errorf("no event %s %q", reason, text)
	})
}

// pass lets time pass, and all settle.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestADayOfACronJob(t *testing.T) {
	bubble(t, func(t *testing.T, s *scene) {
		s.Run(run)
		s.create("*/30 * * * *", func(c *batchv1.CronJobSpec) { c.TimeZone = new("Europe/Berlin") })
		made := map[string]bool{}
		for range 24 * 60 {
			pass(time.Minute)
			for _, j := range s.all() {
				if len(j.Status.Conditions) == 0 {
					at := time.Now().Truncate(time.Minute)
					if j.Name != fmt.Sprintf("tick-%d", at.Unix()/60) || at.Minute()%30 != 0 {
						t.Errorf("%s was made at %v", j.Name, at)
					}
					zone := must(time.LoadLocation("Europe/Berlin"))(t)
					if got := j.Annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"]; got != at.In(zone).Format(time.RFC3339) {
						t.Errorf("%s was scheduled at %s", j.Name, got)
					}
					if j.Labels["app"] != "tick" || j.Annotations["note"] != "a" || !metav1.IsControlledBy(j, s.cron()) {
						t.Errorf("%s has labels %v, annotations %v, owners %v", j.Name, j.Labels, j.Annotations, j.OwnerReferences)
					}
					if active := s.cron().Status.Active; len(active) != 1 || active[0].UID != j.UID || active[0].Kind != "Job" {
						t.Errorf("active are %v", active)
					}
					made[j.Name] = true
					s.finish(j, batchv1.JobComplete)
				}
			}
		}
		pass(time.Second)
		if len(made) != 48 || len(s.all()) != 3 {
			t.Errorf("%d jobs were made, %d are left", len(made), len(s.all()))
		}
		st := s.cron().Status
		if len(st.Active) != 0 || !st.LastScheduleTime.Time.Equal(time.Now().Truncate(30*time.Minute)) || st.LastSuccessfulTime.Before(st.LastScheduleTime) {
			t.Errorf("status is %+v", st)
		}
		names := slices.Sorted(maps.Keys(made))
		s.told(events.Normal, "SuccessfulCreate", "Created job "+names[47])
		s.told(events.Normal, "SawCompletedJob", "Saw completed job: "+names[47]+", condition: Complete")
		s.told(events.Normal, "SuccessfulDelete", "Deleted job "+names[44])
	})
}

func TestForbidWaitsForTheLast(t *testing.T) {
	bubble(t, func(t *testing.T, s *scene) {
		s.Run(run)
		s.create("* * * * *", func(c *batchv1.CronJobSpec) { c.ConcurrencyPolicy = batchv1.ForbidConcurrent })
		pass(150 * time.Second)
		jobs := s.all()
		if len(jobs) != 1 {
			t.Fatalf("there are %d jobs", len(jobs))
		}
		s.told(events.Normal, "JobAlreadyActive", "Not starting job because prior execution is running and concurrency policy is Forbid")
		s.finish(jobs[0], batchv1.JobFailed)
		synctest.Wait()
		s.told(events.Normal, "SawCompletedJob", "Saw completed job: "+jobs[0].Name+", condition: Failed")
		jobs = s.all()
		if want := fmt.Sprintf("tick-%d", time.Now().Unix()/60); len(jobs) != 2 || jobs[1].Name != want {
			t.Errorf("the time that was missed last has no job: %v", jobs)
		}
	})
}

func TestReplaceEndsTheLast(t *testing.T) {
	bubble(t, func(t *testing.T, s *scene) {
		s.Run(run)
		s.create("* * * * *", func(c *batchv1.CronJobSpec) { c.ConcurrencyPolicy = batchv1.ReplaceConcurrent })
		pass(time.Minute)
		first := s.all()
		pass(time.Minute)
		second := s.all()
		if len(first) != 1 || len(second) != 1 || first[0].Name == second[0].Name {
			t.Fatalf("jobs are %v, then %v", first, second)
		}
		s.told(events.Normal, "SuccessfulDelete", "Deleted job "+first[0].Name)
		if active := s.cron().Status.Active; len(active) != 1 || active[0].Name != second[0].Name {
			t.Errorf("active are %v", active)
		}
	})
}

func TestMissedRuns(t *testing.T) {
	bubble(t, func(t *testing.T, s *scene) {
		s.create("0 * * * *", func(c *batchv1.CronJobSpec) { c.StartingDeadlineSeconds = new(int64(600)) })
		pass(3*time.Hour + 30*time.Minute) // nobody is there
		stop := s.Run(run)
		synctest.Wait()
		if jobs := s.all(); len(jobs) != 0 {
			t.Errorf("%d jobs were made too late", len(jobs))
		}
		late := time.Now().Truncate(time.Hour).UTC().Format(time.RFC1123Z)
		s.told(events.Warning, "MissSchedule", "Missed scheduled time to start a job: "+late)
		stop()
		pass(35 * time.Minute)
		s.Run(run)
		synctest.Wait()
		if jobs := s.all(); len(jobs) != 1 {
			t.Errorf("%d jobs were made in time, want 1", len(jobs))
		}
	})
}

func TestTooManyMissedRuns(t *testing.T) {
	bubble(t, func(t *testing.T, s *scene) {
		s.create("* * * * *", nil)
		pass(3 * time.Hour)
		s.Run(run)
		synctest.Wait()
		s.told(events.Warning, "TooManyMissedTimes", "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew")
		if jobs := s.all(); len(jobs) != 1 || jobs[0].Name != fmt.Sprintf("tick-%d", time.Now().Unix()/60) {
			t.Errorf("jobs are %v", jobs)
		}
	})
}

func TestSuspendedAndChangedSchedules(t *testing.T) {
	bubble(t, func(t *testing.T, s *scene) {
		s.Run(run)
		pass(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour + time.Minute)))
		s.create("30 * * * *", func(c *batchv1.CronJobSpec) { c.Suspend = new(true) })
		pass(45 * time.Minute)
		if n := len(s.all()); n != 0 {
			t.Fatalf("%d jobs were made while suspended", n)
		}
		// What a schedule would have been before it was one has no run.
		s.change(`{"spec":{"schedule":"40 * * * *","suspend":false}}`)
		synctest.Wait()
		if n := len(s.all()); n != 0 {
			t.Errorf("%d jobs were made for a time that was not one", n)
		}
		pass(54 * time.Minute)
		if n := len(s.all()); n != 1 {
			t.Errorf("%d jobs, want that of the new schedule", n)
		}
	})
}

func TestJobsThatGoMissingAndStrangers(t *testing.T) {
	bubble(t, func(t *testing.T, s *scene) {
		s.Run(run)
		c := s.create("0 * * * *", nil)
		pass(time.Hour)
		j := s.all()[0]
		if err := s.jobs.Delete(t.Context(), client.KeyOf(j), client.Propagation(metav1.DeletePropagationBackground)); err != nil {
			t.Fatal(err)
		}
		s.told(events.Normal, "MissingJob", "Active job went missing: "+j.Name)
		stranger := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "by-hand", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(c, batchv1.SchemeGroupVersion.WithKind("CronJob"))},
		}, Spec: c.Spec.JobTemplate.Spec}
		must(s.jobs.Create(t.Context(), stranger))(t)
		s.told(events.Warning, "UnexpectedJob", "Saw a job that the controller did not create or forgot: by-hand")
		synctest.Wait()
		if active := s.cron().Status.Active; len(active) != 0 {
			t.Errorf("active are %v", active)
		}
	})
}

// Connections that break, and servers and controllers that start anew, start no run
// twice.
func TestCronJobConvergesWhateverBreaks(t *testing.T) {
	bubble(t, func(t *testing.T, s *scene) {
		stop := s.Run(run)
		s.create("* * * * *", func(c *batchv1.CronJobSpec) { c.SuccessfulJobsHistoryLimit = new(int32(100)) })
		breaks := []func(){s.Cut, func() { s.Restart(nil) }, func() { stop(); stop = s.Run(run) }}
		for i := range 30 {
			pass(time.Minute)
			breaks[i%len(breaks)]()
		}
		pass(time.Minute)
		evenkeeltest.Eventually(s.Env, key("tick"), func(c *batchv1.CronJob) error {
			if n := len(c.Status.Active); n != 31 {
				return fmt.Errorf("%d are active", n)
			}
			return nil
		})
		if n := len(s.all()); n != 31 {
			t.Errorf("%d jobs were made in 31 minutes", n)
		}
	})
}
