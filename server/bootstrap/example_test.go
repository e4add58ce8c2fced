package bootstrap_test

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"github.com/even-keel/evenkeel/server/bootstrap"
)

// The objects of a new cluster depend on where its server is.
func ExampleObjects() {
	objects := bootstrap.Objects(bootstrap.Options{
		ServiceRange:     netip.MustParsePrefix("10.96.0.0/12"),
		AdvertiseAddress: netip.MustParseAddr("192.0.2.7"),
	})
	for _, o := range objects {
		if service, ok := o.(*corev1.Service); ok {
			fmt.Println(service.Namespace, service.Name, service.Spec.ClusterIP)
		}
	}
	// Output: default kubernetes 10.96.0.1
}

// Namespaces that are made later are given the same as the first ones.
func ExampleForNamespace() {
	for _, o := range bootstrap.ForNamespace("shop", bootstrap.Options{RootCA: []byte("PEM")}) {
		fmt.Println(o.GetObjectKind().GroupVersionKind().Kind)
	}
	// Output:
	// ServiceAccount
	// ConfigMap
}
