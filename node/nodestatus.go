package node

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nodeStatus is the status of a node as a machine is now. It keeps what others wrote
// into the status before.
func nodeStatus(was corev1.NodeStatus, m Machine, runtime string, now time.Time) corev1.NodeStatus {
	s := *was.DeepCopy()
	s.Capacity, s.Allocatable = m.Capacity, m.Allocatable
	if s.Allocatable == nil {
		s.Allocatable = m.Capacity
	}
	s.Addresses, s.NodeInfo = m.Addresses, m.Info
	if s.NodeInfo.ContainerRuntimeVersion == "" {
		s.NodeInfo.ContainerRuntimeVersion = runtime + "://1"
	}
	s.DaemonEndpoints.KubeletEndpoint.Port = m.Port
	s.Conditions = slices.Clone(s.Conditions)
	set := func(of corev1.NodeConditionType, is bool, reason, message string) {
		setNodeCondition(&s.Conditions, of, is, reason, message, now)
	}
	if m.MemoryPressure {
		set(corev1.NodeMemoryPressure, true, "KubeletHasInsufficientMemory", "kubelet has insufficient memory available")
	} else {
		set(corev1.NodeMemoryPressure, false, "KubeletHasSufficientMemory", "kubelet has sufficient memory available")
	}
	if m.DiskPressure {
		set(corev1.NodeDiskPressure, true, "KubeletHasDiskPressure", "kubelet has disk pressure")
	} else {
		set(corev1.NodeDiskPressure, false, "KubeletHasNoDiskPressure", "kubelet has no disk pressure")
	}
	if m.PIDPressure {
		set(corev1.NodePIDPressure, true, "KubeletHasInsufficientPID", "kubelet has insufficient PID available")
	} else {
		set(corev1.NodePIDPressure, false, "KubeletHasSufficientPID", "kubelet has sufficient PID available")
	}
	if m.NotReady != "" {
		set(corev1.NodeReady, false, "KubeletNotReady", m.NotReady)
	} else {
		set(corev1.NodeReady, true, "KubeletReady", "kubelet is posting ready status")
	}
	return s
}

func setNodeCondition(all *[]corev1.NodeCondition, of corev1.NodeConditionType, is bool, reason, message string, now time.Time) {
	c := corev1.NodeCondition{
		Type: of, Status: corev1.ConditionFalse, Reason: reason, Message: message,
		LastHeartbeatTime: seconds(now), LastTransitionTime: seconds(now),
	}
	if is {
		c.Status = corev1.ConditionTrue
	}
	i := slices.IndexFunc(*all, func(c corev1.NodeCondition) bool { return c.Type == of })
	if i < 0 {
		*all = append(*all, c)
		return
	}
	if (*all)[i].Status == c.Status {
		c.LastTransitionTime = (*all)[i].LastTransitionTime
	}
	(*all)[i] = c
}

// withoutBeats is a status without the times that change each time it is written.
func withoutBeats(s corev1.NodeStatus) corev1.NodeStatus {
	s.Conditions = slices.Clone(s.Conditions)
	for i := range s.Conditions {
		s.Conditions[i].LastHeartbeatTime = metav1.Time{}
	}
	return s
}

// lastBeat is when the status of a node was last written.
func lastBeat(node *corev1.Node) time.Time {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.LastHeartbeatTime.Time
		}
	}
	return time.Time{}
}
