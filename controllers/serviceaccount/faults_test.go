package serviceaccount

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
	explore.Run(t, explore.Scenario{
		Server:     func(t *testing.T) *rest.Config { return evenkeeltest.Start(t, evenkeeltest.Bubble()).Config() },
		Controller: run,
		Steps: []explore.Step{
			explore.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "web"}}),
			explore.Delete[*corev1.ServiceAccount](client.Key{Namespace: "web", Name: "default"}),
		},
		Max: 30,
	})
}
