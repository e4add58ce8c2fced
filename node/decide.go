package node

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// view is all that a decision about a pod is made from.
type view struct {
	now  time.Time
	pod  *corev1.Pod
	seen Observed
	// known says that the runtime has the pod.
	known   bool
	hostIPs []string
	runtime string
	memory  memory
	options *Options
}

// memory is what the agent remembers of a pod besides.
type memory struct {
	// trouble is why containers did not start, by their names; "" is the pod itself.
	trouble map[string]trouble
	backoff map[string]backoff
	health  map[probeName]verdict
	// prepared are the annotations with which the pod was prepared; nil if it was not.
	prepared *map[string]string
	// refresh is when volumes are to be brought up to date; zero is never.
	refresh time.Time
}

// trouble is why something did not start, and when it is tried again.
type trouble struct {
	Failure
	tries int
	retry time.Time
}

// plan is what is to be done for a pod, in this order.
type plan struct {
	prepare bool
	stops   []stopping
	starts  []starting
	probes  []probing
	// status is how the pod is while nothing of that is done.
	status corev1.PodStatus
	notes  []note
	// over says that nothing of the pod runs, or ever will: the runtime may forget
	// it. gone says that the server is to forget it too.
	over, gone bool
	// next is when to decide again, if nothing happens before; zero is never.
	next time.Time
}

type starting struct {
	slot    *slot
	attempt int32
	backoff backoff // after it has started
}

type stopping struct {
	slot  *slot
	grace time.Duration
	why   string
}

// probing is a probe that is to be asked while a container runs.
type probing struct {
	name    probeName
	role    role
	probe   *corev1.Probe
	attempt int32
	from    time.Time
}

// note is an event to tell.
type note struct {
	slot         *slot
	warning      bool
	reason, text string
}

// decision is a plan in the making.
type decision struct {
	view
	plan
	slots []slot
	// waits is why slots wait, by their names.
	waits map[string]corev1.ContainerStateWaiting
	// reason and message are why the pod was ended.
	reason, message string
	ends, failed    bool
}

// decide says what is to be done for a pod. It is pure.
func decide(v view) plan {
	d := &decision{view: v, slots: slotsOf(v.pod, v.seen.Containers), waits: map[string]corev1.ContainerStateWaiting{}}
	d.wake(v.seen.Next)
	d.judge()
	if d.ends {
		d.end()
	} else {
		d.live()
	}
	d.tell()
	return d.plan
}

// wake has the pod be decided on at a time, if not earlier.
func (d *decision) wake(at time.Time) {
	if !at.IsZero() && (d.next.IsZero() || at.Before(d.next)) {
		d.next = at
	}
}

// judge finds out whether the pod is to end.
func (d *decision) judge() {
	was := &d.pod.Status
	switch {
	case was.Phase == corev1.PodFailed || was.Phase == corev1.PodSucceeded:
		d.ends, d.reason, d.message = true, was.Reason, was.Message
	case d.pod.DeletionTimestamp != nil:
		d.ends = true
	case d.deadlinePassed():
		d.ends, d.failed = true, true
		d.reason, d.message = "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"
	default:
		d.ends = !d.unasked() && d.finished()
	}
}

// unasked reports whether the runtime may have what ran before the agent started anew,
// and has yet to be asked: it takes up a pod when it prepares it.
func (d *decision) unasked() bool {
	if _, refused := d.memory.trouble[""]; refused || d.known {
		return false
	}
	return slices.ContainsFunc(d.slots, func(s slot) bool { return s.was != nil && s.was.State.Running != nil })
}

func (d *decision) deadlinePassed() bool {
	limit, start := d.pod.Spec.ActiveDeadlineSeconds, seconds(d.now)
	if limit == nil {
		return false
	}
	if d.pod.Status.StartTime != nil {
		start = *d.pod.Status.StartTime
	}
	at := start.Add(time.Duration(*limit) * time.Second)
	if !d.now.Before(at) {
		return true
	}
	d.wake(at)
	return false
}

