package explore

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
)

// run is one time that the steps are taken.
type run struct {
	s    *Scenario
	conn *client.Conn
	cfg  *rest.Config
	in   *injector
	// began is the revision before the run.
	began  uint64
	states []map[string]string

	mu     sync.Mutex
	broken error // the first that Always said, or why the controller ended
}

// outcome is what came of a run.
type outcome struct {
	*record
	err error
	// states are what there was at rest after each step.
	states []map[string]string
	fired  bool
}

// once runs a plan on a server. The resources are those to compare; none means all
// that were written.
func (s *Scenario) once(ctx context.Context, cfg *rest.Config, p plan, paths []string) outcome {
	r := &run{s: s, cfg: cfg, in: newInjector(p, newRecord())}
	r.in.paths = append(r.in.paths, paths...)
	r.in.after = r.check
	err := r.do(ctx)
	return outcome{record: r.in.record, err: err, states: r.states, fired: r.in.hasFired()}
}

// do takes the steps while the controller lives.
func (r *run) do(ctx context.Context) (err error) {
	if r.conn, err = client.Connect(r.watched(r.cfg)); err != nil {
		return err
	}
	if r.began, err = start(ctx, r.conn); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.live(ctx)
	}()
	err = r.steps(ctx)
	cancel()
	select {
	case <-ended:
	case <-time.After(restAfter * r.s.Quiet):
		err = errors.Join(err, errEndless)
	}
	return err
}

// steps takes one after the other, and notes what there is after each.
func (r *run) steps(ctx context.Context) error {
	now, err := r.rest(ctx, -1)
	if err != nil {
		return fmt.Errorf("before the first step: %w", err)
	}
	for i, step := range r.s.Steps {
		r.in.begin(i, now.revisions)
		if err := step(ctx, r.conn); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
		if now, err = r.rest(ctx, i); err != nil {
			return fmt.Errorf("after step %d: %w", i+1, err)
		}
		r.states = append(r.states, now.normal(r.in.record, r.began, r.s.Keep))
	}
	if r.s.End == nil {
		return nil
	}
	return r.s.End(ctx, r.conn)
}

// watched is a configuration whose writes are noted.
func (r *run) watched(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport(func(req *http.Request) (*http.Response, error) {
			if c := parse(req); c.counts(req.URL.Query()) {
				r.in.touched(c)
			}
			return next.RoundTrip(req)
		})
	})
	return cfg
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(req *http.Request) (*http.Response, error) { return t(req) }

// live runs the controller until ctx ends, and again each time that it has crashed.
func (r *run) live(ctx context.Context) {
	for ctx.Err() == nil {
		p := &process{injector: r.in}
		p.dead, p.kill = context.WithCancelCause(ctx)
		cfg := rest.CopyConfig(r.cfg)
		cfg.ContentType, cfg.AcceptContentTypes = "application/json", "application/json" // names are read
		cfg.Wrap(p.wrap)
		err := r.s.Controller(p.dead, cfg)
		crashed := p.crashed()
		p.kill(nil)
		if !crashed && ctx.Err() == nil {
			r.fault(fmt.Errorf("the controller has ended: %v", err))
			return
		}
		if crashed {
			r.in.tell("the controller starts anew")
		}
	}
}

// fault notes the first error.
func (r *run) fault(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken == nil {
		r.broken = err
	}
}

func (r *run) faulty() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.broken
}

// check asks what must always be true.
func (r *run) check(ctx context.Context, when string) {
	if r.s.Always == nil {
		return
	}
	if err := r.s.Always(ctx, r.conn); err != nil {
		r.in.tell("not true: %v", err)
		r.fault(fmt.Errorf("after %s: %w", when, err))
	}
}

// The patience with a controller, in periods of quiet.
const (
	holdFor   = 3  // what is held back is let through then, rest or not
	restAfter = 30 // it never comes to rest
)

var (
	errRestless = errors.New("the controller does not come to rest")
	errEndless  = errors.New("the controller does not end when its context does")
)

// rest returns what there is when nothing has been written for the period of quiet, and
// nothing is held back but what is for the steps to come.
func (r *run) rest(ctx context.Context, step int) (snapshot, error) {
	mark := ""
	for period := range restAfter {
		now, err := read(ctx, r.conn, r.in.resources())
		if err != nil {
			return now, err
		}
		now.learn(r.in.record)
		was := mark
		mark = fmt.Sprint(r.in.count(), now.mark())
		if err := r.faulty(); err != nil {
			return now, err
		}
		quiet := period > 0 && mark == was
		if (quiet || period >= holdFor) && !r.keepsHolding(step) && r.in.release() {
			r.in.tell("what was held back is let through")
			quiet = false
		}
		if quiet {
			r.in.turn <- struct{}{} // nobody writes
			r.check(ctx, "it came to rest")
			<-r.in.turn
			return now, r.faulty()
		}
		select {
		case <-time.After(r.s.Quiet):
		case <-ctx.Done():
			return now, ctx.Err()
		}
	}
	return snapshot{}, fmt.Errorf("%w in %v", errRestless, restAfter*r.s.Quiet)
}

// keepsHolding reports whether the next step is part of what is not to be seen.
func (r *run) keepsHolding(step int) bool {
	p := r.in.plan
	return p.fault == Skipped && p.step == step
}
