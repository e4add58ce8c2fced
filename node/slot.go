package node

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// role is what a container is in its pod.
type role uint8

const (
	initRole role = iota
	sidecar
	mainRole
	ephemeral
)

// path is where the pod has containers of the role, as events tell it.
func (r role) path() string {
	switch r {
	case initRole, sidecar:
		return "spec.initContainers"
	case ephemeral:
		return "spec.ephemeralContainers"
	default:
		return "spec.containers"
	}
}

// slot is a container that a pod has, and what has become of it.
type slot struct {
	spec *corev1.Container
	role role
	// state is what the runtime sees, or what the status tells of a container that the
	// runtime does not have any more; nil if it never ran.
	state *ContainerState
	was   *corev1.ContainerStatus
}

// slotsOf are the containers of a pod, in the order in which they start.
func slotsOf(pod *corev1.Pod, seen []ContainerState) []slot {
	spec, was := &pod.Spec, &pod.Status
	out := make([]slot, 0, len(spec.InitContainers)+len(spec.Containers)+len(spec.EphemeralContainers))
	for i := range spec.InitContainers {
		c, r := &spec.InitContainers[i], initRole
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			r = sidecar
		}
		out = append(out, newSlot(c, r, seen, was.InitContainerStatuses))
	}
	for i := range spec.Containers {
		out = append(out, newSlot(&spec.Containers[i], mainRole, seen, was.ContainerStatuses))
	}
	for i := range spec.EphemeralContainers {
		c := corev1.Container(spec.EphemeralContainers[i].EphemeralContainerCommon)
		out = append(out, newSlot(&c, ephemeral, seen, was.EphemeralContainerStatuses))
	}
	return out
}

func newSlot(c *corev1.Container, r role, seen []ContainerState, was []corev1.ContainerStatus) slot {
	s := slot{spec: c, role: r}
	if i := slices.IndexFunc(was, func(w corev1.ContainerStatus) bool { return w.Name == c.Name }); i >= 0 {
		s.was = &was[i]
	}
	if i := slices.IndexFunc(seen, func(w ContainerState) bool { return w.Name == c.Name }); i >= 0 {
		s.state = &seen[i]
	} else if s.was != nil {
		s.state = lost(s.was)
	}
	return s
}

// What is told of a container that ran when it was last heard of, and of which
// nobody knows how it ended.
const (
	lostReason  = "ContainerStatusUnknown"
	lostMessage = "The container could not be located when the pod was terminated"
	lostCode    = 137
)

// lost is the state of a container that only its status knows: that it ended.
func lost(was *corev1.ContainerStatus) *ContainerState {
	s := &ContainerState{Name: was.Name, Attempt: was.RestartCount, Phase: Exited, Last: exitOf(was.LastTerminationState.Terminated)}
	switch now := was.State; {
	case now.Terminated != nil:
		s.Exit = exitOf(now.Terminated)
	case now.Running != nil:
		s.Exit = &Exit{Code: lostCode, Reason: lostReason, Message: lostMessage, StartedAt: now.Running.StartedAt.Time}
		_, s.Exit.ID = splitID(was.ContainerID)
	case s.Last != nil: // it waited for its restart
		s.Exit, s.Last = s.Last, nil
	default:
		return nil
	}
	s.ID = s.Exit.ID
	return s
}

func exitOf(t *corev1.ContainerStateTerminated) *Exit {
	if t == nil {
		return nil
	}
	_, id := splitID(t.ContainerID)
	return &Exit{
		ID: id, Code: t.ExitCode, Signal: t.Signal, Reason: t.Reason, Message: t.Message,
		StartedAt: t.StartedAt.Time, FinishedAt: t.FinishedAt.Time,
	}
}

func (s *slot) exited() bool { return s.state != nil && s.state.Phase == Exited }

func (s *slot) succeeded() bool { return s.exited() && s.state.Exit.Code == 0 }

// restarts reports whether a container that has ended is to run again: its own rules
// come first, then its own policy, then the pod's.
func (s *slot) restarts(ofPod corev1.RestartPolicy) bool {
	code, policy := s.state.Exit.Code, ofPod
	switch {
	case s.role == ephemeral:
		return false
	case s.role == sidecar:
		return true
	case s.spec.RestartPolicy != nil:
		policy = corev1.RestartPolicy(*s.spec.RestartPolicy)
		for _, r := range s.spec.RestartPolicyRules {
			if e := r.ExitCodes; e != nil && slices.Contains(e.Values, code) == (e.Operator == corev1.ContainerRestartRuleOnExitCodesOpIn) {
				return r.Action == corev1.ContainerRestartRuleActionRestart
			}
		}
	}
	if s.role == initRole && policy == corev1.RestartPolicyAlways {
		policy = corev1.RestartPolicyOnFailure
	}
	return policy == corev1.RestartPolicyAlways || policy == corev1.RestartPolicyOnFailure && code != 0
}

// backoff is how long a container waits before it is started again.
type backoff struct {
	delay time.Duration
	since time.Time // when it was last made longer
}

// again says when a container that ended may start, and its backoff after that. The
// first restart is at once; then the delay doubles, until the container has run for
// twice the longest delay.
func (b backoff) again(ended time.Time, o *Options) (time.Time, backoff) {
	if b.delay == 0 || ended.Sub(b.since) > 2*o.MaxBackoff {
		return ended, backoff{delay: o.Backoff, since: ended}
	}
	at := ended.Add(b.delay)
	return at, backoff{delay: min(2*b.delay, o.MaxBackoff), since: at}
}
