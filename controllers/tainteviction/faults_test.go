package tainteviction

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controllers/podstest"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/explore"
)

// One pod does not bear a taint, one bears it for a minute, and one for longer than it
// lasts.
func TestNoFaultChangesTheEnd(t *testing.T) {
	pod := func(name string, bears ...corev1.Toleration) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		p.Spec = corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "c", Image: "c"}}, Tolerations: bears}
		return p
	}
	taints := func(taints string) explore.Step {
		return explore.Patch[*corev1.Node](client.Key{Name: "n1"}, client.MergePatch(`{"spec":{"taints":[`+taints+`]}}`))
	}
	explore.Run(t, explore.Scenario{
		Server:     func(t *testing.T) *rest.Config { return evenkeeltest.Start(t, evenkeeltest.Bubble()).Config() },
		Controller: run,
		Steps: []explore.Step{
			podstest.MakeNode("n1", "z1"), explore.Create(pod("a"), pod("b", toleration("example.com/mine", 60))),
			taints(repelling), taints(unreachable), taints(""), taints(hostile), explore.Create(pod("late")),
		},
		Quiet: 2 * time.Minute, // longer than pods wait that do not wait for good
		Max:   40,
	})
}
