package etcd

import (
	"context"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// progressInterval is how often a request for progress is repeated: a member
// does not answer one while it has events left to send.
const progressInterval = 100 * time.Millisecond

// RequestProgress implements [storage.Watcher].
func (w *watcher) RequestProgress() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked++
	if w.waitingLocked() != nil {
		w.nudgeLocked(0)
	}
}

// aim learns the head that the progress asked for has to reach, and reports
// whether the watcher has reached it.
//
// What a member answers to a request for progress is its own head, and a
// member may lag behind the quorum: the answer may be older than a write that
// had returned before progress was asked for. So the head is read from the
// quorum, after the request was noted and by Next, as RequestProgress must not
// block. The member's answers then count once one of them, or an event, has
// come as far.
func (w *watcher) aim(ctx context.Context) (reached bool, err error) {
	if w.target == 0 {
		asked, wanted := w.wanted()
		if !wanted {
			return false, nil
		}
		head, err := w.store.Head(ctx)
		if err != nil {
			return false, err
		}
		w.target, w.aimedAt = head, asked
	}
	return w.settle(), nil
}

func (w *watcher) wanted() (asked uint64, wanted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked, w.asked != w.settled
}

// settle reports whether the watcher has reached its target, which is then
// done with.
func (w *watcher) settle() bool {
	if w.target == 0 || w.through < w.target {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settled, w.target = w.aimedAt, 0
	return true
}

// startReceiving lets progress be asked for on the stream, now if it is wanted.
func (w *watcher) startReceiving(st *stream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.receiving = st
	if w.waitingLocked() != nil {
		w.nudgeLocked(0)
	}
}

func (w *watcher) stopReceiving() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.receiving = nil
	w.stopNudgeLocked()
}

// nudgeLocked has progress asked for in a while. It is called only while Next
// runs, or by sendNudge, so that running is not zero.
func (w *watcher) nudgeLocked(after time.Duration) {
	w.stopNudgeLocked()
	w.store.running.Add(1)
	w.nudge = time.AfterFunc(after, w.sendNudge)
}

func (w *watcher) stopNudgeLocked() {
	if w.nudge != nil && w.nudge.Stop() {
		w.store.running.Done()
	}
	w.nudge = nil
}

// sendNudge asks the member for progress, and again until Next has received.
func (w *watcher) sendNudge() {
	defer w.store.running.Done()
	st := w.waiting()
	if st == nil || !st.sending.TryLock() {
		return
	}
	_ = st.rpc.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}})
	st.sending.Unlock()

	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waitingLocked() == st {
		w.nudgeLocked(progressInterval)
	}
}

// waiting returns the stream that Next expects progress from, if it does.
func (w *watcher) waiting() *stream {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waitingLocked()
}

func (w *watcher) waitingLocked() *stream {
	if w.asked == w.settled || w.receiving == nil || !w.receiving.created {
		return nil
	}
	return w.receiving
}
