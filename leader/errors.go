package leader

import "errors"

var (
	// ErrLost says that leadership ended before the work did: the lease was taken,
	// deleted, or could not be renewed in time. It is also the cause of the end of
	// the context that the work was given ([context.Cause]).
	ErrLost = errors.New("leadership is lost")
	// ErrOption says that [Options] do not fit together.
	ErrOption = errors.New("bad option")
	// ErrRunning says that [Elector.Run] is called while it runs.
	ErrRunning = errors.New("the elector runs already")
	// ErrFence says that a text is not a [Fence].
	ErrFence = errors.New("not a fence")
)
