package workqueue

import (
	"container/heap"
	"math"
	"sync"
	"time"
)

// never is later than any time a queue sees.
const never = time.Duration(math.MaxInt64)

// rung is the time of an alarm after it rang: no time that it can be set to.
const rung = time.Duration(-1)

// delay is when a held entry becomes ready.
type delay struct {
	until    time.Duration // the earliest that a delayed add asked for
	settled  time.Duration // the end of a debounced add's quiet
	settleBy time.Duration // what settled cannot pass
	seq      uint64        // orders what is due at one moment: first held, first ready
	slot     int           // in the heap
}

func (d *delay) due() time.Duration { return min(d.until, d.settled) }

// settle puts off the end of the quiet.
func (d *delay) settle(now, quiet, limit time.Duration) {
	if d.settled == never {
		d.settleBy = now + limit
	}
	d.settled = min(now+quiet, d.settleBy)
}

func (d *delay) before(o *delay) bool {
	if d.due() != o.due() {
		return d.due() < o.due()
	}
	return d.seq < o.seq
}

// delays is a heap of held entries, the first due in front.
type delays[K comparable] []*entry[K]

func (h delays[K]) Len() int           { return len(h) }
func (h delays[K]) Less(i, j int) bool { return h[i].more.delay.before(&h[j].more.delay) }
func (h delays[K]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].more.delay.slot, h[j].more.delay.slot = i, j
}

// Push and Pop are for package heap.
func (h *delays[K]) Push(x any) {
	e := x.(*entry[K])
	e.more.delay.slot = len(*h)
	*h = append(*h, e)
}

func (h *delays[K]) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return e
}

// hold puts an idle entry at the end, due never; a held one stays.
func (h *delays[K]) hold(e *entry[K], seq uint64) {
	if e.pending == held {
		return
	}
	e.pending = held
	e.extra().delay = delay{until: never, settled: never, seq: seq}
	heap.Push(h, e)
}

// moved puts an entry in its place after its time was changed.
func (h *delays[K]) moved(e *entry[K]) { heap.Fix(h, e.more.delay.slot) }

// release takes a held entry out.
func (h *delays[K]) release(e *entry[K]) { heap.Remove(h, e.more.delay.slot) }

// next is when the first entry is due.
func (h delays[K]) next() time.Duration {
	if len(h) == 0 {
		return never
	}
	return h[0].more.delay.due()
}

// alarm calls a function at the time it is set to. The queue's lock guards set;
// wait is called without it, after the last set.
type alarm struct {
	timer *time.Timer
	at    time.Duration
	ring  func()
	calls sync.WaitGroup // those that the timer has to make, or is making
}

// set moves the alarm; never turns it off.
func (a *alarm) set(at, now time.Duration) {
	if at == a.at {
		return
	}
	a.at = at
	if a.timer != nil && a.timer.Stop() {
		a.calls.Done()
	}
	if at == never {
		return
	}
	a.calls.Add(1)
	if a.timer == nil {
		a.timer = time.AfterFunc(at-now, func() { defer a.calls.Done(); a.ring() })
		return
	}
	a.timer.Reset(at - now)
}

// wait returns once no call is on its way.
func (a *alarm) wait() { a.calls.Wait() }
