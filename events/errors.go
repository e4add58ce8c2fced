package events

import "errors"

var (
	// ErrOption says that [Options] do not fit.
	ErrOption = errors.New("bad option")
	// ErrRan says that [Recorder.Run] is called a second time.
	ErrRan = errors.New("the recorder has been run")
	// ErrEvent says that an event cannot be told: it lacks something, or says too
	// much. Such events are dropped, and logged.
	ErrEvent = errors.New("bad event")
)
