package simulated

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/even-keel/evenkeel/node"
)

// The annotations that pods can have.
const (
	StartDelay = "evenkeel.dev/start-delay"
	RunFor     = "evenkeel.dev/run-for"
	ExitCode   = "evenkeel.dev/exit-code"
	StopDelay  = "evenkeel.dev/stop-delay"
	StopCode   = "evenkeel.dev/stop-code"
	FailStart  = "evenkeel.dev/fail-start"
	FailProbe  = "evenkeel.dev/fail-probe"
)

// killed is the exit code of what is killed.
const killed = 137

// container is one that is pretended to run: from its start to its end, both of
// which may be yet to come.
type container struct {
	name, id  string
	attempt   int32
	startedAt time.Time
	endsAt    time.Time // zero is never
	stopBy    time.Time
	code      int32
	last      *node.Exit
}

func begun(name, id string, attempt int32, l Life, at time.Time) container {
	c := container{name: name, id: id, attempt: attempt, startedAt: at, code: l.ExitCode}
	if l.RunFor > 0 {
		c.endsAt = at.Add(l.RunFor)
	}
	return c
}

// adopt takes up a container that runs by its pod's status.
func (r *Runtime) adopt(p node.Pod, was *corev1.ContainerStatus) container {
	life, err := r.lifeOf(p.Object.Annotations, was.Name)
	if err != nil {
		life = Life{}
	}
	return begun(was.Name, idFor(p.ID, was.Name, was.RestartCount), was.RestartCount, life, was.State.Running.StartedAt.Time)
}

func (p *pod) find(name string) *container {
	for i := range p.containers {
		if p.containers[i].name == name {
			return &p.containers[i]
		}
	}
	return nil
}

func (c *container) ended(now time.Time) bool { return !c.endsAt.IsZero() && !now.Before(c.endsAt) }

// state is what a container is at a time.
func (c *container) state(now time.Time) node.ContainerState {
	s := node.ContainerState{Name: c.name, ID: c.id, Attempt: c.attempt, StopBy: c.stopBy, Last: c.last}
	switch {
	case c.ended(now):
		s.Phase, s.StartedAt = node.Exited, c.startedAt
		s.Exit = &node.Exit{ID: c.id, Code: c.code, StartedAt: c.startedAt, FinishedAt: c.endsAt}
	case now.Before(c.startedAt):
		s.Phase = node.Starting
	default:
		s.Phase, s.StartedAt = node.Running, c.startedAt
	}
	return s
}

// next is when the state will be another; zero if never.
func (c *container) next(now time.Time) time.Time {
	switch {
	case c.ended(now):
		return time.Time{}
	case now.Before(c.startedAt) && (c.endsAt.IsZero() || c.startedAt.Before(c.endsAt)):
		return c.startedAt
	}
	return c.endsAt
}

// stop has a container end when its life says, but within the grace period.
func (c *container) stop(now time.Time, grace time.Duration, l Life) {
	if c.ended(now) {
		return
	}
	end, code := now.Add(l.StopDelay), l.StopCode
	if !c.stopBy.IsZero() && c.endsAt.Before(end) {
		end, code = c.endsAt, c.code // it was told before
	}
	by := now.Add(grace)
	if c.stopBy.IsZero() || by.Before(c.stopBy) {
		c.stopBy = by
	}
	if end.After(c.stopBy) {
		end, code = c.stopBy, killed
	}
	if !c.endsAt.IsZero() && c.endsAt.Before(end) {
		return // by itself, before that
	}
	c.end(end, code)
}

// end has a container end at a time.
func (c *container) end(at time.Time, code int32) {
	if c.startedAt.After(at) {
		c.startedAt = at
	}
	c.endsAt, c.code = at, code
}

// idFor is the ID of a container: the same for the same.
func idFor(id node.PodID, name string, attempt int32) string {
	return string(id.UID) + "-" + name + "-" + strconv.Itoa(int(attempt))
}

// lifeOf is how a container behaves: as the runtime's options say, and the pod's
// annotations.
func (r *Runtime) lifeOf(annotations map[string]string, name string) (Life, error) {
	l := r.options.Life
	for _, s := range []struct {
		annotation string
		set        func(string) error
	}{
		{StartDelay, duration(&l.StartDelay)},
		{RunFor, duration(&l.RunFor)},
		{StopDelay, duration(&l.StopDelay)},
		{ExitCode, code(&l.ExitCode)},
		{StopCode, code(&l.StopCode)},
		{FailStart, text(&l.FailStart)},
		{FailProbe, text(&l.FailProbes)},
	} {
		for _, key := range []string{s.annotation, s.annotation + "." + name} {
			v, there := annotations[key]
			if !there {
				continue
			}
			if err := s.set(v); err != nil {
				return l, fmt.Errorf("annotation %s: %w", key, err)
			}
		}
	}
	return l, nil
}

func duration(into *time.Duration) func(string) error {
	return func(s string) (err error) {
		*into, err = time.ParseDuration(s)
		return err
	}
}

func code(into *int32) func(string) error {
	return func(s string) error {
		n, err := strconv.ParseUint(s, 10, 8)
		*into = int32(n)
		return err
	}
}

func text(into *string) func(string) error {
	return func(s string) error {
		*into = s
		return nil
	}
}
