package replicaset_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/controllers/podstest"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/explore"
)

func TestNoFaultChangesTheEnd(t *testing.T) {
	replicas := func(n string) explore.Step {
		return explore.Patch[*appsv1.ReplicaSet](key("web"), client.MergePatch(`{"spec":{"replicas":`+n+`}}`))
	}
	explore.Run(t, explore.Scenario{
		Server: func(t *testing.T) *rest.Config {
			env := evenkeeltest.Start(t, evenkeeltest.Bubble())
			podstest.Play(t, env)
			return env.Config()
		},
		Controller: run(controller.BaseOptions{}),
		Steps:      []explore.Step{explore.Create(orphan("old")), explore.Create(web("web", 2)), replicas("3"), explore.Delete[*corev1.Pod](key("old")), replicas("2")},
		Max:        60,
	})
}
