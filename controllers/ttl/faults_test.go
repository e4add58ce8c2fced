package ttl_test

import (
	"context"
	"fmt"
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

// Two jobs end: one with a time to be kept, and one that gets it later.
func TestNoFaultChangesTheEnd(t *testing.T) {
	job := func(name string, seconds *int32) *batchv1.Job {
		j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		j.Spec.TTLSecondsAfterFinished = seconds
		j.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "main:1"}}}
		return j
	}
	const done = `{"status":{"startTime":%[1]q,"completionTime":%[1]q,"conditions":[
		{"type":"SuccessCriteriaMet","status":"True","lastTransitionTime":%[1]q},{"type":"Complete","status":"True","lastTransitionTime":%[1]q}]}}`
	finish := func(name string) explore.Step {
		return func(ctx context.Context, conn *client.Conn) error {
			text := fmt.Sprintf(done, time.Now().UTC().Format(time.RFC3339))
			_, err := client.Of[*batchv1.Job](conn).Status().Patch(ctx, key(name), client.MergePatch(text))
			return err
		}
	}
	explore.Run(t, explore.Scenario{
		Server:     func(t *testing.T) *rest.Config { return evenkeeltest.Start(t, evenkeeltest.Bubble()).Config() },
		Controller: run,
		Steps: []explore.Step{
			explore.Create(job("short", new(int32(10))), job("kept", nil)), finish("short"), finish("kept"),
			explore.Patch[*batchv1.Job](key("kept"), client.MergePatch(`{"spec":{"ttlSecondsAfterFinished":10}}`)),
		},
		Max: 30,
	})
}
