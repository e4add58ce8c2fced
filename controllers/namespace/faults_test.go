package namespace_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/explore"
)

func TestNoFaultChangesTheEnd(t *testing.T) {
	held := metav1.ObjectMeta{Namespace: "web", Name: "held", Finalizers: []string{"example.com/test"}}
	in := client.Key{Namespace: "web", Name: "held"}
	explore.Run(t, explore.Scenario{
		Server: func(t *testing.T) *rest.Config {
			env := evenkeeltest.Start(t, evenkeeltest.Bubble())
			env.Apply(widgets, content)
			return env.Config()
		},
		Controller: run,
		Steps: []explore.Step{
			explore.Create(&corev1.ConfigMap{ObjectMeta: held}), explore.Delete[*corev1.Namespace](client.Key{Name: "web"}),
			explore.Patch[*corev1.ConfigMap](in, client.MergePatch(`{"metadata":{"finalizers":null}}`)),
		},
		Max: 40,
	})
}
