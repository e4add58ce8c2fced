package endpointslice_test

import (
	"context"
	"fmt"
	"log"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/controllers/endpointslice"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/events"
)

func ExampleNew() {
	s, err := evenkeeltest.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	base, err := controller.NewBase(s.Config(), controller.BaseOptions{})
	if err != nil {
		log.Fatal(err)
	}
	told := events.New(base, events.Options{Component: "endpoint-slice-controller"})
	if err := base.Add(endpointslice.New(base, told)); err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- base.Run(ctx) }()

	_, err = client.Of[*corev1.Service](base.Conn()).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	slices := client.Of[*discoveryv1.EndpointSlice](base.Conn()).In("default")
	for event, err := range slices.Watch(ctx, client.Label(discoveryv1.LabelServiceName, "web")) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(event.Type, event.Object.AddressType, len(event.Object.Endpoints), "endpoints")
		break
	}
	cancel()
	if err := <-ended; err != nil {
		log.Fatal(err)
	}
	// Output: ADDED IPv4 0 endpoints
}
