package clientgo

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// TestLeaderElection has the second of two lead when the first lets go.
func TestLeaderElection(t *testing.T) {
	each(t, func(t *testing.T, c kubernetes.Interface, ns string) {
		leading := make(chan string, 4)
		run := func(ctx context.Context, id string) <-chan struct{} {
			lock := must(resourcelock.New(resourcelock.LeasesResourceLock, ns, "lock", c.CoreV1(), c.CoordinationV1(),
				resourcelock.ResourceLockConfig{Identity: id}))(t)
			elector := must(leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
				Lock: lock, LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 50 * time.Millisecond,
				ReleaseOnCancel: true, Name: "compat",
				Callbacks: leaderelection.LeaderCallbacks{
					OnStartedLeading: func(context.Context) { leading <- id },
					OnStoppedLeading: func() {},
				},
			}))(t)
			done := make(chan struct{})
			go func() { elector.Run(ctx); close(done) }()
			return done
		}
		wantLeader := func(id string) {
			t.Helper()
			select {
			case got := <-leading:
				if got != id {
					t.Errorf("%s leads, want %s", got, id)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("nobody leads")
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		firstDone := run(ctx, "first")
		wantLeader("first")
		ctx2, stop2 := context.WithCancel(t.Context())
		secondDone := run(ctx2, "second")
		stop()
		<-firstDone
		wantLeader("second")
		lease := must(c.CoordinationV1().Leases(ns).Get(t.Context(), "lock", metav1.GetOptions{}))(t)
		if *lease.Spec.HolderIdentity != "second" || *lease.Spec.LeaseTransitions != 1 {
			t.Errorf("the lease says %s after %d transitions", *lease.Spec.HolderIdentity, *lease.Spec.LeaseTransitions)
		}
		stop2()
		<-secondDone
	})
}