// finished reports whether all that the pod was for is done, well or not.
func (d *decision) finished() bool {
	policy := d.pod.Spec.RestartPolicy
	done := func(s *slot) bool { return s.exited() && !s.restarts(policy) }
	for i := range d.slots {
		s := &d.slots[i]
		if s.role == initRole && done(s) && !s.succeeded() && !d.initialized() {
			d.failed = true
			return true
		}
	}
	for i := range d.slots {
		if s := &d.slots[i]; s.role == mainRole && !done(s) {
			return false
		}
	}
	return true
}

// initialized reports whether init containers are over and done with.
func (d *decision) initialized() bool {
	for i := range d.slots {
		if s := &d.slots[i]; s.role == mainRole && s.state != nil {
			return true
		}
	}
	for i := range d.slots {
		switch s := &d.slots[i]; {
		case s.role == initRole && !s.succeeded(), s.role == sidecar && !d.started(s):
			return false
		}
	}
	return true
}

// end has all containers end: sidecars after all others, the last first.
func (d *decision) end() {
	left := false
	for i := range d.slots {
		d.watchReadiness(&d.slots[i])
		if s := &d.slots[i]; s.role != sidecar && s.state.runs() {
			left = true
			d.stop(s, d.grace(), "Stopping container "+s.spec.Name)
		}
	}
	for i := range slices.Backward(d.slots) {
		if s := &d.slots[i]; s.role == sidecar && s.state.runs() && !left {
			left = true
			d.stop(s, max(d.grace(), 2*time.Second), "Stopping container "+s.spec.Name)
		}
	}
	d.over = !left
	d.gone = d.over && d.pod.DeletionTimestamp != nil &&
		(d.pod.DeletionGracePeriodSeconds == nil || *d.pod.DeletionGracePeriodSeconds > 0 || len(d.pod.Finalizers) == 0)
}

// grace is how long the pod's containers have to end, from now on.
func (d *decision) grace() time.Duration {
	if at := d.pod.DeletionTimestamp; at != nil {
		return max(at.Sub(d.now), 0)
	}
	if s := d.pod.Spec.TerminationGracePeriodSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return 30 * time.Second
}

// stop has a container end, unless it is about to in that time.
func (d *decision) stop(s *slot, grace time.Duration, why string) {
	by := s.state.StopBy
	if by.IsZero() || by.After(d.now.Add(grace+time.Second)) {
		d.stops = append(d.stops, stopping{s, grace, why})
	}
}

// live has the pod's containers run, in their order.
func (d *decision) live() {
	t, held := d.memory.trouble[""]
	if held = held && d.now.Before(t.retry); held {
		d.wake(t.retry)
	}
	if !d.known || d.memory.prepared == nil {
		d.prepare = !held
		return
	}
	d.prepare = !held && (d.stale() || !maps.Equal(d.pod.Annotations, *d.memory.prepared))
	initialized := d.initialized()
	for i := range d.slots {
		s := &d.slots[i]
		switch s.role {
		case initRole:
			if !initialized && !s.succeeded() {
				d.keep(s)
				return // those after it wait
			}
		case sidecar:
			d.keep(s)
			if !initialized && !d.started(s) {
				return
			}
		default:
			d.keep(s)
		}
	}
}

// stale reports whether it is time to look at the volumes' contents again.
func (d *decision) stale() bool {
	at := d.memory.refresh
	if at.IsZero() || !d.now.Before(at) {
		return !at.IsZero()
	}
	d.wake(at)
	return false
}

// keep has a container run, as far as it should.
func (d *decision) keep(s *slot) {
	switch {
	case s.state == nil:
		d.start(s, 0, d.now, d.memory.backoff[s.spec.Name])
	case s.state.Phase == Running:
		d.watchOver(s)
	case s.exited() && s.restarts(d.pod.Spec.RestartPolicy):
		ended := s.state.Exit.FinishedAt
		if ended.IsZero() {
			ended = d.now // nobody knows
		}
		at, after := d.memory.backoff[s.spec.Name].again(ended, d.options)
		d.start(s, s.state.Attempt+1, at, after)
	}
}

