package evenkeeltest_test

import (
	"context"
	"fmt"
	"log"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
)

func ExampleOpen() {
	server, err := evenkeeltest.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = server.Close() }()

	namespaces, err := client.New[*corev1.Namespace](server.Config())
	if err != nil {
		log.Fatal(err)
	}
	for ns, err := range namespaces.List(context.Background()) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(ns.Name)
	}
	// Output:
	// default
	// kube-node-lease
	// kube-public
	// kube-system
}

func ExampleServer_ConfigFor() {
	server, err := evenkeeltest.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = server.Close() }()

	namespaces, err := client.New[*corev1.Namespace](server.ConfigFor("jane", "developers"))
	if err != nil {
		log.Fatal(err)
	}
	_, err = namespaces.Get(context.Background(), client.Key{Name: "default"})
	fmt.Println(client.IsForbidden(err))
	// Output:
	// true
}

func ExampleCondition() {
	available := evenkeeltest.Condition[*appsv1.Deployment]("Available", "True")
	web := &appsv1.Deployment{}
	fmt.Println(available(web))
	web.Status.Conditions = []appsv1.DeploymentCondition{{Type: "Available", Status: "False", Reason: "TooFew", Message: "1 of 3"}}
	fmt.Println(available(web)) // what Eventually would say in the end
	web.Status.Conditions[0].Status = "True"
	fmt.Println(available(web))
	// Output:
	// it has no condition Available
	// Available is False, not True (TooFew: 1 of 3)
	// <nil>
}
