package workqueue

import "errors"

var (
	// ErrShutDown says that the queue takes no more keys.
	ErrShutDown = errors.New("queue is shut down")
	// ErrRetryLimit says that a key was dropped, having been retried as often
	// as [Options.MaxRetries] allows.
	ErrRetryLimit = errors.New("retry limit reached")
)
