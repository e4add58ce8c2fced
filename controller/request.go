package controller

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/workqueue"
)

// Cause is one reason for a reconcile.
type Cause = workqueue.Cause

// Request is what a reconciler is to look at, and why.
type Request struct {
	Key client.Key
	// Causes are why: what has changed since the key was last looked at, and other
	// reasons. LostCauses is how many more there were.
	Causes     []Cause
	LostCauses int
	// Retries is how often in a row the work on the key has failed.
	Retries int
	// ID names this reconcile. All its writes carry it, in the header
	// Evenkeel-Reconcile.
	ID string
}

// Reasons is the causes as a line of a log has them.
func (r Request) Reasons() string {
	var out []string
	for _, c := range r.Causes {
		out = append(out, c.String())
	}
	return strings.Join(out, "; ")
}

// Result is what becomes of a key after a reconcile without an error.
type Result struct {
	after   time.Duration
	requeue bool
}

// Done says that there is nothing left to do until something changes.
var Done = Result{}

// Requeue has the key come again as after an error: with a backoff that grows as
// long as it goes on.
var Requeue = Result{requeue: true}

// RequeueAfter has the key come again after a time, or earlier if something
// changes. A time that is not positive is now.
func RequeueAfter(d time.Duration) Result { return Result{after: max(d, time.Nanosecond)} }

// String is the result as metrics call it, for one without an error.
func (r Result) String() string {
	switch {
	case r.after > 0:
		return "requeue_after"
	case r.requeue:
		return "requeue"
	}
	return "success"
}

type runKey struct{}

// runOf returns the reconcile that a context is of, nil if it is of none.
func runOf(ctx context.Context) *run {
	r, _ := ctx.Value(runKey{}).(*run)
	return r
}

// RequestOf returns the request that a context is of.
func RequestOf(ctx context.Context) (Request, bool) {
	if r := runOf(ctx); r != nil {
		return r.Request, true
	}
	return Request{}, false
}

// Log returns a logger that tells the controller, the key and the reconcile of a
// context; in a [Feed], the controller.
func Log(ctx context.Context) *slog.Logger {
	if r := runOf(ctx); r != nil {
		return r.log()
	}
	if log, ok := ctx.Value(logKey{}).(*slog.Logger); ok {
		return log
	}
	return slog.Default()
}

// logKey is of the logger of a context that is of no reconcile.
type logKey struct{}
