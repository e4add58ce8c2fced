package workqueue_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/even-keel/evenkeel/workqueue"
)

// TestConcurrent runs producers and workers at once. A key is never with two
// workers, and what was added is worked on after the add.
func TestConcurrent(t *testing.T) {
	queues := map[string]workqueue.Options[int]{
		"plain":    {},
		"groups":   {Group: func(k int) string { return string(rune('a' + k%5)) }},
		"debounce": {Debounce: time.Microsecond},
	}
	for name, opts := range queues {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { passKeys(t, opts) }) })
	}
}

func passKeys(t *testing.T, opts workqueue.Options[int]) {
	const keys, producers, workers, adds = 50, 8, 8, 5000
	q := workqueue.New(opts)
	var added, seen, busy [keys]atomic.Int64
	work := func(item workqueue.Item[int]) {
		k := item.Key
		if n := busy[k].Add(1); n != 1 {
			t.Errorf("key %d is with %d workers", k, n)
		}
		seen[k].Store(added[k].Load())
		busy[k].Add(-1)
	}
	var adding, working sync.WaitGroup
	for range workers / 2 {
		working.Go(func() { getAndDone(t.Context(), q, work) })
		working.Go(func() {
			for item := range q.Items(t.Context()) {
				work(item)
			}
		})
	}
	for range producers {
		adding.Go(func() {
			for range adds {
				k := rand.IntN(keys)
				added[k].Add(1)
				q.AddWith(k, workqueue.AddOptions{
					Priority: rand.IntN(3),
					After:    time.Duration(rand.IntN(3)) * time.Millisecond,
				})
			}
		})
	}
	adding.Wait()
	time.Sleep(time.Second) // of the bubble: until all that was delayed is done
	synctest.Wait()
	for k := range keys {
		if added[k].Load() != seen[k].Load() {
			t.Errorf("key %d: last seen at add %d of %d", k, seen[k].Load(), added[k].Load())
		}
	}
	if err := q.Drain(t.Context()); err != nil {
		t.Errorf("Drain: %v", err)
	}
	working.Wait()
}

func getAndDone(ctx context.Context, q *workqueue.Queue[int], work func(workqueue.Item[int])) {
	for {
		item, ok := q.Get(ctx)
		if !ok {
			return
		}
		work(item)
		q.Done(item)
	}
}

// TestConcurrentGetsThatGiveUp cancels workers while a key comes in: one that
// was woken and gives up leaves the key to another.
func TestConcurrentGetsThatGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(workqueue.Options[int]{})
		var got atomic.Int64
		count := func(workqueue.Item[int]) { got.Add(1) }
		go getAndDone(t.Context(), q, count)
		for i := range int64(2000) {
			ctx, cancel := context.WithCancel(t.Context())
			for range 3 {
				go getAndDone(ctx, q, count)
			}
			synctest.Wait()
			cancel() // the workers have yet to notice when the key comes
			q.Add(int(i))
			synctest.Wait()
			if got.Load() != i+1 {
				t.Fatalf("key %d was not handed out", i)
			}
		}
		q.ShutDown()
	})
}
