package leader_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/leader"
)

// connected starts a server and connects to it.
func connected() (conn *client.Conn, stop func()) {
	s, err := evenkeeltest.Open()
	if err != nil {
		log.Fatal(err)
	}
	if conn, err = connect(s, leader.Transport); err != nil {
		log.Fatal(err)
	}
	return conn, func() {
		if err := s.Close(); err != nil {
			log.Fatal(err)
		}
	}
}

var quiet = slog.New(slog.DiscardHandler)

func Example() {
	conn, stop := connected()
	defer stop()
	elector := leader.New(conn, leader.Options{Namespace: "default", Name: "foo-controller", Identity: "pod-1", Logger: quiet})

	// What may run everywhere, such as informers, runs outside: a standby is warm.
	err := elector.Run(context.Background(), func(ctx context.Context) error {
		fmt.Println(elector.Identity(), "leads:", elector.Leading())
		return nil // mostly: <-ctx.Done()
	})
	fmt.Println(err)
	// Output:
	// pod-1 leads: true
	// <nil>
}

func ExampleElector_Run() {
	conn, stop := connected()
	defer stop()
	elector := leader.New(conn, leader.Options{
		Namespace: "default", Name: "foo-controller", LeaseDuration: time.Second, Logger: quiet,
	})
	leases := client.Of[*coordinationv1.Lease](conn).In("default")
	err := elector.Run(context.Background(), func(ctx context.Context) error {
		if err := leases.Delete(ctx, client.Key{Name: "foo-controller"}); err != nil {
			return err
		}
		<-ctx.Done() // before anybody else can lead
		return ctx.Err()
	})
	fmt.Println(errors.Is(err, leader.ErrLost))
	// Output:
	// true
}

func ExampleElector_Status() {
	conn, stop := connected()
	defer stop()
	elector := leader.New(conn, leader.Options{Namespace: "default", Name: "foo-controller", Identity: "pod-1", Logger: quiet})
	_ = elector.Run(context.Background(), func(context.Context) error {
		s := elector.Status()
		fmt.Println(s.Leader, s.Leading, s.Since.IsZero(), s.Transitions)
		fmt.Println("leader_election_master_status", elector.MasterStatus())
		return nil
	})
	fmt.Println("leader_election_master_status", elector.MasterStatus())
	// Output:
	// pod-1 true false 0
	// leader_election_master_status 1
	// leader_election_master_status 0
}

func ExampleFence() {
	fence := leader.Fence{Namespace: "default", Name: "foo-controller", UID: "5e0c", Transitions: 3, Holder: "pod-1"}
	fmt.Printf("%s: %s\n", leader.FenceHeader, fence)
	ctx := fence.Context(context.Background())
	carried, ok := leader.FenceOf(ctx)
	fmt.Println(carried.Holder, ok)
	// Output:
	// Evenkeel-Fence: default/foo-controller/5e0c/3/pod-1
	// pod-1 true
}
