package workqueue

import "context"

// ShutDown makes the queue ignore adds and drop what is delayed. Workers go on
// until nothing is ready, and then Get returns false. A [Queue.Drain] that
// waits stops waiting.
func (q *Queue[K]) ShutDown() {
	q.lock()
	woken := q.closeLocked()
	q.endDrainLocked()
	q.release()
	q.afterClose(woken)
}

// Drain is ShutDown, but waits until all that was ready or with a worker is
// done. Otherwise it returns the error of ctx, or [ErrShutDown] when a call of
// ShutDown ended the wait.
func (q *Queue[K]) Drain(ctx context.Context) error {
	q.lock()
	woken := q.closeLocked()
	if q.drained == nil {
		q.drained = make(chan struct{})
	}
	drained := q.drained
	q.checkDrainedLocked()
	q.release()
	q.afterClose(woken)
	select {
	case <-drained:
	case <-ctx.Done():
		return ctx.Err()
	}
	q.lock()
	defer q.release()
	if q.order.len()+q.running.len() > 0 {
		return ErrShutDown
	}
	return nil
}

// ShuttingDown reports whether ShutDown or Drain was called.
func (q *Queue[K]) ShuttingDown() bool {
	q.lock()
	defer q.release()
	return q.shutDown
}

// closeLocked stops all adds, those to come and those delayed. The caller hands
// its result to afterClose.
func (q *Queue[K]) closeLocked() []*waiter {
	q.shutDown = true
	q.alarm.set(never, 0)
	for _, e := range q.held {
		e.pending = idle
		e.takeCauses()
		q.reclaimLocked(e)
	}
	q.held = nil
	var woken []*waiter
	for len(q.waiters.blocked) > 0 {
		woken = append(woken, q.waiters.pop())
	}
	return woken
}

// afterClose wakes all waiters, and returns once the alarm makes no more calls.
func (q *Queue[K]) afterClose(woken []*waiter) {
	for _, w := range woken {
		w.wake()
	}
	q.alarm.wait()
}

// checkDrainedLocked ends the wait of Drain once all is done.
func (q *Queue[K]) checkDrainedLocked() {
	if q.order.len()+q.running.len() == 0 {
		q.endDrainLocked()
	}
}

func (q *Queue[K]) endDrainLocked() {
	if q.drained != nil {
		close(q.drained)
		q.drained = nil
	}
}
