package simulated

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/even-keel/evenkeel/node"
)

// Logs writes the only line that a container has: since when it is pretended to run.
// Who follows waits until the container has ended.
func (r *Runtime) Logs(ctx context.Context, id node.PodID, name string, o node.LogOptions, w io.Writer) error {
	state, next, err := r.look(id, name)
	if err != nil {
		return err
	}
	since := state.StartedAt
	if o.Previous {
		if state.Last == nil {
			return fmt.Errorf("previous %s of %s: %w", name, id.Key, node.ErrNoLog)
		}
		since = state.Last.StartedAt
	}
	line := fmt.Sprintf("simulated: %s of %s runs\n", name, id.Key)
	if o.Timestamps {
		line = since.UTC().Format(time.RFC3339Nano) + " " + line
	}
	if o.Limit > 0 {
		line = line[:min(int64(len(line)), o.Limit)]
	}
	if o.Tail != 0 && !since.Before(o.Since) && o.Stream != "stderr" && !since.IsZero() {
		if _, err := io.WriteString(w, line); err != nil {
			return err
		}
	}
	for attempt := state.Attempt; o.Follow && !o.Previous && err == nil && state.Attempt == attempt && state.Phase != node.Exited; {
		if !pause(ctx, next) {
			return nil
		}
		state, next, err = r.look(id, name)
	}
	return nil
}

// lookEvery is how often a container that is followed is looked at.
const lookEvery = time.Second

// pause waits until a time, and a second at most: a container may be told to end. It
// reports whether ctx goes on.
func pause(ctx context.Context, until time.Time) bool {
	wait := lookEvery
	if !until.IsZero() {
		wait = min(wait, time.Until(until))
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// look tells how a container is, and when that changes by itself.
func (r *Runtime) look(id node.PodID, name string) (node.ContainerState, time.Time, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pods[id]
	if p == nil {
		return node.ContainerState{}, time.Time{}, fmt.Errorf("%s: %w", id.Key, node.ErrUnknownPod)
	}
	c, now := p.find(name), time.Now()
	if c == nil {
		return node.ContainerState{}, time.Time{}, fmt.Errorf("%s of %s: %w", name, id.Key, node.ErrNoLog)
	}
	return c.state(now), c.next(now), nil
}
