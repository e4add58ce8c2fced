package node

import (
	"context"
	"errors"
	"io"
	"time"
)

// ErrNoLog says that there is no log of a container, or not of the one before.
var ErrNoLog = errors.New("there is no log")

// LogOptions say which part of a log is wanted, and how.
type LogOptions struct {
	// Follow goes on until the container ends.
	Follow bool
	// Previous is the log of the container before the present one.
	Previous bool
	// Timestamps puts the time before each line.
	Timestamps bool
	// Tail is how many lines from the end; negative is all.
	Tail int64
	// Since leaves out lines that are older; zero is none.
	Since time.Time
	// Limit is how many bytes at most; 0 is all.
	Limit int64
	// Stream is stdout or stderr; "" is both.
	Stream string
}

// LogReader is a runtime whose containers have logs.
type LogReader interface {
	// Logs writes the log of a container, until it is over or ctx ends.
	Logs(ctx context.Context, id PodID, container string, o LogOptions, w io.Writer) error
}
