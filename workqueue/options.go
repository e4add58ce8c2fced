package workqueue

import "time"

// What a field of [Options] that is zero stands for: the delays and the rate of
// client-go's default controller rate limiter, and our own bounds.
const (
	DefaultBaseDelay = 5 * time.Millisecond
	DefaultMaxDelay  = 1000 * time.Second
	DefaultRate      = 10.0
	DefaultBurst     = 100
	DefaultPatience  = 8
	DefaultMaxCauses = 8
)

// Options choose how a queue behaves; the zero value is a good choice. The
// functions must not call the queue.
type Options[K comparable] struct {
	// Group says which group a key belongs to, mostly its namespace. Groups of
	// one priority take turns. Without it there is one group.
	Group func(K) string
	// Patience is how many times in a row the key that has been ready for
	// longest may be passed over for the sake of priority or of groups.
	Patience int

	// Backoff is the delay before retry n, counted from 1;
	// Exponential(DefaultBaseDelay, DefaultMaxDelay) by default.
	Backoff func(n int) time.Duration
	// Rate bounds the retries of all keys together, per second, after a first
	// Burst. A negative Rate sets no bound.
	Rate  float64
	Burst int
	// MaxRetries is how often a key is retried before it is dropped; zero or
	// less sets no limit.
	MaxRetries int

	// Debounce holds a key back until it has not been added for this long, but
	// not longer than DebounceMax (ten times Debounce by default) after its
	// first add. It leaves delayed adds and retries alone.
	Debounce    time.Duration
	DebounceMax time.Duration

	// MaxCauses bounds the causes kept for one key; further ones are counted.
	MaxCauses int
}

func (o Options[K]) withDefaults() Options[K] {
	if o.Patience <= 0 {
		o.Patience = DefaultPatience
	}
	if o.Backoff == nil {
		o.Backoff = Exponential(DefaultBaseDelay, DefaultMaxDelay)
	}
	if o.Rate == 0 {
		o.Rate = DefaultRate
	}
	if o.Burst <= 0 {
		o.Burst = DefaultBurst
	}
	if o.DebounceMax <= 0 {
		o.DebounceMax = 10 * o.Debounce
	}
	if o.MaxCauses <= 0 {
		o.MaxCauses = DefaultMaxCauses
	}
	return o
}
