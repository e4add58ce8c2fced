package scheduler

import (
	"cmp"
	"container/heap"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// stage is where in the queue a pod is.
type stage uint8

const (
	nowhere stage = iota // new, or removed
	ready                // to be decided upon
	pausing              // for a while, because it has failed
	waiting              // for something that could help it
	busy                 // with the loop
)

// maxWait is how long a pod waits for something that could help it, before it is
// tried all the same.
const maxWait = 5 * time.Minute

// entry is a pod in the queue.
type entry struct {
	*podInfo
	stage    stage
	place    int // in its heap
	since    time.Time
	failures int
	until    time.Time // when the pause after the last failure is over
	failed   time.Time
	rejected reasons // of the last failure
	woken    reasons // by what happened while it was busy
}

// queue holds the pods that want a node. It has no goroutine and no clock. The most
// important are first and, among equals, who has been waiting for longest.
//
// Invariant: an entry is in the heap of its stage, or in asleep if that has none, and
// nowhere else.
type queue struct {
	shortest, longest time.Duration // of pauses
	entries           map[types.UID]*entry
	ready, pausing    order
	asleep            map[*entry]bool // waiting or busy: what happens may help them
}

func newQueue(shortest, longest time.Duration) *queue {
	return &queue{
		shortest: shortest, longest: longest, entries: map[types.UID]*entry{}, asleep: map[*entry]bool{},
		ready: order{less: func(a, b *entry) bool {
			if c := cmp.Compare(a.priority, b.priority); c != 0 {
				return c > 0
			}
			return a.since.Before(b.since)
		}},
		pausing: order{less: func(a, b *entry) bool { return a.until.Before(b.until) }},
	}
}

// set adds a pod, or changes it. A change of what it wants may help it.
func (q *queue) set(p *podInfo, changed bool, now time.Time) {
	e := q.entries[p.pod.UID]
	if e == nil {
		e = &entry{since: now}
		q.entries[p.pod.UID] = e
	}
	was := e.stage
	q.leave(e) // what it is may say where in a heap
	e.podInfo = p
	switch {
	case was == nowhere:
		q.move(e, ready)
	case was == waiting && changed:
		q.release(e, now)
	default:
		q.move(e, was)
	}
	if was == busy && changed {
		e.woken = all
	}
}

func (q *queue) remove(uid types.UID) {
	if e := q.entries[uid]; e != nil {
		q.leave(e)
		delete(q.entries, uid)
	}
}

// pop returns the next pod, which is busy until it is removed, paused or put to wait.
func (q *queue) pop(now time.Time) *entry {
	for q.pausing.Len() > 0 && !q.pausing.list[0].until.After(now) {
		q.move(q.pausing.list[0], ready)
	}
	if q.ready.Len() == 0 {
		return nil
	}
	e := q.ready.list[0]
	q.move(e, busy)
	return e
}

// fail says why a busy pod has no node, and how long it pauses at least.
func (q *queue) fail(e *entry, rejected reasons, now time.Time) {
	e.failures++
	e.failed, e.rejected, e.woken = now, rejected, 0
	e.until = now.Add(min(q.longest, q.shortest<<min(e.failures-1, 20)))
}

// wait has a busy pod wait for something that could help it, unless that has
// happened meanwhile.
func (q *queue) wait(e *entry, now time.Time) {
	if q.entries[e.pod.UID] != e {
		return // it is gone
	}
	if e.rejected.has(e.woken) {
		q.release(e, now)
		return
	}
	q.move(e, waiting)
}

// pause has a busy pod try again after its pause.
func (q *queue) pause(e *entry, now time.Time) {
	if q.entries[e.pod.UID] == e {
		q.release(e, now)
	}
}

// wake has pods try again that were rejected for one of some reasons.
func (q *queue) wake(help reasons, now time.Time) {
	for e := range q.asleep {
		switch {
		case e.stage == busy:
			e.woken |= help
		case e.stage == waiting && e.rejected.has(help):
			q.release(e, now)
		}
	}
}

// wakeOld has pods try again that have waited for long.
func (q *queue) wakeOld(now time.Time) {
	for e := range q.asleep {
		if e.stage == waiting && now.Sub(e.failed) >= maxWait {
			q.release(e, now)
		}
	}
}

// release lets an entry go on when its pause is over.
func (q *queue) release(e *entry, now time.Time) {
	if e.until.After(now) {
		q.move(e, pausing)
		return
	}
	q.move(e, ready)
}

// next is when the first pause is over, if there is one.
func (q *queue) next() (time.Time, bool) {
	if q.pausing.Len() == 0 {
		return time.Time{}, false
	}
	return q.pausing.list[0].until, true
}

// move has an entry leave its stage for another.
func (q *queue) move(e *entry, s stage) {
	q.leave(e)
	e.stage = s
	switch s {
	case ready:
		heap.Push(&q.ready, e)
	case pausing:
		heap.Push(&q.pausing, e)
	default:
		q.asleep[e] = true
	}
}

func (q *queue) leave(e *entry) {
	switch e.stage {
	case ready:
		heap.Remove(&q.ready, e.place)
	case pausing:
		heap.Remove(&q.pausing, e.place)
	default:
		delete(q.asleep, e)
	}
	e.stage = nowhere
}

// order is a heap of entries.
type order struct {
	list []*entry
	less func(a, b *entry) bool
}

func (o *order) Len() int           { return len(o.list) }
func (o *order) Less(i, j int) bool { return o.less(o.list[i], o.list[j]) }

func (o *order) Swap(i, j int) {
	o.list[i], o.list[j] = o.list[j], o.list[i]
	o.list[i].place, o.list[j].place = i, j
}

func (o *order) Push(e any) {
	e.(*entry).place = len(o.list)
	o.list = append(o.list, e.(*entry))
}

func (o *order) Pop() any {
	last := len(o.list) - 1
	e := o.list[last]
	o.list[last] = nil
	o.list = o.list[:last]
	return e
}
