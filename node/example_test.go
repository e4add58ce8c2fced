package node_test

import (
	"context"
	"fmt"
	"log"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/node"
	"github.com/even-keel/evenkeel/node/simulated"
)

// A node on which nothing runs, and a pod that does its work.
func ExampleNew() {
	server, err := evenkeeltest.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	base, err := controller.NewBase(server.Config(), controller.BaseOptions{})
	if err != nil {
		log.Fatal(err)
	}
	agent := node.New(base, nil, simulated.New(simulated.Options{}), node.Options{Nodes: []node.Node{{Name: "n1"}}})
	for _, c := range agent.Controllers() {
		if err := base.Add(c); err != nil {
			log.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = agent.Run(ctx) })
	running.Go(func() { _ = base.Run(ctx) })

	pods := client.Of[*corev1.Pod](base.Conn()).In("default")
	job := web("job", policy(corev1.RestartPolicyNever), annotated(simulated.RunFor, "10ms"), annotated(simulated.ExitCode, "3"))
	if _, err := pods.Create(ctx, job); err != nil {
		log.Fatal(err)
	}
	for e, err := range pods.Watch(ctx, client.InitialEvents()) {
		if err != nil {
			log.Fatal(err)
		}
		if s := e.Object.Status; s.Phase == corev1.PodFailed {
			end := s.ContainerStatuses[0].State.Terminated
			fmt.Println(s.Phase, end.Reason, end.ExitCode)
			break
		}
	}
	stop()
	running.Wait()
	// Output: Failed Error 3
}
