package client_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
)

// An object with something to end is there until it has, or its time is over.
func ExampleGrace() {
	ctx := context.Background()
	conn, ns := example()
	pods := client.Of[*corev1.Pod](conn).In(ns)
	web, err := pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := pods.Delete(ctx, client.KeyOf(web), client.Grace(90*time.Second)); err != nil {
		log.Fatal(err)
	}
	web, err = pods.Get(ctx, client.KeyOf(web))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("it has", *web.DeletionGracePeriodSeconds, "seconds")

	if err := pods.Delete(ctx, client.KeyOf(web), client.Grace(0)); err != nil {
		log.Fatal(err)
	}
	_, err = pods.Get(ctx, client.KeyOf(web))
	fmt.Println("it is gone:", client.IsNotFound(err))
	// Output:
	// it has 90 seconds
	// it is gone: true
}

// The garbage collector deletes what the object owns before the object itself.
func ExamplePropagation() {
	ctx := context.Background()
	conn, ns := example()
	deployments := client.Of[*appsv1.Deployment](conn).In(ns)
	web, err := deployments.Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
			},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := deployments.Delete(ctx, client.KeyOf(web), client.Propagation(metav1.DeletePropagationForeground)); err != nil {
		log.Fatal(err)
	}
	web, err = deployments.Get(ctx, client.KeyOf(web))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(web.Finalizers, web.DeletionTimestamp != nil)
	// Output: [foregroundDeletion] true
}

// What is read is at least as new as what was written.
func ExampleNotOlderThan() {
	ctx, maps := colors()
	mauve, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "mauve"}})
	if err != nil {
		log.Fatal(err)
	}
	for m, err := range maps.List(ctx, client.NotOlderThan(mauve.ResourceVersion), client.Field("metadata.name", "mauve")) {
		fmt.Println(m.Name, err)
	}
	// Output: mauve <nil>
}

// A program that would rather fail than wait gives up at once.
func ExampleRetries() {
	maps, done := answering(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, client.Retries(0))
	defer done()
	_, err := maps.Get(context.Background(), client.Key{Name: "red"})
	fmt.Println(client.IsTooManyRequests(err))
	// Output: true
}

func ExampleLogger() {
	bare := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: bare}))
	conn, err := client.Connect(theServer.Config(), client.Logger(logger))
	if err != nil {
		log.Fatal(err)
	}
	_, ns := example()
	maps := client.Of[*corev1.ConfigMap](conn).In(ns)
	red, err := maps.Create(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "red"}})
	if err != nil {
		log.Fatal(err)
	}
	// The server says what it thinks of a field that the kind does not have.
	if _, err := maps.Patch(context.Background(), client.KeyOf(red), client.MergePatch(`{"dta":{"hex":"f00"}}`)); err != nil {
		log.Fatal(err)
	}
	// Output: level=WARN msg="the API server warns" warning="unknown field \"dta\""
}
