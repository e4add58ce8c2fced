package workqueue

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"time"
)

// Queue hands out keys that need work. It may be used by many goroutines.
//
// The promises, which are those of client-go's queues:
//
//   - a key is in the queue once, however often it is added;
//   - a key is with one worker at a time, from Get to Done;
//   - a key that is added while a worker has it is handed out again after Done;
//   - keys of one priority and group are handed out in the order they came.
//
// Two adds of a key that has not been handed out become one: with the higher
// priority, the earlier time and the causes of both.
//
// A queue has no goroutine of its own but the short call of one timer. It holds
// the keys that wait, run, or have been retried and not forgotten, and keeps
// room for as many as it ever held, 65,536 at most: some 130 bytes each.
type Queue[K comparable] struct {
	opts  Options[K]
	start time.Time // times are kept as durations since then

	// What is mostly read, what those who add write and what workers write are in
	// cache lines of their own.
	retried atomic.Int64 // entries with retries, changed under mu
	idle    atomic.Bool  // an add has to wake a worker, changed under mu
	_       [cacheLine]byte
	inbox   inbox[K]
	_       [cacheLine]byte

	mu       sync.Mutex
	admitted []add[K] // the list that the inbox gets next
	entries  table[K]
	order    order[K]
	running  runners[K]
	held     delays[K]
	alarm    alarm
	bucket   bucket
	waiters  waiters
	spares   spares[K]
	counts   counts
	runs     uint64 // turns handed out
	holds    uint64

	shutDown bool
	drained  chan struct{} // closed when a Drain has to look again; nil without one
}

// cacheLine is what processors pass around at once, or more than that.
const cacheLine = 64

// Item is a key that was handed out, with what is known of why and when.
type Item[K comparable] struct {
	Key      K
	Priority int
	// Causes are why the key was added, merged and bounded; LostCauses is how
	// many found no room.
	Causes     []Cause
	LostCauses int
	// Retries is how often the key was retried since it was last forgotten.
	Retries int
	// Waited is how long the key was ready before it was handed out.
	Waited time.Duration

	turn turn[K]
}

// turn is the right of a worker to end its work on an entry, once.
type turn[K comparable] struct {
	entry *entry[K]
	run   uint64
}

// AddOptions are the particulars of one add.
type AddOptions struct {
	// After delays the add.
	After time.Duration
	// Priority is what goes first when it is higher; zero by default.
	Priority int
	// Causes are why the key is added.
	Causes []Cause
}

// New makes an empty queue.
func New[K comparable](opts Options[K]) *Queue[K] {
	opts = opts.withDefaults()
	q := &Queue[K]{
		opts:    opts,
		start:   time.Now(),
		entries: newTable[K](),
		order:   newOrder[K](opts.Group != nil, opts.Patience),
		bucket:  bucket{rate: opts.Rate, burst: float64(opts.Burst), tokens: float64(opts.Burst)},
	}
	q.alarm = alarm{at: never, ring: q.ring}
	return q
}

// Add asks for work on a key. After a shutdown it does nothing.
func (q *Queue[K]) Add(key K, causes ...Cause) {
	q.AddWith(key, AddOptions{Causes: causes})
}

// AddWith is Add with a delay or a priority.
func (q *Queue[K]) AddWith(key K, opts AddOptions) {
	id, now := q.identify(key), q.now()
	if opts.After <= 0 && q.opts.Debounce <= 0 && !q.idle.Load() && q.leave(&id, &opts, now) {
		return
	}
	q.lock()
	if !q.shutDown {
		if opts.After > 0 {
			q.counts.retries++
		}
		q.addLocked(q.entryLocked(&id), opts, now)
	}
	q.release()
}

// leave puts an add into the inbox, unless there is no room.
func (q *Queue[K]) leave(id *identity[K], opts *AddOptions, now time.Duration) bool {
	if !q.inbox.put(id, opts, now) {
		return false
	}
	if q.idle.Load() {
		q.lock()
		q.release()
	}
	return true
}

// Get waits for a key and hands it out; the caller owes a [Queue.Done]. It
// returns false when ctx is done, or the queue is shut down and has nothing
// left to hand out: the worker should end.
func (q *Queue[K]) Get(ctx context.Context) (Item[K], bool) {
	var item Item[K]
	ok := q.next(ctx, &item)
	return item, ok
}

// Items is the loop of a worker: it gets keys until Get would return false, and
// is done with each after the body of the loop. It takes the queue's lock less
// often than Get and Done do.
func (q *Queue[K]) Items(ctx context.Context) iter.Seq[Item[K]] {
	return func(yield func(Item[K]) bool) {
		var item Item[K]
		defer func() { q.done(item.turn) }()
		for q.next(ctx, &item) && yield(item) {
		}
	}
}

// next ends the turn that item has, if it has one, and makes it another.
func (q *Queue[K]) next(ctx context.Context, item *Item[K]) bool {
	ended := ctx.Err() != nil
	now := q.now()
	q.lock()
	q.doneLocked(item.turn, now)
	for !ended && q.order.len() == 0 {
		ended = q.shutDown || !q.waitLocked(ctx)
		now = q.now()
	}
	if ended {
		*item = Item[K]{}
	} else {
		q.takeLocked(item, now)
	}
	q.release()
	return !ended
}

