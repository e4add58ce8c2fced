package workqueue_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/even-keel/evenkeel/workqueue"
)

type (
	queue   = workqueue.Queue[string]
	item    = workqueue.Item[string]
	options = workqueue.Options[string]
	with    = workqueue.AddOptions
)

// get hands out the next key, which must be ready.
func get(t *testing.T, q *queue) item {
	t.Helper()
	if q.Len() == 0 {
		t.Fatal("no key is ready")
	}
	it, ok := q.Get(t.Context())
	if !ok {
		t.Fatal("Get returned false")
	}
	return it
}

// order takes all ready keys, without being done with them.
func order(t *testing.T, q *queue) string {
	t.Helper()
	var keys []string
	for q.Len() > 0 {
		keys = append(keys, get(t, q).Key)
	}
	return strings.Join(keys, " ")
}

func addAll(q *queue, keys string, add with) {
	for key := range strings.FieldsSeq(keys) {
		q.AddWith(key, add)
	}
}

// TestHandedOut does something to a queue, and then takes what is ready.
func TestHandedOut(t *testing.T) {
	byNamespace := options{Group: func(key string) string { return key[:1] }, Patience: 100}
	tests := map[string]struct {
		opts options
		do   func(t *testing.T, q *queue)
		want string
	}{
		"first in, first out": {
			do:   func(t *testing.T, q *queue) { addAll(q, "c a b", with{}) },
			want: "c a b",
		},
		"a key is in the queue once": {
			do:   func(t *testing.T, q *queue) { addAll(q, "a b a a b", with{}) },
			want: "a b",
		},
		"a key that a worker has is not handed out": {
			do: func(t *testing.T, q *queue) {
				q.Add("a")
				get(t, q)
				addAll(q, "a b", with{})
			},
			want: "b",
		},
		"a key added while a worker has it comes after Done": {
			do: func(t *testing.T, q *queue) {
				q.Add("a")
				a := get(t, q)
				addAll(q, "a b", with{})
				q.Done(a)
			},
			want: "b a",
		},
		"Done twice is Done once": {
			do: func(t *testing.T, q *queue) {
				q.Add("a")
				first := get(t, q)
				q.Done(first)
				q.Add("a")
				get(t, q)
				q.Add("a")
				q.Done(first)
			},
			want: "",
		},
		"Done of no item is nothing": {
			do:   func(t *testing.T, q *queue) { q.Done(item{Key: "a"}) },
			want: "",
		},
		"a delayed key waits": {
			do: func(t *testing.T, q *queue) {
				addAll(q, "a", with{After: time.Second})
				time.Sleep(time.Second - 1)
			},
			want: "",
		},
		"a delayed key comes when it is due": {
			do: func(t *testing.T, q *queue) {
				addAll(q, "b", with{After: 2 * time.Second})
				addAll(q, "a", with{After: time.Second})
				addAll(q, "c", with{After: 2 * time.Second})
				time.Sleep(2 * time.Second)
			},
			want: "a b c",
		},
		"an earlier delay wins": {
			do: func(t *testing.T, q *queue) {
				addAll(q, "a b", with{After: time.Hour})
				addAll(q, "b", with{After: time.Second})
				addAll(q, "b", with{After: time.Minute})
				time.Sleep(time.Second)
			},
			want: "b",
		},
		"no delay wins over a delay, whose time then brings nothing": {
			do: func(t *testing.T, q *queue) {
				addAll(q, "a", with{After: time.Second})
				q.Add("a")
				q.Done(get(t, q))
				time.Sleep(time.Hour)
			},
			want: "",
		},
		"a key due while a worker has it comes after Done": {
			do: func(t *testing.T, q *queue) {
				q.Add("a")
				a := get(t, q)
				addAll(q, "a", with{After: time.Second})
				time.Sleep(time.Minute)
				if q.Len() != 0 {
					t.Error("a key that a worker has is ready")
				}
				q.Done(a)
			},
			want: "a",
		},
		"a higher priority goes first": {
			do: func(t *testing.T, q *queue) {
				addAll(q, "low", with{Priority: -100})
				addAll(q, "a b", with{})
				addAll(q, "high", with{Priority: 7})
			},
			want: "high a b low",
		},
		"of two priorities of a key the higher wins": {
			do: func(t *testing.T, q *queue) {
				addAll(q, "a b c", with{})
				addAll(q, "c b", with{Priority: 1})
				addAll(q, "c", with{Priority: -1})
			},
			want: "c b a",
		},
		"a priority is for one turn": {
			do: func(t *testing.T, q *queue) {
				addAll(q, "a", with{Priority: 1})
				q.Done(get(t, q))
				addAll(q, "b a", with{})
			},
			want: "b a",
		},
		"nothing starves: the oldest is passed over so often and not more": {
			opts: options{Patience: 2},
			do: func(t *testing.T, q *queue) {
				addAll(q, "old older", with{})
				addAll(q, "1 2 3 4 5", with{Priority: 9})
			},
			want: "1 2 old 3 4 older 5",
		},
		"groups take turns, however much each has": {
			opts: byNamespace,
			do:   func(t *testing.T, q *queue) { addAll(q, "a1 a2 a3 a4 b1 b2 c1", with{}) },
			want: "a1 b1 c1 a2 b2 a3 a4",
		},
		"a group that had its turn goes behind the others": {
			opts: byNamespace,
			do: func(t *testing.T, q *queue) {
				addAll(q, "a1 a2 b1 b2", with{})
				get(t, q)
				addAll(q, "c1 a3", with{})
			},
			want: "b1 a2 c1 b2 a3",
		},
		"priority goes before turns": {
			opts: byNamespace,
			do: func(t *testing.T, q *queue) {
				addAll(q, "b1 c1", with{})
				addAll(q, "a1 a2 d1", with{Priority: 1})
			},
			want: "a1 d1 a2 b1 c1",
		},
		"debounce waits for quiet": {
			opts: options{Debounce: time.Second},
			do: func(t *testing.T, q *queue) {
				q.Add("a")
				q.Add("b")
				time.Sleep(900 * time.Millisecond)
				q.Add("a")
				time.Sleep(900 * time.Millisecond)
			},
			want: "b",
		},
		"debounce does not wait for ever": {
			opts: options{Debounce: time.Second, DebounceMax: 3 * time.Second},
			do: func(t *testing.T, q *queue) {
				for range 6 {
					q.Add("a")
					time.Sleep(500 * time.Millisecond)
				}
			},
			want: "a",
		},
		"debounce does not wait for more than ten times its quiet": {
			opts: options{Debounce: time.Second},
			do: func(t *testing.T, q *queue) {
				for range 20 {
					q.Add("a")
					time.Sleep(500 * time.Millisecond)
				}
			},
			want: "a",
		},
		"debounce leaves a delay alone": {
			opts: options{Debounce: time.Minute},
			do: func(t *testing.T, q *queue) {
				addAll(q, "a", with{After: time.Second})
				time.Sleep(time.Second)
			},
			want: "a",
		},
		"adds after a shutdown are ignored, what is ready is not": {
			do: func(t *testing.T, q *queue) {
				addAll(q, "a b", with{})
				addAll(q, "late", with{After: time.Second})
				q.ShutDown()
				addAll(q, "c", with{})
				addAll(q, "d", with{After: time.Second})
				time.Sleep(time.Minute)
			},
			want: "a b",
		},
		"a key added again before a shutdown comes after it": {
			do: func(t *testing.T, q *queue) {
				q.Add("a")
				a := get(t, q)
				q.Add("a")
				q.ShutDown()
				q.Done(a)
			},
			want: "a",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := workqueue.New(test.opts)
				defer q.ShutDown()
				test.do(t, q)
				synctest.Wait()
				if got := order(t, q); got != test.want {
					t.Errorf("handed out %q, want %q", got, test.want)
				}
			})
		})
	}
}

