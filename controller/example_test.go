package controller_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/informer"
)

// opened is a base on a server of its own.
func opened() (*controller.Base, func()) {
	s, err := evenkeeltest.Open()
	if err != nil {
		log.Fatal(err)
	}
	base, err := controller.NewBase(s.Config(), controller.BaseOptions{})
	if err != nil {
		log.Fatal(err)
	}
	return base, func() { _ = s.Close() }
}

// while runs a base as long as a function does.
func while(base *controller.Base, do func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- base.Run(ctx) }()
	do(ctx)
	cancel()
	if err := <-ended; err != nil {
		log.Fatal(err)
	}
}

// A controller that keeps a Secret for each ConfigMap of a namespace.
func Example() {
	base, closeServer := opened()
	defer closeServer()
	maps, secrets := client.Of[*corev1.ConfigMap](base), client.Of[*corev1.Secret](base)
	done := make(chan string)
	reconcile := func(ctx context.Context, req controller.Request) (controller.Result, error) {
		of, err := maps.Get(ctx, req.Key)
		if client.IsNotFound(err) {
			return controller.Done, nil // the secret goes with it
		}
		if err != nil {
			return controller.Done, err
		}
		want := secret(of.Name)
		made, outcome, err := controller.CreateOrUpdate(ctx, secrets, want, func(s *corev1.Secret) error {
			s.Data = map[string][]byte{"greeting": []byte(of.Data["greeting"])}
			return controller.SetController(base, of, s)
		})
		if err == nil && outcome == controller.Created {
			done <- string(made.Data["greeting"])
		}
		return controller.Done, err
	}
	c := controller.New("copier", reconcile,
		controller.For[*corev1.ConfigMap](controller.With(informer.InNamespace("default"), informer.Labels("copy=yes"))),
		controller.Owns[*corev1.Secret](),
		controller.Workers(2))
	if err := base.Add(c); err != nil {
		log.Fatal(err)
	}
	while(base, func(ctx context.Context) {
		m := configMap("hello", "greeting", "Ahoy")
		m.Labels = map[string]string{"copy": "yes"}
		if _, err := client.Of[*corev1.ConfigMap](base.Conn()).Create(ctx, m); err != nil {
			log.Fatal(err)
		}
		fmt.Println(<-done)
	})
	// Output: Ahoy
}

func ExampleNewTyped() {
	base, closeServer := opened()
	defer closeServer()
	seen := make(chan string, 10)
	c := controller.NewTyped("namespaces", func(_ context.Context, req controller.Request, ns *corev1.Namespace) (controller.Result, error) {
		if ns == nil {
			seen <- req.Key.Name + " is gone"
		} else if ns.Name == "default" {
			seen <- ns.Name + " is " + string(ns.Status.Phase)
		}
		return controller.Done, nil
	})
	if err := base.Add(c); err != nil {
		log.Fatal(err)
	}
	while(base, func(context.Context) { fmt.Println(<-seen) })
	// Output: default is Active
}

func ExampleTerminal() {
	err := controller.Terminal(fmt.Errorf("spec.size: %q is not a quantity", "big"))
	fmt.Println(err, errors.Is(err, controller.ErrTerminal))
	// Output: spec.size: "big" is not a quantity true
}

func ExampleWhere() {
	grown := controller.Where(func(old, now *corev1.ConfigMap) bool {
		return old != nil && now != nil && len(now.Data) > len(old.Data)
	})
	small, large := configMap("a"), configMap("a", "k", "v")
	fmt.Println(grown(controller.Change{Old: small, New: large}), grown(controller.Change{Old: large, New: small}), grown(controller.Change{New: large}))
	// Output: true false false
}

func ExampleSetCondition() {
	var status struct{ Conditions []metav1.Condition }
	foo := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	changed := controller.SetCondition(foo, &status.Conditions, "Ready", metav1.ConditionFalse, "Waiting", "%d of %d are ready", 1, 3)
	fmt.Println(changed, status.Conditions[0].Message, status.Conditions[0].ObservedGeneration)
	// Output: true 1 of 3 are ready 2
}

func ExampleRequeueAfter() {
	fmt.Println(controller.RequeueAfter(time.Minute), controller.Requeue, controller.Done)
	// Output: requeue_after requeue success
}

// Indexes are read as fields, by name.
func ExampleWith() {
	base, closeServer := opened()
	defer closeServer()
	ctx := context.Background()
	byGreeting := informer.Index("greeting", func(m *corev1.ConfigMap) []string { return []string{m.Data["greeting"]} })
	c := controller.New("maps", func(context.Context, controller.Request) (controller.Result, error) { return controller.Done, nil },
		controller.For[*corev1.ConfigMap](controller.With(byGreeting)))
	if err := base.Add(c); err != nil {
		log.Fatal(err)
	}
	while(base, func(context.Context) {
		maps := client.Of[*corev1.ConfigMap](base)
		for _, name := range []string{"a", "b"} {
			if _, err := maps.Create(ctx, configMap(name, "greeting", "Ahoy "+name)); err != nil {
				log.Fatal(err)
			}
		}
		for m, err := range maps.List(ctx, client.Field("greeting", "Ahoy b")) {
			fmt.Println(m.Name, err)
		}
	})
	// Output: b <nil>
}
