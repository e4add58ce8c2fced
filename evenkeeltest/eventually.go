package evenkeeltest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/even-keel/evenkeel/client"
)

// DefaultPatience is how long tests wait for what has to come true. The variable
// EVENKEEL_TEST_PATIENCE overrides it, for machines that are slow.
const DefaultPatience = 30 * time.Second

func patience() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("EVENKEEL_TEST_PATIENCE")); err == nil {
		return d
	}
	return DefaultPatience
}

var errNotThere = errors.New("there is no such object")

// Eventually waits until check has nothing to say about an object, and returns
// it. It looks again whenever the object changes, and fails the test with what
// check last said if that takes too long.
func Eventually[T client.Object](e *Env, key client.Key, check func(T) error, kind ...client.KindOption) T {
	e.t.Helper()
	var found T
	follow(e, func(all map[client.Key]T) error {
		obj, ok := all[key]
		if !ok {
			return errNotThere
		}
		found = obj
		return check(obj)
	}, fmt.Sprint(key), kind, client.Field("metadata.name", key.Name))
	return found
}

// EventuallyGone waits until an object is no more.
func EventuallyGone[T client.Object](e *Env, key client.Key, kind ...client.KindOption) {
	e.t.Helper()
	follow(e, func(all map[client.Key]T) error {
		if _, ok := all[key]; ok {
			return errors.New("it is still there")
		}
		return nil
	}, fmt.Sprint(key), kind, client.Field("metadata.name", key.Name))
}

// EventuallyAll waits until check has nothing to say about the objects of a kind,
// of all namespaces and in no order.
func EventuallyAll[T client.Object](e *Env, check func([]T) error, kind ...client.KindOption) {
	e.t.Helper()
	follow(e, func(all map[client.Key]T) error {
		objs := make([]T, 0, len(all))
		for _, obj := range all {
			objs = append(objs, obj)
		}
		return check(objs)
	}, "all", kind)
}

// follow fails the test if check is not content in time.
func follow[T client.Object](e *Env, check func(map[client.Key]T) error, what string, kind []client.KindOption, which ...client.ReadOption) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), patience())
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	watching.Go(func() {
		select {
		case <-e.failed:
			cancel()
		case <-ctx.Done():
		}
	})
	started := time.Now()
	if err := await(ctx, e.Conn(), check, kind, which...); err != nil {
		var none T
		e.t.Fatalf("evenkeeltest: waited %v for %T %s: %v", time.Since(started).Round(time.Millisecond), none, what, err)
	}
}

// await watches objects until check has nothing to say. When ctx ends, it returns
// what check last said.
func await[T client.Object](ctx context.Context, conn *client.Conn, check func(map[client.Key]T) error, kind []client.KindOption, which ...client.ReadOption) error {
	objects := client.Of[T](conn, kind...)
	last := errors.New("the server could not be asked")
	for ctx.Err() == nil {
		done, err := followOnce(ctx, objects, check, &last, which)
		if done {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			last = err
			select { // the server may be away for a moment
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return last
}

// followOnce reports whether check had nothing to say before the watch ended.
func followOnce[T client.Object](ctx context.Context, objects *client.Client[T], check func(map[client.Key]T) error, last *error, which []client.ReadOption) (bool, error) {
	all := map[client.Key]T{}
	complete := false
	for event, err := range objects.Watch(ctx, append(which, client.InitialEvents())...) {
		if err != nil {
			return false, err
		}
		switch event.Type {
		case client.Added, client.Modified:
			all[client.KeyOf(event.Object)] = event.Object
		case client.Deleted:
			delete(all, client.KeyOf(event.Object))
		case client.Bookmark:
			complete = complete || event.InitialEnd()
		}
		if !complete {
			continue
		}
		if *last = check(all); *last == nil {
			return true, nil
		}
	}
	return false, nil
}
