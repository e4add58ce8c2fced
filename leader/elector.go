package leader

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/even-keel/evenkeel/client"
)

// Elector is one candidate for a lease. Make one with [New]; it is safe for
// concurrent use.
type Elector struct {
	options Options
	err     error // of the options
	leases  *client.Client[*coordinationv1.Lease]
	running atomic.Bool

	mu sync.Mutex
	// seen is what the lease said when it was last looked at.
	seen record
	// reported is who OnNewLeader last heard of.
	reported string
	// term is there while the work runs, also if it is lost already.
	term *term
}

// New returns a candidate. It sends nothing; options that do not fit are an error
// of [Elector.Run]. Leases are read from the server, whatever cache the source has.
func New(s client.Source, o Options) *Elector {
	o = o.withDefaults()
	return &Elector{options: o, err: o.check(), leases: client.Of[*coordinationv1.Lease](s.Conn()).In(o.Namespace)}
}

// Identity is the candidate's name.
func (e *Elector) Identity() string { return e.options.Identity }

// Run waits until this candidate leads, and then calls lead, once. It returns
// after lead has:
//
//   - When ctx ends, the context of lead does. The lease is renewed while lead
//     finishes, and then released. That is no error.
//   - When lead returns by itself, the lease is released, and its error returned.
//   - When leadership is lost, the context of lead ends, with [ErrLost] as its
//     cause, before another candidate can lead; the error is ErrLost. Whoever wants
//     to lead again calls Run again.
//
// Run waits for lead however long it takes: work that does not end with its
// context may go on beside that of the next leader. See [Elector.Check]. The
// context of lead carries its [Fence].
func (e *Elector) Run(ctx context.Context, lead func(ctx context.Context) error) error {
	if e.err != nil {
		return e.err
	}
	if !e.running.CompareAndSwap(false, true) {
		return fmt.Errorf("lease %s: %w", e.options.key(), ErrRunning)
	}
	defer e.running.Store(false)
	t := e.standby(ctx)
	if t == nil {
		return nil // ctx ended
	}
	err := t.serve(ctx, lead)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) && !errors.Is(err, ErrLost) {
		return nil
	}
	return err
}

// saw keeps what the lease says for Status, and tells of a new leader.
func (e *Elector) saw(r record) {
	e.mu.Lock()
	e.seen = r
	news := r.holder != "" && r.holder != e.reported
	if news {
		e.reported = r.holder
	}
	e.mu.Unlock()
	if !news {
		return
	}
	e.options.Logger.Info("new leader", "lease", e.options.key().String(), "leader", r.holder, "self", r.holder == e.options.Identity)
	if e.options.OnNewLeader != nil {
		e.options.OnNewLeader(r.holder)
	}
}

func (e *Elector) warn(ctx context.Context, message string, err error) {
	if ctx.Err() == nil {
		e.options.Logger.Warn(message, "lease", e.options.key().String(), "error", err)
	}
}

// pause waits a RetryPeriod, and up to a fifth more, so that candidates do not all
// come at once.
func (e *Elector) pause(ctx context.Context) {
	p := e.options.RetryPeriod
	sleep(ctx, p+rand.N(e.options.longestPause()-p+1))
}

// sleep returns early when the context ends.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
