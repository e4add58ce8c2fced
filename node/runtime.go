package node

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/even-keel/evenkeel/client"
)

// Runtime runs the containers of pods, of one node or of many.
//
// Its methods may be called by many goroutines. Of Prepare, Start, Stop and Remove,
// there is one call at a time for a pod.
type Runtime interface {
	// Name begins the IDs of containers and is a part of the runtime's version:
	// "process".
	Name() string
	// Files reports whether the runtime uses the files of volumes. If not, these are
	// looked for when a pod begins, and never brought up to date.
	Files() bool
	// Machine tells what a node has, and how it is.
	Machine(node string) Machine

	// Run works until ctx ends, and returns when nothing of the runtime runs any
	// more. It calls changed for each pod of which something has changed that
	// Observed.Next did not announce; changed does not block.
	Run(ctx context.Context, changed func(PodID)) error
	// Pods are those that the runtime has, for an agent that starts: some may be gone
	// from the server.
	Pods() []PodID

	// Prepare makes what the containers of a pod need: addresses, volumes. To prepare
	// a pod again, which happens when its annotations change too, brings its volumes
	// up to date.
	Prepare(ctx context.Context, p Pod) error
	// Start starts a container that does not run, and returns when it is known
	// whether that is possible. A [Failure] tells a reason for the container's status.
	Start(ctx context.Context, id PodID, c Container) error
	// Stop has a container end, and does not wait for it. To stop it again can
	// shorten the time that it has.
	Stop(id PodID, container string, s Stop)
	// Observe tells what has become of a pod; false if it was not prepared.
	Observe(id PodID) (Observed, bool)
	// Remove forgets a pod and all that was made for it; what still runs is killed.
	Remove(ctx context.Context, id PodID) error
	// Probe asks a container once. An error that is [ErrUnhealthy] is the container's
	// answer; others say that it could not be asked.
	Probe(ctx context.Context, id PodID, container string, p Probe) error
}

// ProbeKind is what a probe finds out.
type ProbeKind string

// The kinds of probes.
const (
	Startup   ProbeKind = "Startup"
	Liveness  ProbeKind = "Liveness"
	Readiness ProbeKind = "Readiness"
)

// Probe is a probe of a container. It is shared and read-only.
type Probe struct {
	Kind ProbeKind
	Spec *corev1.Probe
}

// PodID names a pod. Keys come again, UIDs do not.
type PodID struct {
	Key client.Key
	UID types.UID
}

func idOf(pod *corev1.Pod) PodID { return PodID{client.KeyOf(pod), pod.UID} }

// Machine is what a node has, and how it is.
type Machine struct {
	Capacity, Allocatable corev1.ResourceList
	// Info has no field that must be set.
	Info      corev1.NodeSystemInfo
	Addresses []corev1.NodeAddress
	// Pressures are that something runs short.
	MemoryPressure, DiskPressure, PIDPressure bool
	// NotReady is why the node cannot run pods; "" if it can.
	NotReady string
	// Port is where the node serves logs and the like; 0 is nowhere.
	Port int32
}

func (m Machine) hostIPs() []string {
	var ips []string
	for _, a := range m.Addresses {
		if a.Type == corev1.NodeInternalIP {
			ips = append(ips, a.Address)
		}
	}
	return ips
}

// Pod is what a runtime is to prepare. The object is shared and read-only; its status
// is the last that the server has, from which a runtime may take up what ran before.
type Pod struct {
	ID      PodID
	Object  *corev1.Pod
	Volumes []Volume
}

// Volume is a volume of a pod. Files are its contents, for those made of what the
// server has; for all others the source says what it is.
type Volume struct {
	Name   string
	Source corev1.VolumeSource
	Files  map[string]File
}

// File is a file of a volume.
type File struct {
	Data []byte
	Mode int32
}

// Container is a container to start, with what it takes from elsewhere put in.
type Container struct {
	// Spec is shared and read-only.
	Spec *corev1.Container
	// Attempt counts the containers of this name in the pod, from 0.
	Attempt int32
	// Command and Args have their variables expanded.
	Command, Args []string
	Env           []corev1.EnvVar // names and values only
}

// Stop says how a container is to end.
type Stop struct {
	// Grace is how long it has, its hook included; then it is killed.
	Grace time.Duration
}

// Observed is what a runtime sees of a pod.
type Observed struct {
	IPs        []string
	Containers []ContainerState
	// Next is when this will change by itself, if the runtime knows; zero if not.
	Next time.Time
}

// Phase is where a container is in its life.
type Phase uint8

// The phases of a container.
const (
	Starting Phase = iota + 1
	Running
	Exited
)

// ContainerState is the last container of a name, and how the one before ended.
type ContainerState struct {
	Name    string
	ID      string // without the runtime's name
	Attempt int32
	Phase   Phase
	// StartedAt is set once it runs.
	StartedAt time.Time
	// StopBy is when it is killed; zero if it was not told to end.
	StopBy time.Time
	// Exit is how it ended, Last how the one before did; nil if not.
	Exit, Last *Exit
}

func (s *ContainerState) runs() bool { return s != nil && s.Phase != Exited }

// Exit is how a container ended.
type Exit struct {
	ID                    string
	Code, Signal          int32
	Reason, Message       string // Reason is Completed or Error if it is empty
	StartedAt, FinishedAt time.Time
}
