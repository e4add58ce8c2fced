package workqueue_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/even-keel/evenkeel/workqueue"
)

// A worker that retries what fails, and gives up after two retries.
func Example() {
	q := workqueue.New(workqueue.Options[string]{MaxRetries: 2})
	reconcile := func(key string) error {
		if key == "default/broken" {
			return errors.New("no such image")
		}
		return nil
	}
	var workers sync.WaitGroup
	workers.Go(func() {
		for item := range q.Items(context.Background()) {
			err := reconcile(item.Key)
			switch {
			case err == nil:
				q.Forget(item.Key)
				fmt.Println(item.Key, "is done")
			case q.Retry(item.Key) != nil:
				fmt.Printf("%s: gave up after %d retries: %v\n", item.Key, item.Retries, err)
				q.ShutDown()
			}
		}
	})
	q.Add("default/web")
	q.Add("default/broken")
	workers.Wait()
	// Output:
	// default/web is done
	// default/broken: gave up after 2 retries: no such image
}

// Each namespace gets its turn, however much another has waiting.
func ExampleNew() {
	type key struct{ namespace, name string }
	q := workqueue.New(workqueue.Options[key]{
		Group: func(k key) string { return k.namespace },
	})
	for _, k := range []key{{"big", "1"}, {"big", "2"}, {"big", "3"}, {"small", "1"}} {
		q.Add(k)
	}
	q.ShutDown()
	for item := range q.Items(context.Background()) {
		fmt.Println(item.Key)
	}
	// Output:
	// {big 1}
	// {small 1}
	// {big 2}
	// {big 3}
}

func ExampleQueue_Add() {
	q := workqueue.New(workqueue.Options[string]{})
	q.Add("default/web", workqueue.Cause{
		Reason: workqueue.Event, Kind: "Pod", Object: "default/web-0", Old: "41", New: "42", Writer: "kubelet",
	})
	q.Add("default/web", workqueue.Cause{Reason: workqueue.Resync})
	item, _ := q.Get(context.Background())
	defer q.Done(item)
	for _, cause := range item.Causes {
		fmt.Println(item.Key, "because of", cause)
	}
	// Output:
	// default/web because of event Pod default/web-0 41->42 by kubelet
	// default/web because of resync
}

func ExampleQueue_AddWith() {
	q := workqueue.New(workqueue.Options[string]{})
	q.AddWith("found by the first list", workqueue.AddOptions{Priority: -100})
	q.AddWith("later", workqueue.AddOptions{After: time.Millisecond, Priority: -200})
	q.Add("just changed")
	for range 3 {
		item, _ := q.Get(context.Background())
		fmt.Println(item.Key)
		q.Done(item)
	}
	// Output:
	// just changed
	// found by the first list
	// later
}

func ExampleQueue_Get() {
	q := workqueue.New(workqueue.Options[string]{})
	q.Add("default/web")
	q.ShutDown()
	for {
		item, ok := q.Get(context.Background())
		if !ok {
			fmt.Println("nothing left")
			return
		}
		fmt.Println(item.Key)
		q.Done(item)
	}
	// Output:
	// default/web
	// nothing left
}

func ExampleQueue_Done() {
	q := workqueue.New(workqueue.Options[string]{})
	q.Add("default/web")
	item, _ := q.Get(context.Background())
	q.Add("default/web") // it changed while we look at it
	fmt.Println("ready before Done:", q.Len())
	q.Done(item)
	fmt.Println("ready after Done:", q.Len())
	// Output:
	// ready before Done: 0
	// ready after Done: 1
}

func ExampleQueue_Items() {
	q := workqueue.New(workqueue.Options[int]{})
	for i := range 3 {
		q.Add(i)
	}
	q.ShutDown()
	for item := range q.Items(context.Background()) {
		fmt.Println(item.Key)
	}
	// Output:
	// 0
	// 1
	// 2
}

