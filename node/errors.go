package node

import "errors"

var (
	// ErrUnhealthy is wrapped by what [Runtime].Probe returns of a container that
	// answered, and not as it should.
	ErrUnhealthy = errors.New("unhealthy")
	// ErrUnknownPod says that a runtime was not told of a pod before.
	ErrUnknownPod = errors.New("the pod is not prepared")
	// ErrUnknownContainer says that a pod has no container of that name that runs.
	ErrUnknownContainer = errors.New("no such container runs")
)

// The reasons for which containers wait, as statuses tell them.
const (
	reasonCreating     = "ContainerCreating"
	reasonInitializing = "PodInitializing"
	reasonCrashLoop    = "CrashLoopBackOff"
	reasonPullBackOff  = "ImagePullBackOff"

	// ReasonConfig is that what a container takes from elsewhere is not there.
	ReasonConfig = "CreateContainerConfigError"
	// ReasonCreate is that a container cannot be made as its pod says.
	ReasonCreate = "CreateContainerError"
	// ReasonRun is that a container was made, but does not start.
	ReasonRun = "RunContainerError"
	// ReasonPull is that an image cannot be had.
	ReasonPull = "ErrImagePull"
)

// Failure is why a container does not start, with the reason that its status tells.
type Failure struct{ Reason, Message string }

func (f *Failure) Error() string { return f.Message }
