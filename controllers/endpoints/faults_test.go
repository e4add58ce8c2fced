package endpoints

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controllers/podstest"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/explore"
)

func TestNoFaultChangesTheEnd(t *testing.T) {
	change := func(patch string) explore.Step {
		return explore.Patch[*corev1.Service](key("web"), client.MergePatch(patch))
	}
	explore.Run(t, explore.Scenario{
		Server:     func(t *testing.T) *rest.Config { return evenkeeltest.Start(t, evenkeeltest.Bubble()).Config() },
		Controller: run,
		Steps: []explore.Step{
			explore.Create(podstest.Service()), podstest.MakePod("a", "web", "n1", "10.0.0.1"), podstest.MakePod("b", "web", "n1", "10.0.0.2"),
			podstest.MakeReady("a", false), explore.Delete[*corev1.Pod](key("b"), client.Grace(0)), change(`{"metadata":{"labels":{"team":"b"}}}`),
			explore.Delete[*corev1.Endpoints](key("web")), explore.Delete[*corev1.Service](key("web")),
		},
		Keep: podstest.WithoutTrigger,
		Max:  40,
	})
}

// When it began what changes endpoints is told even if the first write of it is refused.
func TestConflictsDoNotHideTheTrigger(t *testing.T) {
	explore.Run(t, explore.Scenario{
		Server:     func(t *testing.T) *rest.Config { return evenkeeltest.Start(t, evenkeeltest.Bubble()).Config() },
		Controller: run,
		Steps:      []explore.Step{explore.Create(podstest.Service()), podstest.MakePod("a", "web", "n1", "10.0.0.1"), podstest.MakeReady("a", false)},
		Faults:     []explore.Fault{explore.Conflict},
	})
}
