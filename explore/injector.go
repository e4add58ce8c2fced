package explore

import (
	"context"
	"sync"
)

// injector stands between all processes of a controller and the server, and does what
// the plan of a run says, once. Writes that count are done one at a time, so that the
// state before and after each is one that a crash can leave behind.
type injector struct {
	plan plan
	*record
	// turn has the one token of those who write.
	turn chan struct{}
	// after is called when a write was done, and before anybody hears of it.
	after func(ctx context.Context, write string)

	mu    sync.Mutex
	fired bool
	open  map[*stream]bool
	// held are resources of which watches tell nothing until the channel is closed.
	held map[string]chan struct{}
	// gone is how many watches of a resource are to learn that history was dropped.
	gone map[string]int
	// revisions are those of the lists of resources before the present step.
	revisions map[string]string
	// behind says that the server is.
	behind bool
}

func newInjector(p plan, r *record) *injector {
	return &injector{
		plan: p, record: r, turn: make(chan struct{}, 1), open: map[*stream]bool{},
		held: map[string]chan struct{}{}, gone: map[string]int{},
	}
}

// fires reports whether this is the write at which the fault happens.
func (in *injector) fires(write string, nth int) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.fired || !in.plan.is(write, nth) {
		return false
	}
	in.fired = in.plan.fault != Stale && in.plan.fault != Behind // these have when they had an effect
	in.tell("%s", in.plan)
	return true
}

func (in *injector) hasFired() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.fired
}

// hold has watches of a resource tell nothing from now on.
func (in *injector) hold(resource string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.holdLocked(resource)
}

func (in *injector) holdLocked(resource string) {
	if in.held[resource] == nil {
		in.held[resource] = make(chan struct{})
	}
}

// release lets through what was held back, or has it never be seen, and reports whether
// there was anything held.
func (in *injector) release() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	for s := range in.open {
		if (in.plan.fault == Unobserved || in.plan.fault == Skipped) && in.held[s.resource] != nil {
			in.gone[s.resource]++
			s.cancel(errReset)
		}
	}
	had := len(in.held) > 0
	for _, opened := range in.held {
		close(opened)
	}
	clear(in.held)
	in.behind = false
	return had
}

// cut breaks all watches.
func (in *injector) cut() {
	in.mu.Lock()
	defer in.mu.Unlock()
	for s := range in.open {
		s.cancel(errReset)
	}
}

// begin notes the state before a step, and what is held back from it on.
func (in *injector) begin(step int, revisions map[string]string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.revisions = revisions
	in.begins(step)
	if in.plan.write == "" && in.plan.of != "" && in.plan.step == step {
		in.tell("%s", in.plan)
		in.holdLocked(in.plan.of)
	}
}

// fallBehind has the server be behind from now on, if that is the plan.
func (in *injector) fallBehind() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.behind = in.plan.fault == Behind
}

// backTo returns the revision at which a list is answered by a server that is behind.
func (in *injector) backTo(c call) (string, bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	revision, ok := in.revisions[c.path]
	if ok = ok && in.behind; ok {
		in.fired = true
		in.holdLocked(c.resource)
	}
	return revision, ok
}

// forgotten reports whether a watch that goes on from a revision comes too late.
func (in *injector) forgotten(c call) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.gone[c.resource] == 0 {
		return false
	}
	in.gone[c.resource]--
	return true
}
