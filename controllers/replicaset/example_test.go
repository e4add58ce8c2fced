package replicaset_test

import (
	"context"
	"fmt"
	"log"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/controllers/replicaset"
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
	told := events.New(base, events.Options{Component: "replicaset-controller"})
	if err := base.Add(replicaset.New(base, told)); err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- base.Run(ctx) }()

	sets := client.Of[*appsv1.ReplicaSet](base.Conn()).In("default")
	if _, err := sets.Create(ctx, web("web", 3)); err != nil {
		log.Fatal(err)
	}
	for event, err := range sets.Watch(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		if n := event.Object.Status.Replicas; n == 3 {
			fmt.Println(n, "pods")
			break
		}
	}
	cancel()
	if err := <-ended; err != nil {
		log.Fatal(err)
	}
	// Output: 3 pods
}
