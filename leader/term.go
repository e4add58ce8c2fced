package leader

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/even-keel/evenkeel/client"
)

// term is one time of leadership, from taking the lease until the work has ended.
type term struct {
	*Elector
	fence Fence
	// lease is as last written; the goroutine that renews has it until it ends.
	lease *coordinationv1.Lease

	state sync.Mutex
	// sent is when the last renewal that succeeded was sent, by the monotonic clock.
	sent time.Time
	// lost is why this is over, and gone whether the lease is not ours any more.
	lost   error
	lostAt time.Time
	gone   bool
	// stop ends the context of the work, alarm calls expire.
	stop  context.CancelCauseFunc
	alarm *time.Timer
}

func newTerm(e *Elector, l *coordinationv1.Lease, sent time.Time) *term {
	return &term{Elector: e, lease: l, sent: sent, fence: fenceOf(l)}
}

// serve calls lead and renews the lease until it has returned.
func (t *term) serve(ctx context.Context, lead func(context.Context) error) error {
	leading, stop := context.WithCancelCause(t.fence.Context(ctx))
	defer stop(nil)
	t.begin(stop)
	renewing, stopRenewing := context.WithCancel(context.WithoutCancel(ctx))
	var renewal sync.WaitGroup
	renewal.Go(func() { t.renewals(renewing) })
	end := sync.OnceFunc(func() {
		stopRenewing()
		renewal.Wait()
		t.end()
	})
	defer end() // also if lead panics
	err := lead(leading)
	end()
	t.release(ctx)
	return t.result(err)
}

func (t *term) begin(stop context.CancelCauseFunc) {
	t.state.Lock()
	t.stop = stop
	t.alarm = time.AfterFunc(t.remainingLocked(), t.expire)
	t.state.Unlock()
	t.mu.Lock()
	t.Elector.term = t
	t.mu.Unlock()
	t.saw(recordOf(t.lease))
}

func (t *term) end() {
	t.alarm.Stop()
	t.mu.Lock()
	t.Elector.term = nil
	t.mu.Unlock()
}

// result is what Run returns after the work returned err.
func (t *term) result(err error) error {
	lost := t.failure()
	switch {
	case lost == nil:
		return err
	case err == nil || errors.Is(err, context.Canceled) || errors.Is(err, ErrLost):
		return lost
	}
	return fmt.Errorf("%w; and the work ended with: %w", lost, err)
}

// remaining is for how long this is a leader if no renewal succeeds.
func (t *term) remaining() time.Duration {
	t.state.Lock()
	defer t.state.Unlock()
	return t.remainingLocked()
}

func (t *term) remainingLocked() time.Duration {
	return t.options.RenewDeadline - time.Since(t.sent)
}

func (t *term) failure() error {
	t.state.Lock()
	defer t.state.Unlock()
	return t.lost
}

// leads reports whether nobody else can lead yet.
func (t *term) leads() bool {
	t.state.Lock()
	defer t.state.Unlock()
	return t.lost == nil && t.remainingLocked() > 0
}

// late is for how long the work goes on after leadership was lost.
func (t *term) late() time.Duration {
	t.state.Lock()
	defer t.state.Unlock()
	if t.lost == nil {
		return 0
	}
	return time.Since(t.lostAt)
}

// expire is called when the last renewal is too old, unless there was one since.
func (t *term) expire() {
	if t.remaining() <= 0 {
		t.lose(fmt.Sprintf("it could not be renewed for %s", t.options.RenewDeadline), false)
	}
}

// lose ends the term; gone says that the lease is not ours any more.
func (t *term) lose(why string, gone bool) {
	t.state.Lock()
	t.gone = t.gone || gone
	first := t.lost == nil
	if first {
		t.lost, t.lostAt = fmt.Errorf("lease %s: %w: %s", t.options.key(), ErrLost, why), time.Now()
		t.stop(t.lost)
	}
	t.state.Unlock()
	if first {
		t.options.Logger.Warn("leadership is lost", "lease", t.options.key().String(), "identity", t.options.Identity, "reason", why)
	}
}

// renewals renews the lease until ctx ends or it is lost.
func (t *term) renewals(ctx context.Context) {
	began := t.sent
	for t.failure() == nil {
		sleep(ctx, time.Until(began.Add(t.options.RetryPeriod)))
		if ctx.Err() != nil {
			return
		}
		began = time.Now()
		t.renew(ctx)
	}
}

// renew tries once. What is not known to be lost may still be renewed by the next.
func (t *term) renew(ctx context.Context) {
	sent := time.Now()
	trying, cancel := context.WithTimeout(ctx, min(t.options.patience(), t.remaining()))
	defer cancel()
	lease, err := t.write(trying, func(r record) record {
		r.renewed, r.duration = stamp(sent), t.options.LeaseDuration
		return r
	})
	switch {
	case err == nil && lease.UID != t.lease.UID:
		t.lease = lease // some servers make what an update does not find
		t.lose("it was deleted", false)
	case err == nil:
		t.lease = lease
		t.renewed(sent)
	case !errors.Is(err, ErrLost):
		t.warn(ctx, "the lease cannot be renewed", err)
	}
}

func (t *term) renewed(sent time.Time) {
	t.state.Lock()
	if t.lost == nil {
		t.sent = sent
		t.alarm.Reset(t.remainingLocked())
	}
	t.state.Unlock()
	t.saw(recordOf(t.lease))
}

// conflicts bounds how often a write is tried against others who write to the
// lease and do not take it.
const conflicts = 5

// write changes the lease if it is still ours, whatever else has been written to
// it: labels by others, or a renewal of ours whose answer did not arrive.
func (t *term) write(ctx context.Context, change func(record) record) (*coordinationv1.Lease, error) {
	mine := recordOf(t.lease)
	for range conflicts {
		lease, err := t.leases.Update(ctx, change(mine).onto(t.lease))
		if client.IsConflict(err) {
			lease, err = t.leases.Get(ctx, t.options.key())
			if err == nil && t.ours(lease) {
				t.lease = lease
				continue
			}
			if err == nil {
				err = t.taken(recordOf(lease))
			}
		}
		if client.IsNotFound(err) {
			t.lose("it was deleted", true)
			return nil, ErrLost
		}
		return lease, err
	}
	return nil, fmt.Errorf("others wrote to it %d times meanwhile", conflicts)
}

// ours reports whether a lease is still the one of this term.
func (t *term) ours(l *coordinationv1.Lease) bool {
	return l.UID == t.lease.UID && recordOf(l).sameTerm(recordOf(t.lease))
}

func (t *term) taken(r record) error {
	t.lose(fmt.Sprintf("it was taken by %q", r.holder), true)
	t.saw(r)
	return ErrLost
}

// release lets others lead at once, if the lease is still ours. It takes no longer
// than they would wait without it.
func (t *term) release(ctx context.Context) {
	t.state.Lock()
	within, gone := min(t.options.patience(), t.options.LeaseDuration-time.Since(t.sent)), t.gone
	t.state.Unlock()
	if t.options.KeepOnStop || gone || within <= 0 {
		return
	}
	ctx = context.WithoutCancel(ctx)
	trying, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	now := stamp(time.Now())
	lease, err := t.write(trying, func(r record) record {
		return record{duration: time.Second, acquired: now, renewed: now, transitions: r.transitions}
	})
	if err != nil {
		t.warn(ctx, "the lease was not released", err)
		return
	}
	t.saw(recordOf(lease))
}
