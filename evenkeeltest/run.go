package evenkeeltest

import (
	"context"
	"errors"
	"sync"

	"k8s.io/client-go/rest"
)

// Run runs a program of the test, such as a controller, with the administrator's
// configuration. The program is told to end by its context: when the test ends,
// before the server does, or when stop is called; both wait for it. If it ends
// with an error, other than that of being told to, the test fails, and nothing
// waits for what that program was to do.
func (e *Env) Run(program func(ctx context.Context, cfg *rest.Config) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(e.t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := program(ctx, e.Config()); err != nil && !(ctx.Err() != nil && errors.Is(err, context.Canceled)) {
			e.t.Errorf("evenkeeltest: what the test runs has failed: %v", err)
			e.fail()
		}
	})
	stop = func() {
		cancel()
		running.Wait()
	}
	e.t.Cleanup(stop)
	return stop
}
