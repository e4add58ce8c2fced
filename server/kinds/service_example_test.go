package kinds_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/even-keel/evenkeel/server/kinds"
)

// A server hands out an address and a node port, and takes the port back when
// the service no longer wants one.
func ExampleAllocateService() {
	pool := kinds.ServicePool{
		Family: corev1.IPv4Protocol,
		IP:     func(string) (string, error) { return "10.0.0.10", nil },
		Port:   func(int32) (int32, error) { return 30080, nil },
	}
	old := &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80}}}}
	taken, err := kinds.AllocateService(old, nil, pool)
	fmt.Println(old.Spec.ClusterIPs, old.Spec.Ports[0].NodePort, taken, err)

	svc := old.DeepCopy()
	svc.Spec.Type, svc.Spec.Ports[0].NodePort = corev1.ServiceTypeClusterIP, 0
	taken, err = kinds.AllocateService(svc, old, pool)
	fmt.Println(taken, err, kinds.ReleaseService(old, svc))
	// Output:
	// [10.0.0.10] 30080 {[10.0.0.10] [30080]} <nil>
	// {[] []} <nil> {[] [30080]}
}
