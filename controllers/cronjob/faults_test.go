package cronjob_test

import (
	"context"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/explore"
)

// A job each hour, of which one that has ended is kept.
func TestNoFaultChangesTheEnd(t *testing.T) {
	hourly := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "tick"}}
	hourly.Spec.Schedule, hourly.Spec.SuccessfulJobsHistoryLimit = "0 * * * *", new(int32(1))
	hourly.Spec.JobTemplate.Spec.Template.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "tick:1"}},
	}
	hour := func(context.Context, *client.Conn) error {
		time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour + time.Second)))
		return nil
	}
	explore.Run(t, explore.Scenario{
		Server:     func(t *testing.T) *rest.Config { return evenkeeltest.Start(t, evenkeeltest.Bubble()).Config() },
		Controller: run,
		Steps:      []explore.Step{explore.Create(hourly), hour, complete, hour, complete, hour},
		Max:        40,
	})
}

// complete has all jobs end that have not.
func complete(ctx context.Context, conn *client.Conn) error {
	jobs, now := client.Of[*batchv1.Job](conn), metav1.Now().Rfc3339Copy()
	for j, err := range jobs.List(ctx) {
		if err == nil && j.Status.CompletionTime == nil {
			j = j.DeepCopy()
			j.Status.StartTime, j.Status.CompletionTime = &now, &now
			for _, c := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
				j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: c, Status: corev1.ConditionTrue, LastTransitionTime: now})
			}
			_, err = jobs.UpdateStatus(ctx, j)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
