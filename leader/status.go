package leader

import (
	"fmt"
	"time"
)

// Status is what a candidate knows of the election.
type Status struct {
	// Leader is who leads as far as is known; "" is nobody.
	Leader string
	// Leading says that it is this candidate.
	Leading bool
	// Since is when the leader took the lease, and Renewed when it last renewed it,
	// both by the leader's clock.
	Since, Renewed time.Time
	// Transitions is how often the lease went from one to another.
	Transitions int
}

// Status tells who leads, and since when. It sends nothing.
func (e *Elector) Status() Status {
	e.mu.Lock()
	r, t := e.seen, e.term
	e.mu.Unlock()
	return Status{
		Leader: r.holder, Leading: t != nil && t.leads(),
		Since: r.acquired, Renewed: r.renewed, Transitions: int(r.transitions),
	}
}

// Leading reports whether this candidate leads: by its own clock, nobody else can
// yet.
func (e *Elector) Leading() bool {
	_, ok := e.Fence()
	return ok
}

// Fence names the present time of leadership, if this candidate leads.
func (e *Elector) Fence() (Fence, bool) {
	e.mu.Lock()
	t := e.term
	e.mu.Unlock()
	if t == nil || !t.leads() {
		return Fence{}, false
	}
	return t.fence, true
}

// MasterStatus is the value of the metric leader_election_master_status, whose
// label name is the lease's: 1 for the leader, 0 for others.
func (e *Elector) MasterStatus() float64 {
	if e.Leading() {
		return 1
	}
	return 0
}

// Check is an error if leadership is lost and the work has not ended within grace
// since: such a process should be restarted, which a liveness probe does.
func (e *Elector) Check(grace time.Duration) error {
	e.mu.Lock()
	t := e.term
	e.mu.Unlock()
	if t == nil {
		return nil
	}
	if late := t.late(); late > grace {
		return fmt.Errorf("the work has not ended for %s: %w", late.Round(time.Millisecond), t.failure())
	}
	return nil
}
