package node

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// seconds is a time as statuses can tell it.
func seconds(t time.Time) metav1.Time { return metav1.Time{Time: t.Truncate(time.Second)} }

// tell makes the status of the pod. It keeps what others wrote into it.
func (d *decision) tell() {
	was := &d.pod.Status
	s := was.DeepCopy()
	d.status = *s
	now := &d.status
	now.ObservedGeneration = d.pod.Generation
	if now.StartTime == nil {
		at := seconds(d.now)
		now.StartTime = &at
	}
	now.InitContainerStatuses = d.statuses(was.InitContainerStatuses, initRole, sidecar)
	now.ContainerStatuses = d.statuses(was.ContainerStatuses, mainRole)
	now.EphemeralContainerStatuses = d.statuses(was.EphemeralContainerStatuses, ephemeral)
	now.Phase = d.phase()
	now.Reason, now.Message = "", ""
	if d.ends && d.over {
		now.Reason, now.Message = d.reason, d.message
	}
	d.addresses()
	d.conditions()
}

func (d *decision) addresses() {
	now := &d.status
	now.HostIPs, now.HostIP = nil, ""
	for _, ip := range d.hostIPs {
		now.HostIPs = append(now.HostIPs, corev1.HostIP{IP: ip})
	}
	if len(d.hostIPs) > 0 {
		now.HostIP = d.hostIPs[0]
	}
	ips := d.seen.IPs
	if d.pod.Spec.HostNetwork {
		ips = d.hostIPs
	}
	if len(ips) == 0 {
		return // as they were: the pod has none any more
	}
	now.PodIP, now.PodIPs = ips[0], nil
	for _, ip := range ips {
		now.PodIPs = append(now.PodIPs, corev1.PodIP{IP: ip})
	}
}

// statuses are those of the containers with one of the roles.
func (d *decision) statuses(was []corev1.ContainerStatus, roles ...role) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for i := range d.slots {
		if s := &d.slots[i]; slices.Contains(roles, s.role) {
			out = append(out, d.containerStatus(s))
		}
	}
	if len(out) == 0 {
		return was
	}
	return out
}

func (d *decision) containerStatus(s *slot) corev1.ContainerStatus {
	c := s.spec
	started := d.started(s)
	out := corev1.ContainerStatus{Name: c.Name, Image: c.Image, Ready: d.ready(s), Started: &started}
	if s.was != nil {
		out.ImageID, out.RestartCount = s.was.ImageID, s.was.RestartCount
	}
	if c.Resources.Requests != nil || c.Resources.Limits != nil {
		out.Resources, out.AllocatedResources = c.Resources.DeepCopy(), c.Resources.Requests.DeepCopy()
	}
	if s.state != nil {
		out.RestartCount, out.ImageID = s.state.Attempt, c.Image
		out.ContainerID = d.id(s.state.ID)
	}
	out.State, out.LastTerminationState = d.states(s)
	return out
}

// states are what a container is now, and how the one before it ended.
func (d *decision) states(s *slot) (now, last corev1.ContainerState) {
	if s.state == nil {
		return corev1.ContainerState{Waiting: d.waiting(s)}, last
	}
	if s.state.Last != nil {
		last.Terminated = d.terminated(s.state.Last)
	}
	switch s.state.Phase {
	case Running:
		now.Running = &corev1.ContainerStateRunning{StartedAt: seconds(s.state.StartedAt)}
	case Starting:
		now.Waiting = d.waiting(s)
	default:
		if w, waits := d.waits[s.spec.Name]; waits {
			return corev1.ContainerState{Waiting: &w}, corev1.ContainerState{Terminated: d.terminated(s.state.Exit)}
		}
		now.Terminated = d.terminated(s.state.Exit)
	}
	return now, last
}

func (d *decision) waiting(s *slot) *corev1.ContainerStateWaiting {
	if w, known := d.waits[s.spec.Name]; known {
		return &w
	}
	if s.role != ephemeral && len(d.pod.Spec.InitContainers) > 0 && !d.initialized() {
		return &corev1.ContainerStateWaiting{Reason: reasonInitializing}
	}
	return &corev1.ContainerStateWaiting{Reason: reasonCreating}
}

func (d *decision) terminated(e *Exit) *corev1.ContainerStateTerminated {
	reason := e.Reason
	switch {
	case reason != "":
	case e.Code == 0:
		reason = "Completed"
	default:
		reason = "Error"
	}
	return &corev1.ContainerStateTerminated{
		ExitCode: e.Code, Signal: e.Signal, Reason: reason, Message: e.Message, ContainerID: d.id(e.ID),
		StartedAt: seconds(e.StartedAt), FinishedAt: seconds(e.FinishedAt),
	}
}

