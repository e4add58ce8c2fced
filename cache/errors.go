package cache

import "errors"

var (
	// ErrIndexExists is returned for an index whose name is taken.
	ErrIndexExists = errors.New("index exists")
	// ErrNoIndex is what a query panics with that names an unknown index.
	ErrNoIndex = errors.New("no such index")
	// ErrMutated is wrapped by the error of a Mutation.
	ErrMutated = errors.New("cached object was changed by a reader")
)
