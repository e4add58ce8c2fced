package endpointslicemirroring

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
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"}}
	service.Spec.ClusterIP, service.Spec.Ports = "10.0.0.10", []corev1.ServicePort{{Port: 80}}
	written := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"}}
	written.Subsets = []corev1.EndpointSubset{{Addresses: at("10.0.0.1"), Ports: ports(80)}}
	selects := func(selector string) explore.Step {
		return explore.Patch[*corev1.Service](db, client.MergePatch(`{"spec":{"selector":`+selector+`}}`))
	}
	explore.Run(t, explore.Scenario{
		Server:     func(t *testing.T) *rest.Config { return evenkeeltest.Start(t, evenkeeltest.Bubble()).Config() },
		Controller: run,
		Steps: []explore.Step{
			explore.Create(written), explore.Create(service),
			explore.Patch[*corev1.Endpoints](db, client.MergePatch(`{"subsets":[{"addresses":[{"ip":"10.0.0.2"}],"ports":[{"port":81}]}]}`)),
			selects(`{"app":"db"}`), selects("null"), explore.Delete[*corev1.Endpoints](db),
		},
		Max: 40,
	})
}