func (d *decision) id(of string) string {
	if of == "" {
		return ""
	}
	return d.runtime + "://" + of
}

// splitID takes the ID of a container apart: which runtime's, and which.
func splitID(id string) (runtime, of string) {
	runtime, of, _ = strings.Cut(id, "://")
	return runtime, of
}

// phase is that of the whole pod.
func (d *decision) phase() corev1.PodPhase {
	if was := d.pod.Status.Phase; was == corev1.PodFailed || was == corev1.PodSucceeded {
		return was
	}
	ran, runs, succeeded := true, false, true
	for i := range d.slots {
		s := &d.slots[i]
		if s.role != mainRole {
			continue
		}
		ran = ran && s.state != nil && s.state.Phase != Starting
		runs = runs || s.state.runs()
		succeeded = succeeded && s.succeeded()
	}
	switch {
	case d.ends && d.over && succeeded && !d.failed:
		return corev1.PodSucceeded
	case d.ends && d.over:
		return corev1.PodFailed
	case ran:
		return corev1.PodRunning
	case runs && d.pod.Status.Phase == corev1.PodRunning: // one is being started again
		return corev1.PodRunning
	}
	return corev1.PodPending
}

// conditions brings the agent's conditions up to date, and leaves those of others.
func (d *decision) conditions() {
	d.condition(corev1.PodReadyToStartContainers, d.known && !(d.ends && d.over), "", "")
	d.tellInitialized()
	ok, reason, message := d.containersReady()
	d.condition(corev1.ContainersReady, ok, reason, message)
	if ok {
		ok, reason, message = d.gatesReady()
	}
	d.condition(corev1.PodReady, ok, reason, message)
	d.condition(corev1.PodScheduled, true, "", "")
}

func (d *decision) tellInitialized() {
	var not []string
	for i := range d.slots {
		s := &d.slots[i]
		if s.role == initRole && !s.succeeded() || s.role == sidecar && !d.started(s) {
			not = append(not, s.spec.Name)
		}
	}
	switch {
	case d.status.Phase == corev1.PodSucceeded:
		d.condition(corev1.PodInitialized, true, "PodCompleted", "")
	case len(not) == 0 || d.initialized():
		d.condition(corev1.PodInitialized, true, "", "")
	default:
		d.condition(corev1.PodInitialized, false, "ContainersNotInitialized", "containers with incomplete status: "+brackets(not))
	}
}

func (d *decision) containersReady() (ok bool, reason, message string) {
	switch d.status.Phase {
	case corev1.PodSucceeded:
		return false, "PodCompleted", ""
	case corev1.PodFailed:
		return false, "PodFailed", ""
	}
	var not []string
	for i := range d.slots {
		if s := &d.slots[i]; (s.role == mainRole || s.role == sidecar) && !d.ready(s) {
			not = append(not, s.spec.Name)
		}
	}
	if len(not) > 0 {
		return false, "ContainersNotReady", "containers with unready status: " + brackets(not)
	}
	return true, "", ""
}

// gatesReady asks the conditions that others write.
func (d *decision) gatesReady() (ok bool, reason, message string) {
	var not []string
	for _, g := range d.pod.Spec.ReadinessGates {
		i := slices.IndexFunc(d.status.Conditions, func(c corev1.PodCondition) bool { return c.Type == g.ConditionType })
		switch {
		case i < 0:
			not = append(not, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", g.ConditionType))
		case d.status.Conditions[i].Status != corev1.ConditionTrue:
			not = append(not, fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %v", g.ConditionType, d.status.Conditions[i].Status))
		}
	}
	if len(not) > 0 {
		return false, "ReadinessGatesNotReady", strings.Join(not, ", ")
	}
	return true, "", ""
}

func (d *decision) condition(of corev1.PodConditionType, ok bool, reason, message string) {
	c := corev1.PodCondition{
		Type: of, Status: corev1.ConditionFalse, Reason: reason, Message: message,
		ObservedGeneration: d.pod.Generation, LastTransitionTime: seconds(d.now),
	}
	if ok {
		c.Status = corev1.ConditionTrue
	}
	all := &d.status.Conditions
	i := slices.IndexFunc(*all, func(c corev1.PodCondition) bool { return c.Type == of })
	if i < 0 {
		*all = append(*all, c)
		return
	}
	if (*all)[i].Status == c.Status {
		c.LastTransitionTime = (*all)[i].LastTransitionTime
	}
	c.LastProbeTime = (*all)[i].LastProbeTime
	(*all)[i] = c
}

func brackets(names []string) string { return "[" + strings.Join(names, " ") + "]" }
