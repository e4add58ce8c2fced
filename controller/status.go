package controller

import (
	"sync/atomic"
	"time"

	"github.com/even-keel/evenkeel/informer"
	"github.com/even-keel/evenkeel/workqueue"
)

// Phase is what a controller is doing.
type Phase string

// The phases of a controller.
const (
	// Stopped: it has not been run, or its run has ended. A standby is stopped.
	Stopped Phase = "stopped"
	// Waiting is for the first state of what it watches.
	Waiting Phase = "waiting"
	Running Phase = "running"
	// Stopping: reconciles that run are to finish.
	Stopping Phase = "stopping"
)

// Status says how a controller is.
type Status struct {
	Name    string
	Phase   Phase
	Workers int
	// Lacks is what keeps it from working as it should, nil if nothing does: an
	// informer that is not up to date, since a kind does not exist, a right is
	// missing or the server is not there. It heals by itself.
	Lacks error
	// Queue has the figures of the queue, zero unless it runs.
	Queue workqueue.Stats
	// Active is how many workers are at work.
	Active int
	// Results counts reconciles: success, requeue, requeue_after, error and
	// terminal_error.
	Results map[string]uint64
	// Panics counts panics, of the reconciler and of functions that map.
	Panics uint64
	// Ignored counts what [IgnoreOwnWrites] left out.
	Ignored uint64
	// Hot are the keys that keep causing their own reconciles, and HotTotal is how
	// many have.
	Hot      []HotLoop
	HotTotal uint64
	// Took is how long reconciles took.
	Took Durations
}

// Status tells how the controller is. It sends nothing.
func (c *Controller) Status() Status {
	s := Status{
		Name: c.name, Workers: c.workers, Lacks: c.lacks(), Active: int(c.counts.active.Load()),
		Results: c.counts.results(), Panics: c.counts.panics.Load(), Ignored: c.counts.ignored.Load(), Took: c.counts.durations(),
	}
	s.Hot, s.HotTotal = c.loops.hot()
	if q := c.queue.Load(); q != nil {
		s.Queue = q.Stats()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Phase = c.phase
	return s
}

// lacks is the first error of the informers it needs.
func (c *Controller) lacks() error {
	if c.base == nil {
		return nil
	}
	for _, s := range c.sources {
		if err := s.status().Err; err != nil {
			return &lack{s.about(), err}
		}
	}
	return nil
}

// lack is why a source has nothing to tell.
type lack struct {
	kind string
	err  error
}

func (l *lack) Error() string { return "cannot watch " + l.kind + ": " + l.err.Error() }
func (l *lack) Unwrap() error { return l.err }

// Informers are those the controller needs.
func (c *Controller) Informers() []informer.Status {
	var out []informer.Status
	for _, s := range c.sources {
		if c.base != nil {
			out = append(out, s.status())
		}
	}
	return out
}

// Queued returns what the queue holds, limit keys at most.
func (c *Controller) Queued(limit int) []workqueue.Status[Key] {
	if q := c.queue.Load(); q != nil {
		return q.Snapshot(limit)
	}
	return nil
}

// Recent returns the last reconciles, the newest first.
func (c *Controller) Recent() []Reconcile { return c.history.newest() }

func (c *Controller) enter(p Phase) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.phase = p
}

// counts are figures since the controller was made.
type counts struct {
	active          atomic.Int64
	panics, ignored atomic.Uint64
	byResult        [len(outcomes)]atomic.Uint64
	buckets         [len(bounds)]atomic.Uint64 // each by itself
	count           atomic.Uint64
	sum             atomic.Int64
}

var outcomes = [...]string{"success", "requeue", "requeue_after", outcomeError, outcomeTerminal}

// bounds are those of controller_runtime_reconcile_time_seconds.
var bounds = [...]time.Duration{
	5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond,
	150 * time.Millisecond, 200 * time.Millisecond, 250 * time.Millisecond, 300 * time.Millisecond, 350 * time.Millisecond,
	400 * time.Millisecond, 450 * time.Millisecond, 500 * time.Millisecond, 600 * time.Millisecond, 700 * time.Millisecond,
	800 * time.Millisecond, 900 * time.Millisecond, 1 * time.Second, 1250 * time.Millisecond, 1500 * time.Millisecond,
	1750 * time.Millisecond, 2 * time.Second, 2500 * time.Millisecond, 3 * time.Second, 3500 * time.Millisecond,
	4 * time.Second, 4500 * time.Millisecond, 5 * time.Second, 6 * time.Second, 7 * time.Second, 8 * time.Second,
	9 * time.Second, 10 * time.Second, 15 * time.Second, 20 * time.Second, 25 * time.Second, 30 * time.Second,
	40 * time.Second, 50 * time.Second, 60 * time.Second,
}

// Durations counts durations by their upper bounds.
type Durations struct {
	Count uint64
	Sum   time.Duration
	// Bounds has how many did not pass each bound.
	Bounds map[time.Duration]uint64
}

func (c *counts) took(outcome string, d time.Duration) {
	for i, o := range outcomes {
		if o == outcome {
			c.byResult[i].Add(1)
		}
	}
	for i, bound := range bounds {
		if d <= bound {
			c.buckets[i].Add(1)
			break
		}
	}
	c.count.Add(1)
	c.sum.Add(int64(d))
}

func (c *counts) results() map[string]uint64 {
	out := map[string]uint64{}
	for i, o := range outcomes {
		out[o] = c.byResult[i].Load()
	}
	return out
}

func (c *counts) durations() Durations {
	d := Durations{Count: c.count.Load(), Sum: time.Duration(c.sum.Load()), Bounds: map[time.Duration]uint64{}}
	var sum uint64
	for i, bound := range bounds {
		sum += c.buckets[i].Load()
		d.Bounds[bound] = sum
	}
	return d
}
