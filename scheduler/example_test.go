package scheduler_test

import (
	"context"
	"fmt"
	"log"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/events"
	"github.com/even-keel/evenkeel/scheduler"
)

func node(name, cpus string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpus), corev1.ResourcePods: resource.MustParse("110"),
	}}}
}

func pod(name, cpus string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "app:1", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpus)}}}}},
	}
}

func ExampleSchedule() {
	s := scheduler.NewSnapshot(1)
	s.SetNode(node("small", "1"))
	s.SetNode(node("large", "8"))
	s.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "closed"}, Spec: corev1.NodeSpec{Unschedulable: true}})

	fmt.Println(scheduler.Schedule(s, pod("web", "4")).Node)
	fmt.Println(scheduler.Schedule(s, pod("huge", "16")).Message())
	// Output:
	// large
	// 0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.
}

func ExampleSnapshot_Place() {
	s := scheduler.NewSnapshot(1)
	s.SetNode(node("n", "2"))
	first, second := pod("first", "1500m"), pod("second", "1500m")
	first.UID, second.UID = "1", "2"
	s.Place(first, scheduler.Schedule(s, first).Node)
	fmt.Println(scheduler.Schedule(s, second).Reasons)
	s.RemovePod(first.UID)
	fmt.Println(scheduler.Schedule(s, second).Node)
	// Output:
	// map[Insufficient cpu:1]
	// n
}

// A scheduler for the pods of a cluster. In a program with a manager, its Run is given
// to the manager's Go, and its recorder is the manager's.
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
	told := events.New(base, events.Options{Component: scheduler.Component})
	s := scheduler.New(base, told, scheduler.Options{})

	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{base.Run, told.Run, s.Run} {
		running.Go(func() { _ = run(ctx) })
	}
	defer running.Wait()
	defer cancel()

	ready, err := client.Of[*corev1.Node](base).Create(ctx, node("n", "2"))
	if err != nil {
		log.Fatal(err)
	}
	ready.Spec.Taints = nil // of which a new node has one until it is ready
	if _, err := client.Of[*corev1.Node](base).Update(ctx, ready); err != nil {
		log.Fatal(err)
	}
	pods := client.Of[*corev1.Pod](base)
	if _, err := pods.Create(ctx, pod("web", "1")); err != nil {
		log.Fatal(err)
	}
	for event, err := range pods.Watch(ctx, client.InitialEvents()) {
		if err != nil {
			log.Fatal(err)
		}
		if event.Type != client.Bookmark && event.Object.Spec.NodeName != "" {
			fmt.Println(event.Object.Name, "is on", event.Object.Spec.NodeName)
			return
		}
	}
	// Output: web is on n
}
