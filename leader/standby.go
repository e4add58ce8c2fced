package leader

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
)

// candidacy is the time until a candidate leads.
//
// The invariant: a lease is taken only by a write on the condition that it still
// is as it was seen, after what was seen has been free or unchanged for its whole
// duration by our own clock. A leader stops leading RenewDeadline, which is less,
// after it sent what we saw later than that. A watch that lags behind or a clock
// that is wrong can so make a candidate wait, or its write fail, and no more.
type candidacy struct {
	*Elector
	sighting
	// sent is our last write, of which it may not be known whether it was done.
	sent *record
	// blind says that the lease may not be watched.
	blind bool
}

// standby returns when this candidate leads, or nil when ctx ends.
func (e *Elector) standby(ctx context.Context) *term {
	c := &candidacy{Elector: e}
	for ctx.Err() == nil {
		if err := c.look(ctx); err != nil {
			e.warn(ctx, "the lease cannot be read", err)
			e.pause(ctx)
			continue
		}
		if c.free() {
			if t := c.take(ctx); t != nil {
				return t
			}
			e.pause(ctx)
			continue
		}
		if !c.follow(ctx) {
			e.pause(ctx)
		}
	}
	return nil
}

// look reads the lease.
func (c *candidacy) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.options.patience())
	defer cancel()
	l, err := c.leases.Get(ctx, c.options.key())
	if client.IsNotFound(err) {
		l, err = nil, nil
	}
	if err == nil {
		c.observe(l)
	}
	return err
}

func (c *candidacy) observe(l *coordinationv1.Lease) {
	c.sighting.observe(l, time.Now())
	if l != nil {
		c.saw(c.record)
	}
}

// mine reports whether what the lease says is a write of ours whose answer did not
// arrive. Another of the same identity is another.
func (c *candidacy) mine() bool { return c.sent != nil && c.lease != nil && c.record.same(*c.sent) }

func (c *candidacy) free() bool {
	return c.mine() || !time.Now().Before(c.freeAt(c.options.LeaseDuration))
}

// follow watches the lease while it is held. It returns false if that cannot be
// done, or not any more.
func (c *candidacy) follow(ctx context.Context) bool {
	if c.blind || c.lease == nil {
		return false
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	until := func() time.Duration { return time.Until(c.freeAt(c.options.LeaseDuration)) }
	alarm := time.AfterFunc(until(), cancel)
	defer alarm.Stop()
	for event, err := range c.leases.Watch(ctx, client.Field("metadata.name", c.options.Name), client.From(c.lease.ResourceVersion)) {
		if err != nil {
			c.blind = client.IsForbidden(err)
			break
		}
		switch event.Type {
		case client.Added, client.Modified:
			c.observe(event.Object)
		case client.Deleted:
			c.observe(nil)
		}
		if c.free() {
			return true
		}
		alarm.Reset(until())
	}
	return c.free()
}

// take tries to become the leader, and returns nil if somebody else did, or it is
// not known who.
func (c *candidacy) take(ctx context.Context) *term {
	trying, cancel := context.WithTimeout(ctx, c.options.patience())
	defer cancel()
	sent := time.Now()
	next := c.next(sent)
	c.sent = &next
	lease, err := c.write(trying, next)
	switch {
	case client.IsConflict(err), client.IsAlreadyExists(err):
		return nil // somebody was quicker
	case err != nil:
		c.warn(ctx, "the lease cannot be taken", err)
		return nil
	}
	if t := newTerm(c.Elector, lease, sent); t.leads() {
		return t
	}
	return nil // it took too long: the next look tells whether it is still ours
}

// next is the record of the term that begins at a time.
func (c *candidacy) next(now time.Time) record {
	r := record{holder: c.options.Identity, duration: c.options.LeaseDuration, acquired: stamp(now), renewed: stamp(now)}
	switch {
	case c.mine():
		r.acquired, r.transitions = c.record.acquired, c.record.transitions
	case c.known:
		r.transitions = c.record.transitions + 1
	}
	return r
}

func (c *candidacy) write(ctx context.Context, r record) (*coordinationv1.Lease, error) {
	if c.lease == nil {
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: c.options.Namespace, Name: c.options.Name}}
		return c.leases.Create(ctx, r.onto(l))
	}
	return c.leases.Update(ctx, r.onto(c.lease))
}
