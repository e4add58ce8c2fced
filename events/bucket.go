package events

import "time"

// bucket allows burst writes at once, and one more with each refill.
type bucket struct {
	tokens float64
	at     time.Time
}

func (b *bucket) fill(o *Options, now time.Time) {
	if b.at.IsZero() {
		b.tokens = float64(o.Burst)
	} else if d := now.Sub(b.at); d > 0 {
		b.tokens = min(b.tokens+float64(d)/float64(o.Refill), float64(o.Burst))
	}
	b.at = now
}

func (b *bucket) take(o *Options, now time.Time) bool {
	b.fill(o, now)
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// wait is how long it takes until there is a token; it is called after take failed.
func (b *bucket) wait(o *Options) time.Duration {
	return time.Duration((1-b.tokens)*float64(o.Refill)) + time.Millisecond
}