// start starts a container, unless it is not yet time.
func (d *decision) start(s *slot, attempt int32, at time.Time, after backoff) {
	name := s.spec.Name
	if t, bad := d.memory.trouble[name]; bad && d.now.Before(t.retry) {
		d.waits[name] = corev1.ContainerStateWaiting{Reason: t.Reason, Message: t.Message}
		d.wake(t.retry)
		return
	}
	if d.now.Before(at) {
		d.backsOff(s, at)
		return
	}
	d.starts = append(d.starts, starting{s, attempt, after})
}

func (d *decision) backsOff(s *slot, at time.Time) {
	d.wake(at)
	pod := d.pod
	name := fmt.Sprintf("%s_%s(%s)", pod.Name, pod.Namespace, pod.UID)
	d.waits[s.spec.Name] = corev1.ContainerStateWaiting{
		Reason:  reasonCrashLoop,
		Message: fmt.Sprintf("back-off %s restarting failed container=%s pod=%s", d.memory.backoff[s.spec.Name].delay, s.spec.Name, name),
	}
	if s.was == nil || s.was.State.Waiting == nil || s.was.State.Waiting.Reason != reasonCrashLoop {
		d.notes = append(d.notes, note{s, true, "BackOff", fmt.Sprintf("Back-off restarting failed container %s in pod %s", s.spec.Name, name)})
	}
}

// watchOver asks the probes of a container that runs, and has it end if they say so.
func (d *decision) watchOver(s *slot) {
	c := s.spec
	if s.role == initRole || s.role == ephemeral {
		return
	}
	if !s.state.StopBy.IsZero() {
		d.watchReadiness(s)
		return
	}
	if c.StartupProbe != nil {
		switch d.health(s, Startup) {
		case unhealthy:
			d.stop(s, d.probeGrace(c.StartupProbe), fmt.Sprintf("Container %s failed startup probe, will be restarted", c.Name))
			return
		case unknown:
			d.probe(s, Startup, c.StartupProbe)
			return
		}
	}
	if c.LivenessProbe != nil {
		if d.health(s, Liveness) == unhealthy {
			d.stop(s, d.probeGrace(c.LivenessProbe), fmt.Sprintf("Container %s failed liveness probe, will be restarted", c.Name))
			return
		}
		d.probe(s, Liveness, c.LivenessProbe)
	}
	d.watchReadiness(s)
}

// watchReadiness asks whether a container is ready, also while it ends.
func (d *decision) watchReadiness(s *slot) {
	if p := s.spec.ReadinessProbe; p != nil && d.started(s) {
		d.probe(s, Readiness, p)
	}
}

func (d *decision) health(s *slot, k ProbeKind) verdict {
	return d.memory.health[probeName{s.spec.Name, k}]
}

func (d *decision) probe(s *slot, k ProbeKind, p *corev1.Probe) {
	d.probes = append(d.probes, probing{probeName{s.spec.Name, k}, s.role, p, s.state.Attempt, s.state.StartedAt})
}

func (d *decision) probeGrace(p *corev1.Probe) time.Duration {
	if s := p.TerminationGracePeriodSeconds; s != nil {
		return time.Duration(*s) * time.Second
	}
	return d.grace()
}

// started reports whether a container runs and has said so itself, if it was asked.
func (d *decision) started(s *slot) bool {
	if s.state == nil || s.state.Phase != Running {
		return false
	}
	return s.spec.StartupProbe == nil || d.health(s, Startup) == healthy
}

// ready reports whether a container does what it is for.
func (d *decision) ready(s *slot) bool {
	if s.role == initRole {
		return s.succeeded()
	}
	return d.started(s) && (s.spec.ReadinessProbe == nil || d.health(s, Readiness) == healthy)
}
