package job_test

import (
	"context"
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controllers/podstest"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/explore"
)

func TestNoFaultChangesTheEnd(t *testing.T) {
	explore.Run(t, explore.Scenario{
		Server: func(t *testing.T) *rest.Config {
			env := evenkeeltest.Start(t, evenkeeltest.Bubble())
			podstest.Play(t, env)
			return env.Config()
		},
		Controller: run,
		Steps:      []explore.Step{explore.Create(work(2, 3)), exitAll(corev1.PodFailed), exitAll(corev1.PodSucceeded), exitAll(corev1.PodSucceeded)},
		Always:     countedOnce,
		Max:        40,
	})
}

// exitAll has all pods end that run.
func exitAll(phase corev1.PodPhase) explore.Step {
	return func(ctx context.Context, conn *client.Conn) error {
		pods := client.Of[*corev1.Pod](conn)
		for p, err := range pods.List(ctx) {
			if err == nil && p.Status.Phase == corev1.PodRunning {
				_, err = pods.Status().Patch(ctx, client.KeyOf(p), client.MergePatch(fmt.Sprintf(`{"status":{"phase":%q}}`, phase)))
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// countedOnce is what the finalizers of pods are for.
func countedOnce(ctx context.Context, conn *client.Conn) error {
	j, err := client.Of[*batchv1.Job](conn).Get(ctx, key("work"))
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	if j.Status.Succeeded > 3 || j.Status.Failed > 2 {
		return fmt.Errorf("%d have succeeded and %d failed, which is too many", j.Status.Succeeded, j.Status.Failed)
	}
	return nil
}
