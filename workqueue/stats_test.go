package workqueue_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/even-keel/evenkeel/workqueue"
)

func TestHistogram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(options{})
		for _, wait := range []time.Duration{0, 100 * time.Nanosecond, 101 * time.Nanosecond, time.Hour} {
			q.Add("a")
			a := get(t, q)
			time.Sleep(wait)
			q.Done(a)
		}
		work := q.Stats().WorkTime
		var bounds []time.Duration
		var counts []uint64
		for bound, n := range work.Buckets() {
			bounds, counts = append(bounds, bound), append(counts, n)
		}
		if want := []uint64{1, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3}; !slices.Equal(counts, want) {
			t.Errorf("buckets are %v, want %v", counts, want)
		}
		if bounds[0] != 10 || bounds[11] != 1000*time.Second {
			t.Errorf("bounds are %v", bounds)
		}
		if work.Count != 4 || work.Sum != time.Hour+201 {
			t.Errorf("count %d, sum %v", work.Count, work.Sum)
		}
	})
}

// TestWorkBeginsWhenItIsHandedOut, not when the worker began to wait for it.
func TestWorkBeginsWhenItIsHandedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New(options{})
		time.AfterFunc(time.Hour, func() { q.Add("a") })
		it, _ := q.Get(t.Context())
		time.Sleep(time.Second)
		if s := q.Stats(); it.Waited != 0 || s.LongestRunning != time.Second || s.Unfinished != time.Second {
			t.Errorf("waited %v, runs for %v, in all %v", it.Waited, s.LongestRunning, s.Unfinished)
		}
	})
}

func TestSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		q := workqueue.New(options{Group: func(key string) string { return key[:1] }})
		defer q.ShutDown()
		q.Add("running")
		get(t, q)
		time.Sleep(time.Second)
		addAll(q, "ready", with{Priority: 2, Causes: []workqueue.Cause{{Reason: workqueue.Manual}}})
		addAll(q, "delayed running", with{After: time.Minute})
		want := []workqueue.Status[string]{
			{Key: "running", Group: "r", Running: true, Started: start, Due: start.Add(61 * time.Second)},
			{Key: "ready", Group: "r", Ready: true, Queued: start.Add(time.Second), Priority: 2,
				Causes: []workqueue.Cause{{Reason: workqueue.Manual, Count: 1}}},
			{Key: "delayed", Group: "d", Due: start.Add(61 * time.Second)},
		}
		all := q.Snapshot(10)
		q.Add("ready", workqueue.Cause{Reason: workqueue.Manual}) // too late for it
		if diff := cmp.Diff(want, all); diff != "" {
			t.Errorf("snapshot (-want +got):\n%s", diff)
		}
		for limit := range len(want) {
			if got := q.Snapshot(limit); len(got) != limit {
				t.Errorf("a snapshot of %d keys has %d", limit, len(got))
			}
		}
	})
}
