package deployment_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/explore"
)

func TestNoFaultChangesTheEnd(t *testing.T) {
	patch := func(spec string) explore.Step {
		return explore.Patch[*appsv1.Deployment](key("web"), client.StrategicPatch(`{"spec":`+spec+`}`))
	}
	image := func(name string) explore.Step {
		return patch(`{"template":{"spec":{"containers":[{"name":"main","image":"` + name + `"}]}}}`)
	}
	explore.Run(t, explore.Scenario{
		Server: func(t *testing.T) *rest.Config {
			env := evenkeeltest.Start(t, evenkeeltest.Bubble())
			env.Run(kubelet)
			return env.Config()
		},
		Controller: controllers,
		Steps:      []explore.Step{explore.Create(web("web", 1)), image("web:2"), patch(`{"replicas":2}`)},
		Max:        30,
	})
}
