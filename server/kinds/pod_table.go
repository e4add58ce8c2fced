package kinds

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func podRowConditions(obj runtime.Object) []metav1.TableRowCondition {
	done := func(phase corev1.PodPhase, message string) []metav1.TableRowCondition {
		return []metav1.TableRowCondition{{Type: metav1.RowCompleted, Status: metav1.ConditionTrue, Reason: string(phase), Message: message}}
	}
	switch obj.(*corev1.Pod).Status.Phase {
	case corev1.PodSucceeded:
		return done(corev1.PodSucceeded, "The pod has completed successfully.")
	case corev1.PodFailed:
		return done(corev1.PodFailed, "The pod failed.")
	}
	return nil
}

func podCells(pod *corev1.Pod, now metav1.Time) []any {
	s := summarize(pod)
	restarts := strconv.Itoa(s.restarts)
	if s.restarts > 0 && !s.lastRestart.IsZero() {
		restarts = fmt.Sprintf("%d (%s ago)", s.restarts, Age(s.lastRestart, now))
	}
	return []any{
		pod.Name, fmt.Sprintf("%d/%d", s.ready, s.containers), s.reason, restarts,
		Age(pod.CreationTimestamp, now),
		orElse(pod.Status.PodIP, "<none>"), orElse(pod.Spec.NodeName, "<none>"),
		orElse(pod.Status.NominatedNodeName, "<none>"), gatesCell(pod),
	}
}

// gatesCell counts the readiness gates that are open.
func gatesCell(pod *corev1.Pod) string {
	gates, open := pod.Spec.ReadinessGates, 0
	if len(gates) == 0 {
		return "<none>"
	}
	for _, g := range gates {
		if hasPodCondition(pod, g.ConditionType) {
			open++
		}
	}
	return fmt.Sprintf("%d/%d", open, len(gates))
}

// hasPodCondition goes by the first condition of a type.
func hasPodCondition(pod *corev1.Pod, t corev1.PodConditionType) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == t {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// podSummary is a pod's state in a few words.
type podSummary struct {
	reason            string
	containers, ready int
	restarts          int
	lastRestart       metav1.Time
}

func summarize(pod *corev1.Pod) podSummary {
	s := podSummary{reason: orElse(pod.Status.Reason, string(pod.Status.Phase)), containers: len(pod.Spec.Containers)}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonSchedulingGated {
			s.reason = corev1.PodReasonSchedulingGated
		}
	}
	sidecars := map[string]bool{}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; isSidecar(c) {
			sidecars[c.Name] = true
			s.containers++
		}
	}
	var ofSidecars podSummary
	initializing := s.addInit(pod, sidecars, &ofSidecars)
	if !initializing || hasPodCondition(pod, corev1.PodInitialized) {
		s.restarts, s.lastRestart = ofSidecars.restarts, ofSidecars.lastRestart
		s.addMain(pod)
	}
	switch terminal := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded; {
	case pod.DeletionTimestamp == nil:
	case pod.Status.Reason == "NodeLost":
		s.reason = "Unknown"
	case !terminal:
		s.reason = "Terminating"
	}
	return s
}

func (s *podSummary) addRestarts(c *corev1.ContainerStatus) {
	s.restarts += int(c.RestartCount)
	if end := c.LastTerminationState.Terminated; end != nil && s.lastRestart.Before(&end.FinishedAt) {
		s.lastRestart = end.FinishedAt
	}
}

// addInit goes through the init containers up to the first that is not done,
// which is the reason if there is one.
func (s *podSummary) addInit(pod *corev1.Pod, sidecars map[string]bool, ofSidecars *podSummary) bool {
	for i := range pod.Status.InitContainerStatuses {
		c := &pod.Status.InitContainerStatuses[i]
		s.addRestarts(c)
		if sidecars[c.Name] {
			ofSidecars.addRestarts(c)
		}
		if end := c.State.Terminated; end != nil && end.ExitCode == 0 {
			continue
		}
		if sidecars[c.Name] && c.Started != nil && *c.Started {
			if c.Ready {
				s.ready++
			}
			continue
		}
		switch {
		case c.State.Terminated != nil:
			s.reason = "Init:" + endReason(c.State.Terminated)
		case c.State.Waiting != nil && c.State.Waiting.Reason != "" && c.State.Waiting.Reason != "PodInitializing":
			s.reason = "Init:" + c.State.Waiting.Reason
		default:
			s.reason = fmt.Sprintf("Init:%d/%d", i, len(pod.Spec.InitContainers))
		}
		return true
	}
	return false
}

func endReason(end *corev1.ContainerStateTerminated) string {
	switch {
	case end.Reason != "":
		return end.Reason
	case end.Signal != 0:
		return fmt.Sprintf("Signal:%d", end.Signal)
	}
	return fmt.Sprintf("ExitCode:%d", end.ExitCode)
}

// addMain goes through the regular containers; of those with a reason the first
// has the last word.
func (s *podSummary) addMain(pod *corev1.Pod) {
	running, failed := false, ""
	for i := len(pod.Status.ContainerStatuses) - 1; i >= 0; i-- {
		c := &pod.Status.ContainerStatuses[i]
		s.addRestarts(c)
		switch {
		case c.State.Waiting != nil && c.State.Waiting.Reason != "":
			s.reason = c.State.Waiting.Reason
		case c.State.Terminated != nil:
			s.reason = endReason(c.State.Terminated)
			if c.State.Terminated.ExitCode != 0 {
				failed = s.reason
			}
		case c.Ready && c.State.Running != nil:
			running = true
			s.ready++
		}
	}
	if s.reason != "Completed" {
		return
	}
	switch {
	case running && hasPodCondition(pod, corev1.PodReady):
		s.reason = "Running"
	case failed != "":
		s.reason = failed
	case running:
		s.reason = "NotReady"
	}
}
