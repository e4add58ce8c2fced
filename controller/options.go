package controller

import (
	"time"

	"github.com/even-keel/evenkeel/workqueue"
)

// Option changes what [New] makes.
type Option func(*Controller)

// Workers is how many keys are worked on at once, each by one worker: 1 by default.
func Workers(n int) Option { return func(c *Controller) { c.workers = n } }

// Timeout bounds a reconcile: its context ends after that. There is no bound by
// default.
func Timeout(d time.Duration) Option { return func(c *Controller) { c.timeout = d } }

// Backoff is how long a key waits before retry n, counted from 1. By default that
// doubles from 5 ms to 1,000 s; see [workqueue.Exponential].
func Backoff(of func(n int) time.Duration) Option {
	return func(c *Controller) { c.queueOptions.Backoff = of }
}

// RetryRate bounds the retries of all keys together, per second, after a first
// burst; by default 10 and 100. A negative rate sets no bound.
func RetryRate(rate float64, burst int) Option {
	return func(c *Controller) { c.queueOptions.Rate, c.queueOptions.Burst = rate, burst }
}

// MaxRetries is how often a key is retried until it is dropped, and waits for its
// next event. There is no limit by default.
func MaxRetries(n int) Option { return func(c *Controller) { c.queueOptions.MaxRetries = n } }

// Debounce holds a key back until nothing has happened to it for this long, but
// not for more than ten times that.
func Debounce(d time.Duration) Option { return func(c *Controller) { c.queueOptions.Debounce = d } }

// IgnoreOwnWrites leaves out reconciles that nothing but what this controller has
// written in its last reconcile of that key would cause. It is for reconcilers
// that finish what they begin: one that writes and waits for the event of its own
// write to go on would not go on.
func IgnoreOwnWrites() Option { return func(c *Controller) { c.ignoreOwn = true } }

// LowPriority is that of keys which are queued since an informer first listed them,
// or by a resync: what changes now goes first. See [workqueue.AddOptions].
const LowPriority = -100

// defaultQueue has namespaces take turns.
func defaultQueue() workqueue.Options[Key] {
	return workqueue.Options[Key]{Group: func(k Key) string { return k.Namespace }}
}
