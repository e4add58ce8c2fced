package deployment_test

import (
	"context"
	"fmt"
	"log"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/controllers/deployment"
	"github.com/even-keel/evenkeel/controllers/replicaset"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/events"
)

// The controllers of Deployments and ReplicaSets make pods of a Deployment.
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
	told := events.New(base, events.Options{Component: "deployment-controller"})
	for _, c := range []*controller.Controller{deployment.New(base, told), replicaset.New(base, told)} {
		if err := base.Add(c); err != nil {
			log.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- base.Run(ctx) }()

	deployments := client.Of[*appsv1.Deployment](base.Conn()).In("default")
	if _, err := deployments.Create(ctx, web("web", 3)); err != nil {
		log.Fatal(err)
	}
	for event, err := range deployments.Watch(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		if event.Object.Status.UpdatedReplicas == 3 {
			fmt.Println("3 pods, revision", event.Object.Annotations["deployment.kubernetes.io/revision"])
			break
		}
	}
	cancel()
	if err := <-ended; err != nil {
		log.Fatal(err)
	}
	// Output: 3 pods, revision 1
}