func ExampleQueue_Retry() {
	q := workqueue.New(workqueue.Options[string]{MaxRetries: 1})
	fmt.Println(q.Retry("default/web", workqueue.Cause{Reason: workqueue.Retry, Note: "connection refused"}))
	fmt.Println(q.Retry("default/web"))
	item, _ := q.Get(context.Background())
	fmt.Println(item.Causes)
	// Output:
	// <nil>
	// retry limit reached
	// [retry: connection refused]
}

func ExampleQueue_Forget() {
	q := workqueue.New(workqueue.Options[string]{})
	_ = q.Retry("default/web")
	_ = q.Retry("default/web")
	fmt.Println(q.NumRequeues("default/web"))
	q.Forget("default/web")
	fmt.Println(q.NumRequeues("default/web"))
	// Output:
	// 2
	// 0
}

func ExampleQueue_NumRequeues() {
	q := workqueue.New(workqueue.Options[string]{})
	_ = q.Retry("default/web")
	fmt.Println(q.NumRequeues("default/web"), q.NumRequeues("default/other"))
	// Output: 1 0
}

func ExampleQueue_Len() {
	q := workqueue.New(workqueue.Options[string]{})
	q.Add("a")
	q.Add("a")
	q.AddWith("b", workqueue.AddOptions{After: time.Hour})
	fmt.Println(q.Len())
	// Output: 1
}

func ExampleQueue_ShutDown() {
	q := workqueue.New(workqueue.Options[string]{})
	q.Add("before")
	q.ShutDown()
	q.Add("after")
	fmt.Println(q.ShuttingDown())
	for item := range q.Items(context.Background()) {
		fmt.Println(item.Key)
	}
	// Output:
	// true
	// before
}

func ExampleQueue_ShuttingDown() {
	q := workqueue.New(workqueue.Options[string]{})
	fmt.Println(q.ShuttingDown())
	q.ShutDown()
	fmt.Println(q.ShuttingDown())
	// Output:
	// false
	// true
}

func ExampleQueue_Drain() {
	q := workqueue.New(workqueue.Options[string]{})
	q.Add("default/web")
	go func() {
		for item := range q.Items(context.Background()) {
			fmt.Println(item.Key, "is done")
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	fmt.Println("drained:", q.Drain(ctx))
	// Output:
	// default/web is done
	// drained: <nil>
}

func ExampleQueue_Stats() {
	q := workqueue.New(workqueue.Options[string]{})
	q.Add("a")
	q.Add("b")
	q.AddWith("c", workqueue.AddOptions{After: time.Hour})
	item, _ := q.Get(context.Background())
	defer q.Done(item)
	s := q.Stats()
	fmt.Println(s.Ready, "ready,", s.Running, "running,", s.Delayed, "delayed,", s.Adds, "added")
	// Output: 1 ready, 1 running, 1 delayed, 2 added
}

func ExampleQueue_Snapshot() {
	q := workqueue.New(workqueue.Options[string]{})
	q.Add("default/web", workqueue.Cause{Reason: workqueue.Manual})
	q.AddWith("default/db", workqueue.AddOptions{After: time.Hour})
	for _, s := range q.Snapshot(100) {
		fmt.Println(s.Key, s.Ready, s.Causes)
	}
	// Output:
	// default/web true [manual]
	// default/db false []
}

func ExampleHistogram_Buckets() {
	q := workqueue.New(workqueue.Options[string]{})
	q.Add("a")
	item, _ := q.Get(context.Background())
	q.Done(item)
	for bound, n := range q.Stats().WorkTime.Buckets() {
		if bound == time.Second {
			fmt.Println(n, "took not more than", bound)
		}
	}
	// Output: 1 took not more than 1s
}

func ExampleExponential() {
	backoff := workqueue.Exponential(time.Second, 5*time.Second)
	for n := range 4 {
		fmt.Println(backoff(n + 1))
	}
	// Output:
	// 1s
	// 2s
	// 4s
	// 5s
}

func ExampleCause_String() {
	fmt.Println(workqueue.Cause{
		Reason: workqueue.Event, Kind: "Pod", Object: "default/web-0", Old: "41", New: "44", Writer: "kubelet", Count: 3,
	})
	// Output: event Pod default/web-0 41->44 by kubelet (3 times)
}
