package manager_test

import (
	"context"
	"fmt"
	"log"

	corev1 "k8s.io/api/core/v1"

	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/manager"
)

// A program with one controller. Without a Config, the manager finds the cluster as
// kubectl does; main would give Run the context of Signals.
func Example() {
	server, err := evenkeeltest.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = server.Close() }()

	mgr, err := manager.New(manager.Options{Config: server.Config()})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	mgr.Add(controller.NewTyped("hello", func(_ context.Context, _ controller.Request, ns *corev1.Namespace) (controller.Result, error) {
		if ns != nil && ns.Name == "default" {
			fmt.Println("hello", ns.Name)
			stop()
		}
		return controller.Done, nil
	}))
	fmt.Println(mgr.Run(ctx))
	// Output:
	// hello default
	// <nil>
}