// TestItems leaves no key with a worker, however its loop ends.
func TestItems(t *testing.T) {
	tests := map[string]func(q *queue){
		"break": func(q *queue) {
			for range q.Items(context.Background()) {
				break
			}
		},
		"panic": func(q *queue) {
			defer func() { _ = recover() }()
			for range q.Items(context.Background()) {
				panic("reconciler")
			}
		},
		"context": func(q *queue) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			for range q.Items(ctx) {
				cancel()
			}
		},
	}
	for name, loop := range tests {
		t.Run(name, func(t *testing.T) {
			q := workqueue.New(options{})
			addAll(q, "a b", with{})
			loop(q)
			if s := q.Stats(); s.Running != 0 || s.Ready != 1 {
				t.Errorf("%d keys run and %d are ready, want 0 and 1", s.Running, s.Ready)
			}
		})
	}
}

// TestAddsWakeWorkers: as many as there are keys for.
func TestAddsWakeWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(options{})
		for range 5 {
			go func() {
				for range q.Items(t.Context()) {
					time.Sleep(time.Hour)
				}
			}()
		}
		synctest.Wait()
		for n, keys := range []string{"", "a", "b c", "", "d e f"} {
			addAll(q, keys, with{})
			synctest.Wait()
			if want := []int{0, 1, 3, 3, 5}[n]; q.Stats().Running != want {
				t.Errorf("after %q %d keys run, want %d", keys, q.Stats().Running, want)
			}
		}
		if err := q.Drain(t.Context()); err != nil {
			t.Errorf("Drain: %v", err)
		}
		synctest.Wait()
	})
}

// TestDoneWakesAWorker for a key that was added meanwhile.
func TestDoneWakesAWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(options{})
		q.Add("a")
		a := get(t, q)
		var other item
		go func() { other, _ = q.Get(t.Context()) }()
		q.Add("a")
		synctest.Wait()
		q.Done(a)
		synctest.Wait()
		if other.Key != "a" {
			t.Errorf("the other worker has %q", other.Key)
		}
	})
}

// TestNoAllocation of the way of a key that nobody gives a reason for.
func TestNoAllocation(t *testing.T) {
	tests := map[string]options{
		"plain":  {},
		"groups": {Group: func(key string) string { return key[:1] }},
	}
	for name, opts := range tests {
		t.Run(name, func(t *testing.T) {
			q := workqueue.New(opts)
			keys := strings.Fields("a1 a2 b1 b2 c1")
			n := testing.AllocsPerRun(100, func() {
				for _, key := range keys {
					q.AddWith(key, with{Priority: len(key)})
				}
				for range keys {
					it, _ := q.Get(t.Context())
					q.Done(it)
				}
			})
			if n != 0 {
				t.Errorf("%v allocations", n)
			}
		})
	}
}

// TestMemoryIsOfWhatIsKnown: a queue forgets keys that are done.
func TestMemoryIsOfWhatIsKnown(t *testing.T) {
	const keys = workqueue.MaxSpares + 1000
	q := workqueue.New(workqueue.Options[int]{})
	for i := range keys {
		q.Add(i)
	}
	for range keys {
		it, _ := q.Get(t.Context())
		q.Done(it)
	}
	if known, spare := workqueue.Known(q); known != 0 || spare != workqueue.MaxSpares {
		t.Errorf("an empty queue knows %d keys and has room for %d", known, spare)
	}
}
