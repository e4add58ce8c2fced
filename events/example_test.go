package events_test

import (
	"context"
	"fmt"
	"log"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/events"
)

// connected starts a server and connects to it.
func connected() (conn *client.Conn, stop func()) {
	s, err := evenkeeltest.Open()
	if err != nil {
		log.Fatal(err)
	}
	if conn, err = client.Connect(s.Config()); err != nil {
		log.Fatal(err)
	}
	return conn, func() {
		if err := s.Close(); err != nil {
			log.Fatal(err)
		}
	}
}

// run runs a recorder; the function that it returns stops it, and waits until all
// is written.
func run(rec *events.Recorder) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- rec.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			log.Fatal(err)
		}
	}
}

func Example() {
	conn, stop := connected()
	defer stop()
	rec := events.New(conn, events.Options{Component: "foo-controller"})
	stopRecorder := run(rec)
	web := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	for range 7 {
		rec.Event(web, events.Warning, "FailedMount", "no volume %q", "data")
	}
	stopRecorder()

	for e, err := range client.Of[*corev1.Event](conn).List(context.Background()) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s %s %s %s (x%d)\n", e.Type, e.Reason, e.InvolvedObject.Name, e.Message, e.Series.Count)
	}
	// Output:
	// Warning FailedMount web no volume "data" (x7)
}

func ExampleRecorder_Record() {
	conn, stop := connected()
	defer stop()
	rec := events.New(conn, events.Options{Component: "foo-controller"})
	stopRecorder := run(rec)
	web := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	rec.Record(events.Event{
		Regarding: web,
		Related:   &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}},
		Reason:    "Scheduled", Action: "Binding", Note: "assigned to node-1",
	})
	stopRecorder()

	all, _, err := client.Of[*corev1.Event](conn).In("default").All(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range all {
		fmt.Println(e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Action, e.Related.Kind, e.Related.Name, "by", e.ReportingController)
	}
	// Output:
	// Pod web Binding Node node-1 by foo-controller
}

func ExampleRecorder_Stats() {
	conn, stop := connected()
	defer stop()
	rec := events.New(conn, events.Options{Component: "foo-controller", Similar: 2, Burst: 25, Refill: 5 * time.Minute})
	web := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	for i := range 100 {
		rec.Event(web, events.Normal, "Created", "created pod %d", i)
	}
	fmt.Println("before Run:", rec.Stats().Pending, "pending")
	run(rec)() // and stop it, which writes what is pending
	s := rec.Stats()
	fmt.Println(s.Told, "told in", s.Created, "objects,", s.Combined, "of them combined,", s.Dropped.Total(), "dropped")
	// Output:
	// before Run: 100 pending
	// 100 told in 3 objects, 98 of them combined, 0 dropped
}
