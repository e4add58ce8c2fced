package endpointslice

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
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
			explore.Create(service()), podstest.MakeNode("n1", "z1"), podstest.MakePod("a", "web", "n1", "10.0.0.1"),
			podstest.MakePod("b", "web", "n1", "10.0.0.2"), podstest.MakeReady("a", false),
			explore.Patch[*corev1.Node](client.Key{Name: "n1"}, client.MergePatch(`{"metadata":{"labels":{"topology.kubernetes.io/zone":"z2"}}}`)),
			explore.Delete[*corev1.Pod](key("b"), client.Grace(0)), change(`{"metadata":{"labels":{"team":"b"}}}`), change(`{"spec":{"selector":null}}`),
		},
		Keep: withoutTrigger,
		Max:  40,
	})
}

func service() *corev1.Service {
	web := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	web.Spec.ClusterIP, web.Spec.Selector = "10.0.0.10", map[string]string{"app": "web"}
	web.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromString("http")}}
	return web
}

// withoutTrigger leaves out when it began what changes endpoints: that is in memory.
func withoutTrigger(o *unstructured.Unstructured) bool {
	all := o.GetAnnotations()
	delete(all, corev1.EndpointsLastChangeTriggerTime)
	o.SetAnnotations(all)
	return true
}

// When it began what changes endpoints is told even if the first write of it is refused.
func TestConflictsDoNotHideTheTrigger(t *testing.T) {
	explore.Run(t, explore.Scenario{
		Server:     func(t *testing.T) *rest.Config { return evenkeeltest.Start(t, evenkeeltest.Bubble()).Config() },
		Controller: run,
		Steps: []explore.Step{
			explore.Create(service()), podstest.MakeNode("n1", "z1"), podstest.MakePod("a", "web", "n1", "10.0.0.1"), podstest.MakeReady("a", false),
		},
		Faults: []explore.Fault{explore.Conflict},
	})
}