// Done ends the work on an item. A key that was added meanwhile is handed out
// again. A second Done of an item does nothing.
func (q *Queue[K]) Done(item Item[K]) { q.done(item.turn) }

func (q *Queue[K]) done(t turn[K]) {
	now := q.now()
	q.lock()
	q.doneLocked(t, now)
	q.release()
}

// Len is how many keys Get could hand out now.
func (q *Queue[K]) Len() int {
	q.lock()
	defer q.release()
	return q.order.len()
}

// now is the time since the queue was made.
func (q *Queue[K]) now() time.Duration { return time.Since(q.start) }

// identity is a key with what is worked out of it before the lock is taken.
type identity[K comparable] struct {
	key   K
	group string
	hash  uint64
}

func (q *Queue[K]) identify(key K) identity[K] {
	id := identity[K]{key: key, hash: q.entries.hash(key)}
	if q.opts.Group != nil {
		id.group = q.opts.Group(key)
	}
	return id
}

// entryLocked finds or makes the entry of a key.
func (q *Queue[K]) entryLocked(id *identity[K]) *entry[K] {
	e := q.entries.get(id.key, id.hash)
	if e == nil {
		e = q.spares.take()
		e.key, e.hash = id.key, id.hash
		if id.group != "" {
			e.extra().group = id.group
		}
		q.entries.put(e)
	}
	return e
}

// addLocked makes an entry pending, or more so if it is.
func (q *Queue[K]) addLocked(e *entry[K], add AddOptions, now time.Duration) {
	q.noteLocked(e, add.Causes)
	switch {
	case e.pending == idle:
		e.priority = add.Priority
	case add.Priority > e.priority && e.pending == ready && !e.running:
		q.order.raise(e, add.Priority)
	default:
		e.priority = max(e.priority, add.Priority)
	}
	if e.pending == ready {
		return
	}
	if add.After <= 0 && q.opts.Debounce <= 0 {
		q.queueLocked(e, now)
		return
	}
	q.holds++
	q.held.hold(e, q.holds)
	if add.After > 0 {
		e.more.delay.until = min(e.more.delay.until, now+add.After)
	} else {
		e.more.delay.settle(now, q.opts.Debounce, q.opts.DebounceMax)
	}
	q.held.moved(e)
	q.setAlarmLocked(now)
}

func (q *Queue[K]) noteLocked(e *entry[K], causes []Cause) {
	if len(causes) == 0 {
		return
	}
	m := e.extra()
	for i := range causes {
		var kept bool
		if m.causes, kept = mergeCause(m.causes, &causes[i], q.opts.MaxCauses); !kept {
			m.lost++
			q.counts.lostCauses++
		}
	}
}

func (q *Queue[K]) setAlarmLocked(now time.Duration) { q.alarm.set(q.held.next(), now) }

// queueLocked makes an idle or held entry ready to be handed out. The alarm may
// then ring too early, which does no harm.
func (q *Queue[K]) queueLocked(e *entry[K], now time.Duration) {
	if e.pending == held {
		q.held.release(e)
	}
	e.pending = ready
	e.queued = now
	q.counts.adds++
	q.counts.depth++
	if !e.running {
		q.order.push(e)
	}
}

// ring makes ready what is due. The alarm calls it.
func (q *Queue[K]) ring() {
	q.lock()
	now := q.now()
	for q.held.next() <= now {
		q.queueLocked(q.held[0], now)
	}
	q.alarm.at = rung
	q.setAlarmLocked(now)
	q.release()
}

// takeLocked hands out the next entry; there must be one.
func (q *Queue[K]) takeLocked(item *Item[K], now time.Duration) {
	e := q.order.pop()
	waited := max(now-e.queued, 0)
	q.runs++
	e.pending = idle
	e.running, e.run, e.started, e.ranAt = true, q.runs, now, e.priority
	q.running.add(e)
	q.counts.begin(waited, now)
	item.Key, item.Priority, item.Retries, item.Waited = e.key, e.priority, int(e.retries), waited
	item.Causes, item.LostCauses = e.takeCauses()
	item.turn = turn[K]{e, e.run}
}

// doneLocked ends a turn, unless it has ended.
func (q *Queue[K]) doneLocked(t turn[K], now time.Duration) {
	e := t.entry
	if e == nil || !e.running || e.run != t.run {
		return
	}
	q.running.remove(e)
	q.counts.end(e.started, now)
	e.running, e.ranAt = false, 0
	if e.pending == ready {
		q.order.push(e)
		return
	}
	q.reclaimLocked(e)
	q.checkDrainedLocked()
}

// reclaimLocked lets go of an entry of which there is nothing left to know.
func (q *Queue[K]) reclaimLocked(e *entry[K]) {
	if e.running || e.pending != idle || e.retries > 0 {
		return
	}
	q.entries.remove(e)
	q.spares.put(e)
}
