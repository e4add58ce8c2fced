package controller_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/even-keel/evenkeel/controller"
)

func TestAFeedRunsAsLongAsItsController(t *testing.T) {
	s := stage(t, controller.BaseOptions{})
	asked, ended := make(requests), atomic.Bool{}
	c := controller.New("fed", asked.reconcile, controller.Feed("tides", func(ctx context.Context, tell func(controller.Notice)) {
		tell(controller.Notice{Key: controller.Key{Name: "high"}, Note: "it rises"})
		<-ctx.Done()
		tell(controller.Notice{Key: controller.Key{Name: "late"}}) // is not an error
		ended.Store(true)
	}))
	if err := s.base.Add(c); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Run(ctx)
	}()
	req := asked.next(t)
	cancel()
	<-done
	if got := req.Key.String() + ": " + req.Reasons(); got != "/high: event tides /high: it rises" {
		t.Errorf("the reconcile is of %q", got)
	}
	if !ended.Load() {
		t.Error("the controller has not waited for its feed")
	}
}
