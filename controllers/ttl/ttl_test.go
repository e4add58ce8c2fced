package ttl_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/controllers/ttl"
	"github.com/even-keel/evenkeel/evenkeeltest"
)

func TestMain(m *testing.M) { evenkeeltest.Main(m) }

func run(ctx context.Context, cfg *rest.Config) error {
	base, err := controller.NewBase(cfg, controller.BaseOptions{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if err := base.Add(ttl.New(base, nil)); err != nil {
		return err
	}
	return base.Run(ctx)
}

func key(name string) client.Key { return client.Key{Namespace: "default", Name: name} }

func create(t *testing.T, jobs *client.Client[*batchv1.Job], name string, seconds *int32) *batchv1.Job {
	t.Helper()
	j, err := jobs.Create(t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: batchv1.JobSpec{TTLSecondsAfterFinished: seconds, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "main:1"}},
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// finish has a job end, as the controller of jobs does.
func finish(t *testing.T, jobs *client.Client[*batchv1.Job], j *batchv1.Job, conditions ...batchv1.JobConditionType) {
	t.Helper()
	now := metav1.Now().Rfc3339Copy()
	j = j.DeepCopy()
	j.Status.StartTime = &now
	for _, c := range conditions {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: c, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	if slices.Contains(conditions, batchv1.JobComplete) {
		j.Status.CompletionTime = &now
	}
	if _, err := jobs.UpdateStatus(t.Context(), j); err != nil {
		t.Fatal(err)
	}
}

func TestFinishedJobsAreDeletedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := evenkeeltest.Start(t, evenkeeltest.Bubble())
		stop := env.Run(run)
		jobs := client.Of[*batchv1.Job](env.Conn()).In("default")
		short, long := create(t, jobs, "short", new(int32(60))), create(t, jobs, "long", new(int32(60)))
		kept := create(t, jobs, "kept", nil)
		create(t, jobs, "running", new(int32(60)))
		finish(t, jobs, short, batchv1.JobSuccessCriteriaMet, batchv1.JobComplete)
		finish(t, jobs, long, batchv1.JobFailureTarget, batchv1.JobFailed)
		finish(t, jobs, kept, batchv1.JobSuccessCriteriaMet, batchv1.JobComplete)
		if _, err := jobs.Patch(t.Context(), key("long"), client.MergePatch(`{"spec":{"ttlSecondsAfterFinished":3600}}`)); err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			after time.Duration
			going map[string]bool
		}{
			{58 * time.Second, nil},
			{4 * time.Second, map[string]bool{"short": true}},
			{time.Hour, map[string]bool{"short": true, "long": true}},
		} {
			time.Sleep(step.after)
			synctest.Wait()
			for _, name := range []string{"short", "long", "kept", "running"} {
				if got := going(t, jobs, name); got != step.going[name] {
					t.Errorf("at %v %s goes: %v, want %v", time.Now(), name, got, step.going[name])
				}
			}
			env.Restart(nil)
			stop()
			stop = env.Run(run)
		}
	})
}

// going reports whether a job is gone, or waits for the garbage collector.
func going(t *testing.T, jobs *client.Client[*batchv1.Job], name string) bool {
	t.Helper()
	j, err := jobs.Get(t.Context(), key(name))
	if client.IsNotFound(err) {
		return true
	}
	if err != nil {
		t.Fatal(err)
	}
	if j.DeletionTimestamp != nil && !slices.Contains(j.Finalizers, metav1.FinalizerDeleteDependents) {
		t.Errorf("%s is deleted with finalizers %v: its pods are not", name, j.Finalizers)
	}
	return j.DeletionTimestamp != nil
}
