package workqueue

import "context"

// waiters are the goroutines that are blocked in Get.
//
// One at a time is woken: when it has taken its key, it wakes the next if there
// is more to take. So a burst of adds costs one wake-up, not one each, and a
// waiter that is on its way is not passed by others for a key it will not find.
// The invariant: while a key is ready and somebody is blocked, somebody else is
// on the way.
type waiters struct {
	blocked []*waiter
	waking  int
	spare   []*waiter // as many as were ever blocked at once
}

type waiter struct{ woken chan struct{} }

// wake lets a waiter run; there may be none. It needs no lock.
func (w *waiter) wake() {
	if w != nil {
		w.woken <- struct{}{}
	}
}

func (ws *waiters) block() *waiter {
	var w *waiter
	if i := len(ws.spare) - 1; i >= 0 {
		w, ws.spare = ws.spare[i], ws.spare[:i]
	} else {
		w = &waiter{woken: make(chan struct{}, 1)}
	}
	ws.blocked = append(ws.blocked, w)
	return w
}

// pop takes out the waiter who came last, whom the caller wakes.
func (ws *waiters) pop() *waiter {
	i := len(ws.blocked) - 1
	w := ws.blocked[i]
	ws.blocked = ws.blocked[:i]
	ws.waking++
	return w
}

// leave takes a waiter out who was not woken, and says whether it was so.
func (ws *waiters) leave(w *waiter) bool {
	for i := range ws.blocked {
		if ws.blocked[i] == w {
			ws.blocked = append(ws.blocked[:i], ws.blocked[i+1:]...)
			return true
		}
	}
	return false
}

// nextWaiterLocked is the waiter to wake, if one is needed.
func (q *Queue[K]) nextWaiterLocked() *waiter {
	ws := &q.waiters
	if q.order.len() == 0 || ws.waking > 0 || len(ws.blocked) == 0 {
		return nil
	}
	return ws.pop()
}

// waitLocked gives up the lock until the caller is woken, or ctx is done: then
// it returns false. Either way the caller may have been woken for a key that it
// does not take, and has to release the lock.
func (q *Queue[K]) waitLocked(ctx context.Context) bool {
	ws := &q.waiters
	w := ws.block()
	q.release()
	select {
	case <-w.woken:
		q.lock()
		ws.waking--
		ws.spare = append(ws.spare, w)
		return true
	case <-ctx.Done():
	}
	q.lock()
	if !ws.leave(w) {
		<-w.woken // sent, or about to be, by whoever took w out
		ws.waking--
	}
	ws.spare = append(ws.spare, w)
	return false
}
