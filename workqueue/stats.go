package workqueue

import (
	"iter"
	"math/bits"
	"slices"
	"time"
)

// Stats are the figures of a queue at one moment. Each names the metric of
// client-go that it stands for.
type Stats struct {
	// Ready is what Get could hand out, Running what workers have, and Delayed
	// what is not yet due. A key can run and be delayed at once.
	Ready, Running, Delayed int
	// Depth is Ready and the keys that run and were added again:
	// workqueue_depth.
	Depth int
	// Adds counts keys that became ready: workqueue_adds_total.
	Adds uint64
	// Retries counts retries and delayed adds: workqueue_retries_total.
	Retries uint64
	// Dropped counts keys dropped at the retry limit.
	Dropped uint64
	// LostCauses counts causes that found no room.
	LostCauses uint64
	// OldestReady is for how long the key at the front has been ready.
	OldestReady time.Duration
	// Unfinished is for how long all running keys together have been with their
	// workers: workqueue_unfinished_work_seconds.
	Unfinished time.Duration
	// LongestRunning is the greatest part of that:
	// workqueue_longest_running_processor_seconds.
	LongestRunning time.Duration
	// QueueTime is how long keys were ready before they were handed out:
	// workqueue_queue_duration_seconds.
	QueueTime Histogram
	// WorkTime is how long workers had them: workqueue_work_duration_seconds.
	WorkTime Histogram
}

// buckets is how many bounds a histogram has: 10 ns, and ten times the one
// before up to 1,000 s.
const buckets = 12

// bounds are those of a histogram, and leastBucket is the bucket of the shortest
// duration that has so many bits.
var (
	bounds      [buckets]time.Duration
	leastBucket [65]uint8
)

func init() {
	bound := 10 * time.Nanosecond
	for i := range bounds {
		bounds[i] = bound
		bound *= 10
	}
	for n := range leastBucket {
		shortest := time.Duration(uint64(1) << n >> 1)
		i, _ := slices.BinarySearch(bounds[:], shortest)
		leastBucket[n] = uint8(i)
	}
}

// Histogram counts durations.
type Histogram struct {
	Count uint64
	Sum   time.Duration
	// counts are by the bound that a duration does not pass; the last are those
	// that pass all.
	counts [buckets + 1]uint64
}

// Buckets yields each upper bound with how many durations do not pass it, as
// Prometheus counts them.
func (h Histogram) Buckets() iter.Seq2[time.Duration, uint64] {
	return func(yield func(time.Duration, uint64) bool) {
		bound, total := 10*time.Nanosecond, uint64(0)
		for _, n := range h.counts[:buckets] {
			total += n
			if !yield(bound, total) {
				return
			}
			bound *= 10
		}
	}
}

func (h *Histogram) observe(d time.Duration) {
	h.Count++
	h.Sum += d
	i := leastBucket[bits.Len64(uint64(d))]
	if i < buckets && d > bounds[i] {
		i++ // no power of two is followed by two bounds below the next
	}
	h.counts[i]++
}

// counts are what a queue counts as it goes.
type counts struct {
	depth                              int
	adds, retries, dropped, lostCauses uint64
	startSum                           time.Duration // of all that runs
	queueTime, workTime                Histogram
}

// begin counts that a key that has waited is handed out.
func (c *counts) begin(waited, now time.Duration) {
	c.depth--
	c.startSum += now
	c.queueTime.observe(waited)
}

func (c *counts) end(started, now time.Duration) {
	c.startSum -= started
	c.workTime.observe(max(now-started, 0))
}

// Stats returns the queue's figures. How long it takes depends on how many workers
// there are, not on how many keys.
func (q *Queue[K]) Stats() Stats {
	q.lock()
	defer q.release()
	now := q.now()
	s := Stats{
		Ready: q.order.len(), Running: q.running.len(), Delayed: len(q.held), Depth: q.counts.depth,
		Adds: q.counts.adds, Retries: q.counts.retries,
		Dropped: q.counts.dropped, LostCauses: q.counts.lostCauses,
		Unfinished: time.Duration(q.running.len())*now - q.counts.startSum,
		QueueTime:  q.counts.queueTime, WorkTime: q.counts.workTime,
	}
	if e := q.order.age.front; e != nil {
		s.OldestReady = now - e.queued
	}
	if first := q.running.oldest(); first != nil {
		s.LongestRunning = now - first.started
	}
	return s
}

// Status is what a queue knows of one key.
type Status[K comparable] struct {
	Key   K
	Group string
	// Running says that a worker has the key, since Started.
	Running bool
	Started time.Time
	// Ready says that the key is to be handed out, and is since Queued.
	Ready  bool
	Queued time.Time
	// Due is when a delayed key will be ready; zero if it is not delayed.
	Due time.Time
	// Priority, Causes and LostCauses are those of the turn it waits for.
	Priority   int
	Causes     []Cause
	LostCauses int
	Retries    int
}

// Snapshot returns what the queue holds, limit keys at most: those that run,
// the longest-running first, then those that are ready by age, then the delayed
// in no order. Keys of which only the retries are known are left out.
func (q *Queue[K]) Snapshot(limit int) []Status[K] {
	q.lock()
	defer q.release()
	var all []Status[K]
	running := q.running.byAge()
	for _, e := range running[:min(len(running), max(limit, 0))] {
		all = append(all, q.statusLocked(e))
	}
	for e := q.order.age.front; e != nil && len(all) < limit; e = e.age.next {
		all = append(all, q.statusLocked(e))
	}
	for _, e := range q.held {
		if !e.running && len(all) < limit {
			all = append(all, q.statusLocked(e))
		}
	}
	return all
}

func (q *Queue[K]) statusLocked(e *entry[K]) Status[K] {
	s := Status[K]{
		Key: e.key, Group: e.group(), Running: e.running, Ready: e.pending == ready,
		Retries: int(e.retries),
	}
	if e.more != nil {
		s.Causes, s.LostCauses = slices.Clone(e.more.causes), int(e.more.lost)
	}
	if e.running {
		s.Started = q.start.Add(e.started)
	}
	if e.pending != idle {
		s.Priority = e.priority
	}
	if e.pending == ready {
		s.Queued = q.start.Add(e.queued)
	}
	if e.pending == held {
		s.Due = q.start.Add(e.more.delay.due())
	}
	return s
}
