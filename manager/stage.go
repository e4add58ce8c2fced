package manager

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// stage is a group of goroutines that end together: when the context of the stage
// does, which the first error of one of them brings about.
type stage struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	work   sync.WaitGroup

	mu  sync.Mutex
	err error
}

// newStage returns a stage that ends when it is told to, or when the stage below it
// fails. It does not end with any other context.
func newStage(below *stage) *stage {
	if below == nil {
		return newStageIn(context.Background())
	}
	return newStageIn(below.ctx)
}

// newStageIn returns a stage that ends with a context, for its cause.
func newStageIn(ctx context.Context) *stage {
	s := &stage{}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	return s
}

// run runs something. That it ends because its context has is not an error.
func (s *stage) run(name string, f func(context.Context) error) {
	s.work.Go(func() {
		err := f(s.ctx)
		if err == nil || s.ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return
		}
		s.fail(fmt.Errorf("%s: %w", name, err))
	})
}

func (s *stage) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = errors.Join(s.err, err)
	s.cancel(nil)
}

// end ends the stage, waits for all that runs in it, and adds their errors.
func (s *stage) end(err *error) {
	s.cancel(nil)
	s.work.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	*err = errors.Join(*err, s.err)
}

// mergeCancel returns a context that ends with either of two, for the cause of the
// one that ended.
func mergeCancel(ctx, other context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}
