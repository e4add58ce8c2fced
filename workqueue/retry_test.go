package workqueue_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/even-keel/evenkeel/workqueue"
)

// TestRetryDelays retries a key or several and notes when each becomes ready.
func TestRetryDelays(t *testing.T) {
	const ms = time.Millisecond
	tests := map[string]struct {
		opts options
		keys string
		want []time.Duration
	}{
		"doubles from 5 ms": {
			keys: "a a a a",
			want: []time.Duration{5 * ms, 10 * ms, 20 * ms, 40 * ms},
		},
		"stops growing at the limit": {
			opts: options{Backoff: workqueue.Exponential(time.Second, 3*time.Second)},
			keys: "a a a a",
			want: []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 3 * time.Second},
		},
		"each key has its own": {
			keys: "a a b",
			want: []time.Duration{5 * ms, 10 * ms, 5 * ms},
		},
		"the bucket waits longer once its burst is spent": {
			opts: options{Rate: 10, Burst: 2},
			keys: "a b c d",
			want: []time.Duration{5 * ms, 5 * ms, 90 * ms, 100 * ms},
		},
		"without a bucket only the backoff counts": {
			opts: options{Rate: -1, Burst: 1},
			keys: "a b c d",
			want: []time.Duration{5 * ms, 5 * ms, 5 * ms, 5 * ms},
		},
		"any policy": {
			opts: options{Backoff: func(n int) time.Duration { return time.Duration(n) * time.Hour }},
			keys: "a a",
			want: []time.Duration{time.Hour, 2 * time.Hour},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := workqueue.New(test.opts)
				defer q.ShutDown()
				var got []time.Duration
				for key := range strings.FieldsSeq(test.keys) {
					got = append(got, retryDelay(t, q, key))
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("delays (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// retryDelay retries a key and waits until it is handed out.
func retryDelay(t *testing.T, q *queue, key string) time.Duration {
	t.Helper()
	start := time.Now()
	if err := q.Retry(key); err != nil {
		t.Fatal(err)
	}
	it, ok := q.Get(t.Context())
	if !ok || it.Key != key {
		t.Fatalf("Get = %v, %v", it, ok)
	}
	q.Done(it)
	return time.Since(start)
}

func TestExponentialDoesNotOverflow(t *testing.T) {
	backoff := workqueue.Exponential(5*time.Millisecond, 1000*time.Second)
	for _, n := range []int{19, 64, 2000} {
		if got := backoff(n); got != 1000*time.Second {
			t.Errorf("backoff before retry %d is %v", n, got)
		}
	}
}

func TestRetryCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(options{MaxRetries: 2})
		for n := range 2 {
			retryDelay(t, q, "a")
			if got := q.NumRequeues("a"); got != n+1 {
				t.Errorf("after %d retries NumRequeues is %d", n+1, got)
			}
		}
		if err := q.Retry("a"); !errors.Is(err, workqueue.ErrRetryLimit) {
			t.Errorf("third Retry: %v", err)
		}
		if n, dropped := q.NumRequeues("a"), q.Stats().Dropped; n != 0 || dropped != 1 {
			t.Errorf("dropped key: NumRequeues %d, Dropped %d", n, dropped)
		}
		retryDelay(t, q, "a")
		q.Forget("a")
		if d := retryDelay(t, q, "a"); d != workqueue.DefaultBaseDelay {
			t.Errorf("a forgotten key is retried after %v", d)
		}
		q.ShutDown()
		if err := q.Retry("b"); !errors.Is(err, workqueue.ErrShutDown) {
			t.Errorf("Retry after shutdown: %v", err)
		}
		if n := q.NumRequeues("b"); n != 0 {
			t.Errorf("after shutdown %d retries were counted", n)
		}
	})
}

func TestRetryKeepsThePriorityOfTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(options{})
		defer q.ShutDown()
		addAll(q, "a", with{Priority: 3})
		a := get(t, q)
		if err := q.Retry("a"); err != nil {
			t.Fatal(err)
		}
		q.Done(a)
		time.Sleep(time.Second)
		synctest.Wait()
		again := get(t, q)
		if again.Priority != 3 || again.Retries != 1 {
			t.Errorf("retried with priority %d, as retry %d", again.Priority, again.Retries)
		}
		want := []workqueue.Cause{{Reason: workqueue.Retry, Count: 1}}
		if diff := cmp.Diff(want, again.Causes); diff != "" {
			t.Errorf("causes (-want +got):\n%s", diff)
		}
	})
}
