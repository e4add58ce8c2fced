package informer

import "errors"

var (
	// ErrShutdown says that the set has been shut down.
	ErrShutdown = errors.New("the set of informers is shut down")
	// ErrOption says that an option does not fit the informer, or another option.
	ErrOption = errors.New("bad option")
	// ErrNotSynced is wrapped by what waiting for informers returns when it ends
	// too early.
	ErrNotSynced = errors.New("not synced")
	// ErrNoBookmark says that a server began to stream its state and did not say
	// when it was complete. The informer lists instead.
	ErrNoBookmark = errors.New("the server did not end the initial events in time")
	// ErrStalled says that a server did not answer, or stopped in the middle.
	ErrStalled = errors.New("the server stalled")
)
