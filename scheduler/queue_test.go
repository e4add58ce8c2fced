package scheduler

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func queued(q *queue, now time.Time) (names []string) {
	for e := q.pop(now); e != nil; e = q.pop(now) {
		names = append(names, e.pod.Name)
	}
	return names
}

func TestQueueOrder(t *testing.T) {
	s, q, now := NewSnapshot(1), newQueue(time.Second, 10*time.Second), time.Unix(0, 0)
	for i, p := range []struct {
		name     string
		priority int32
	}{{"early", 0}, {"late", 0}, {"important", 5}, {"gone", 9}, {"unimportant", -1}} {
		q.set(s.inspect(newPod(p.name, priority(p.priority))), true, now.Add(time.Duration(i)))
	}
	q.remove("uid-gone")
	q.set(s.inspect(newPod("late", priority(0))), true, now.Add(time.Hour)) // a change does not cost its place
	if got, want := queued(q, now), []string{"important", "early", "late", "unimportant"}; !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// What may happen to a pod that was rejected for lack of resources, and when it comes
// again.
func TestQueueWaits(t *testing.T) {
	const atOnce = 1
	s := NewSnapshot(1)
	at := func(d time.Duration) time.Time { return time.Unix(0, 0).Add(d) }
	for name, test := range map[string]struct {
		do   func(q *queue, e *entry)
		when time.Duration // it comes again; 0 is not within a minute
	}{
		"nothing happens":           {func(q *queue, e *entry) { q.wait(e, at(0)) }, 0},
		"help":                      {func(q *queue, e *entry) { q.wait(e, at(0)); q.wake(podWent, at(0)) }, time.Second},
		"help after the pause":      {func(q *queue, e *entry) { q.wait(e, at(0)); q.wake(podWent, at(3*time.Second)) }, atOnce},
		"help while it is busy":     {func(q *queue, e *entry) { q.wake(podWent, at(0)); q.wait(e, at(0)) }, time.Second},
		"no help":                   {func(q *queue, e *entry) { q.wake(labelsMoved, at(0)); q.wait(e, at(0)); q.wake(labelsMoved, at(0)) }, 0},
		"its own change":            {func(q *queue, e *entry) { q.wait(e, at(0)); q.set(e.podInfo, true, at(0)) }, time.Second},
		"a change while it is busy": {func(q *queue, e *entry) { q.set(e.podInfo, true, at(0)); q.wait(e, at(0)) }, time.Second},
		"a change of its status":    {func(q *queue, e *entry) { q.wait(e, at(0)); q.set(e.podInfo, false, at(0)) }, 0},
		"an error":                  {func(q *queue, e *entry) { q.pause(e, at(0)) }, time.Second},
		"gone while it is busy":     {func(q *queue, e *entry) { q.remove(e.pod.UID); q.wait(e, at(0)); q.wake(all, at(0)) }, 0},
		"an error, and gone":        {func(q *queue, e *entry) { q.remove(e.pod.UID); q.pause(e, at(0)) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			q := newQueue(time.Second, 10*time.Second)
			q.set(s.inspect(newPod("p")), true, at(0))
			e := q.pop(at(0))
			q.fail(e, set(insufficient), at(0))
			test.do(q, e)
			var when time.Duration
			for d := time.Duration(0); d <= time.Minute && when == 0; d += time.Second {
				if q.pop(at(d)) != nil {
					when = max(d, atOnce)
				}
			}
			if when != test.when {
				t.Errorf("it comes after %v", when)
			}
		})
	}
}

func TestPausesGrow(t *testing.T) {
	s, q, now := NewSnapshot(1), newQueue(time.Second, 10*time.Second), time.Unix(0, 0)
	q.set(s.inspect(newPod("p")), true, now)
	var got []time.Duration
	for range 6 {
		e := q.pop(now)
		q.fail(e, 0, now)
		q.pause(e, now)
		next, _ := q.next()
		got = append(got, next.Sub(now))
		if q.pop(next.Add(-1)) != nil {
			t.Fatal("it comes before its pause is over")
		}
		now = next
	}
	if want := []time.Duration{1e9, 2e9, 4e9, 8e9, 10e9, 10e9}; !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

func TestNobodyWaitsForEver(t *testing.T) {
	s, q, now := NewSnapshot(1), newQueue(time.Second, 10*time.Second), time.Unix(0, 0)
	q.set(s.inspect(newPod("p")), true, now)
	e := q.pop(now)
	q.fail(e, set(insufficient), now)
	q.wait(e, now)
	q.wakeOld(now.Add(maxWait - 1))
	if q.pop(now.Add(maxWait-1)) != nil {
		t.Error("it comes too early")
	}
	q.wakeOld(now.Add(maxWait))
	if q.pop(now.Add(maxWait)) == nil {
		t.Error("it does not come")
	}
}

// Each pod that comes to a node wakes others, of which most are ready anyway.
func BenchmarkWakeMany(b *testing.B) {
	s, q, now := NewSnapshot(1), newQueue(time.Second, 10*time.Second), time.Unix(0, 0)
	for i := range benchPods {
		q.set(s.inspect(newPod(fmt.Sprint("pod-", i))), true, now)
	}
	b.ReportAllocs()
	for b.Loop() {
		q.wake(podCame, now)
	}
}
