package workqueue_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/even-keel/evenkeel/workqueue"
)

func TestGetEnds(t *testing.T) {
	tests := map[string]func(q *queue, cancel func()){
		"when its context does":       func(q *queue, cancel func()) { cancel() },
		"when the queue is shut down": func(q *queue, cancel func()) { q.ShutDown() },
		"when the queue is drained":   func(q *queue, cancel func()) { _ = q.Drain(context.Background()) },
	}
	for name, end := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := workqueue.New(options{})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var ended atomic.Int64
				for range 3 {
					go func() {
						if _, ok := q.Get(ctx); !ok {
							ended.Add(1)
						}
					}()
				}
				synctest.Wait()
				if n := ended.Load(); n != 0 {
					t.Errorf("%d Gets returned before the end", n)
				}
				end(q, cancel)
				synctest.Wait()
				if n := ended.Load(); n != 3 {
					t.Errorf("%d of 3 Gets returned", n)
				}
			})
		})
	}
}

// TestGetPrefersTheEndOfItsContext so that a worker that is to stop does.
func TestGetPrefersTheEndOfItsContext(t *testing.T) {
	q := workqueue.New(options{})
	q.Add("a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if it, ok := q.Get(ctx); ok {
		t.Errorf("Get = %v", it)
	}
}

func TestDrain(t *testing.T) {
	tests := map[string]struct {
		before, during func(t *testing.T, q *queue)
		timeout        time.Duration
		want           error
		took           time.Duration
	}{
		"an empty queue is drained": {},
		"waits for what is ready and with workers": {
			before: func(t *testing.T, q *queue) {
				addAll(q, "a b", with{})
				a := get(t, q)
				q.Add("a")
				go func() {
					time.Sleep(time.Second)
					q.Done(a)
					for it := range q.Items(t.Context()) {
						time.Sleep(time.Second)
						_ = it
					}
				}()
			},
			took: 3 * time.Second,
		},
		"does not wait for what is delayed": {
			before: func(t *testing.T, q *queue) { addAll(q, "a", with{After: time.Hour}) },
		},
		"ends with its context": {
			before:  func(t *testing.T, q *queue) { q.Add("a") },
			timeout: time.Minute,
			want:    context.DeadlineExceeded,
			took:    time.Minute,
		},
		"ends with a shutdown": {
			before: func(t *testing.T, q *queue) { q.Add("a") },
			during: func(t *testing.T, q *queue) { q.ShutDown() },
			want:   workqueue.ErrShutDown,
			took:   time.Second,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := workqueue.New(options{})
				if test.before != nil {
					test.before(t, q)
				}
				if test.during != nil {
					time.AfterFunc(time.Second, func() { test.during(t, q) })
				}
				ctx := t.Context()
				if test.timeout > 0 {
					var cancel func()
					ctx, cancel = context.WithTimeout(ctx, test.timeout)
					defer cancel()
				}
				start := time.Now()
				if err := q.Drain(ctx); !errors.Is(err, test.want) {
					t.Errorf("Drain: %v, want %v", err, test.want)
				}
				if took := time.Since(start); took != test.took {
					t.Errorf("Drain took %v, want %v", took, test.took)
				}
				if !q.ShuttingDown() {
					t.Error("a drained queue is not shutting down")
				}
			})
		})
	}
}

// TestShutDownForgetsWhatIsDelayed, also of a key that a worker has.
func TestShutDownForgetsWhatIsDelayed(t *testing.T) {
	q := workqueue.New(options{})
	q.Add("running")
	it := get(t, q)
	addAll(q, "running delayed", with{After: time.Hour, Causes: []workqueue.Cause{{Reason: workqueue.Requeue}}})
	q.ShutDown()
	left := q.Snapshot(10)
	if len(left) != 1 || !left[0].Running || !left[0].Due.IsZero() || left[0].Causes != nil {
		t.Errorf("after shutdown there is %+v", left)
	}
	q.Done(it)
	if known, _ := workqueue.Known(q); known != 0 {
		t.Errorf("a queue that was shut down knows %d keys", known)
	}
}
