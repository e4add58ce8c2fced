package etcd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/even-keel/evenkeel/storage"
)

// After a stream has failed, a watcher waits for up to minBackoff before it
// opens the next, then for up to twice as long each time, but not more than
// maxBackoff.
const (
	minBackoff = 20 * time.Millisecond
	maxBackoff = 2 * time.Second
)

// watcher is a cursor over the events of a prefix.
//
// It keeps no events but those of one unfinished revision. They wait in the
// member's database and in the fixed window of a gRPC stream, which is read
// only inside Next: a watcher that nobody reads holds the member's sender, and
// nothing else, up. clientv3.Watch is not used because it reads ahead without
// bound, in goroutines of its own.
//
// Invariants:
//   - Every event of the prefix up to through has been returned by Next, and
//     none after it. A stream that fails, or that the context of a Next took
//     along, is replaced by one that starts after through, on whichever member
//     answers: all of them give an event the same revision.
//   - All events of a revision come in one batch. Etcd may split a response
//     into fragments in the middle of a revision (somebody else's transaction
//     may write several keys); its events are held until the rest has come.
//   - Progress is settled against the head of the cluster, not of the member:
//     see aim.
type watcher struct {
	store  *Store
	prefix storage.Key

	// Of the Next that runs.
	through storage.Revision
	held    []storage.Event
	checked bool // that the first position was not compacted
	backoff time.Duration
	target  storage.Revision // head to reach for the progress asked for; zero if unknown
	aimedAt uint64           // what asked was before target was read

	mu        sync.Mutex
	closed    bool
	interrupt context.CancelFunc // ends the Next that runs
	stream    *stream            // nil before the first and after one failed
	receiving *stream            // the stream that Next waits for, if it does
	asked     uint64             // how often progress was asked for
	settled   uint64             // how much of it has been given
	nudge     *time.Timer        // sends the next progress request
}

// Watch implements [storage.Store].
func (s *Store) Watch(prefix storage.Key, after storage.Revision) storage.Watcher {
	return &watcher{store: s, prefix: prefix, through: after}
}

// Next implements [storage.Watcher]. While the cluster is unavailable it keeps
// trying until ctx ends. An end of ctx costs the stream, and etcd may take more
// than 100 ms to bring the next one up to date: ctx should last longer.
func (w *watcher) Next(ctx context.Context) (storage.Batch, error) {
	batch, err := w.next(ctx)
	if err != nil {
		w.drop()
		return storage.Batch{}, fmt.Errorf("watch %q after revision %d: %w", w.prefix, w.through, err)
	}
	return batch, nil
}

func (w *watcher) next(ctx context.Context) (storage.Batch, error) {
	inner, release, err := w.begin(ctx)
	if err != nil {
		return storage.Batch{}, err
	}
	defer release()
	for {
		if err := w.ended(ctx); err != nil {
			return storage.Batch{}, err
		}
		batch, done, err := w.step(inner)
		switch {
		case err == nil && done:
			return batch, nil
		case err == nil:
		case w.ended(ctx) != nil:
		case !errors.Is(err, storage.ErrUnavailable):
			return storage.Batch{}, err
		default:
			w.drop()
			w.pause(inner)
		}
	}
}

// begin returns the context of one Next, which ends with the caller's, with
// the watcher and with the store.
func (w *watcher) begin(ctx context.Context) (context.Context, func(), error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || !w.store.enter() {
		return nil, nil, storage.ErrClosed
	}
	inner, cancel := context.WithCancel(ctx)
	w.interrupt = cancel
	stop := context.AfterFunc(w.store.client.Ctx(), cancel)
	return inner, func() {
		stop()
		cancel()
		w.store.running.Done()
	}, nil
}

// ended returns why Next should return, if it should.
func (w *watcher) ended(ctx context.Context) error {
	w.mu.Lock()
	closed := w.closed
	w.mu.Unlock()
	if closed || w.store.isClosed() {
		return storage.ErrClosed
	}
	return ctx.Err()
}

// step waits for one thing to happen and reports whether Next is done with it.
func (w *watcher) step(ctx context.Context) (storage.Batch, bool, error) {
	if err := w.check(ctx); err != nil {
		return storage.Batch{}, false, err
	}
	if reached, err := w.aim(ctx); reached || err != nil {
		return storage.Batch{Through: w.through}, reached, err
	}
	resp, err := w.receive(ctx)
	if err != nil {
		return storage.Batch{}, false, err
	}
	events, err := w.accept(resp)
	if err != nil || len(events) == 0 {
		return storage.Batch{}, false, err
	}
	w.settle()
	return storage.Batch{Events: events, Through: w.through}, true, nil
}

// check makes sure, once, that the state the watch starts from is not gone.
// Etcd itself lets a watch begin right after a compacted state.
func (w *watcher) check(ctx context.Context) error {
	if w.checked {
		return nil
	}
	at := max(w.through, 1)
	_, err := w.store.read(ctx, w.store.prefix, clientv3.WithRev(signed(at)), clientv3.WithCountOnly())
	if err != nil && !errors.Is(err, storage.ErrFuture) {
		return err
	}
	w.checked = true
	return nil
}

// pause waits before the next stream is opened.
func (w *watcher) pause(ctx context.Context) {
	w.backoff = min(max(2*w.backoff, minBackoff), maxBackoff)
	timer := time.NewTimer(rand.N(w.backoff))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Close implements [storage.Watcher].
func (w *watcher) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if w.interrupt != nil {
		w.interrupt()
	}
	if w.stream != nil {
		w.stream.cancel()
	}
}
