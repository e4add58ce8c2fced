package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/even-keel/evenkeel/cache"
	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/workqueue"
)

// run is one reconcile.
type run struct {
	Request
	of      *Controller
	started time.Time
	waited  time.Duration

	mu     sync.Mutex
	logger *slog.Logger // nil until somebody wants it
	writes []Write
	more   int // writes beyond those
}

// process works on one item.
func (c *Controller) process(ctx context.Context, q *workqueue.Queue[Key], item workqueue.Item[Key]) {
	own, sure := c.ownOnly(item)
	if sure && c.ignoreOwn {
		c.counts.ignored.Add(1)
		return
	}
	r := c.newRun(item)
	c.pace.began(r.Key, r.started)
	c.counts.active.Add(1)
	result, err := c.call(ctx, r)
	c.counts.active.Add(-1)
	took := time.Since(r.started)
	c.pace.ended(r.Key, took, r.started.Add(took))
	outcome := c.settle(ctx, q, r, result, err)
	c.counts.took(outcome, took)
	c.history.add(ended{r, took, outcome, reason(err)})
	if n := c.loops.ran(r.Key, own, r.wrote(), r.started); n == hotAfter {
		c.log.Warn("hot loop: the reconciles of a key cause each other; write only what has changed, or use IgnoreOwnWrites",
			"key", r.Key, "in a row", n, "causes", r.Reasons(), "writes", r.written())
	}
}

func reason(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func (c *Controller) newRun(item workqueue.Item[Key]) *run {
	return &run{
		Request: Request{
			Key: item.Key, Causes: item.Causes, LostCauses: item.LostCauses, Retries: item.Retries,
			ID: c.epoch + "." + strconv.FormatUint(c.runs.Add(1), 36),
		},
		of: c, started: time.Now(), waited: item.Waited,
	}
}

// log is made when it is wanted: most reconciles have nothing to say.
func (r *run) log() *slog.Logger {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.logger == nil {
		r.logger = r.of.log.With("key", r.Key, "reconcile", r.ID)
	}
	return r.logger
}

// call calls the reconciler, in time and without a panic.
func (c *Controller) call(ctx context.Context, r *run) (result Result, err error) {
	ctx = client.WithHeader(context.WithValue(ctx, runKey{}, r), client.ReconcileHeader, r.ID)
	if c.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.timeout, fmt.Errorf("the reconcile takes more than %s: %w", c.timeout, context.DeadlineExceeded))
		defer cancel()
	}
	ctx, end := c.base.span(ctx, r)
	defer func() {
		if p := recover(); p != nil {
			c.counts.panics.Add(1)
			err = fmt.Errorf("%w: %v", ErrPanic, p)
			r.log().Error("the reconciler panicked", "panic", p, "causes", r.Reasons(), "stack", string(debug.Stack()))
		}
		end(result, err)
	}()
	if err := c.catchUp(ctx, r.Causes); err != nil {
		return Done, err
	}
	return c.reconcile(ctx, r.Request)
}

// catchUp waits until what can be read is as new as what the causes tell.
func (c *Controller) catchUp(ctx context.Context, causes []Cause) error {
	for _, cause := range causes {
		kind, known := c.kinds[cause.Kind]
		if !known {
			continue
		}
		namespace, _, namespaced := strings.Cut(cause.Object, "/")
		if !namespaced {
			namespace = ""
		}
		if err := c.base.catchUp(ctx, kind, namespace, cache.Revision(cmp.Or(cause.New, cause.Old))); err != nil {
			return err
		}
	}
	return nil
}

// The outcomes of a reconcile that failed; others are those of [Result].
const (
	outcomeError    = "error"
	outcomeTerminal = "terminal_error"
)

// settle says when the key comes again, and returns what became of the reconcile.
func (c *Controller) settle(ctx context.Context, q *workqueue.Queue[Key], r *run, result Result, err error) string {
	switch {
	case err == nil && result.after > 0:
		q.Forget(r.Key)
		q.AddWith(r.Key, workqueue.AddOptions{After: result.after, Causes: []Cause{{Reason: workqueue.Requeue, Note: "after " + result.after.String()}}})
		return result.String()
	case err == nil && result.requeue:
		c.again(q, r, Cause{Reason: workqueue.Requeue}, nil)
		return result.String()
	case err == nil:
		q.Forget(r.Key)
		return result.String()
	case errors.Is(err, ErrTerminal):
		q.Forget(r.Key)
		r.log().Error("failed, and is not tried again", "error", err, "causes", r.Reasons())
		return outcomeTerminal
	}
	r.log().Log(ctx, level(ctx, err, r.Retries), "failed", "error", err, "retries", r.Retries, "causes", r.Reasons())
	c.again(q, r, Cause{Reason: workqueue.Retry, Note: err.Error()}, err)
	return outcomeError
}

// level says how bad a failure is: of many in a row the first ones are told, and
// then ever fewer.
func level(ctx context.Context, err error, retries int) slog.Level {
	switch {
	case client.IsConflict(err), client.IsAlreadyExists(err), ctx.Err() != nil:
		return slog.LevelInfo // somebody was faster, or it was told to stop
	case retries&(retries-1) != 0:
		return slog.LevelDebug
	}
	return slog.LevelError
}

// again queues a key with its backoff, unless it has come too often.
func (c *Controller) again(q *workqueue.Queue[Key], r *run, cause Cause, err error) {
	if errors.Is(q.Retry(r.Key, cause), workqueue.ErrRetryLimit) {
		r.log().Error("dropped: it has been tried as often as MaxRetries allows", "retries", r.Retries, "error", err)
	}
}
