package workqueue

import (
	"math"
	"time"
)

// Exponential is a backoff of base before the first retry, twice that before
// the second and so on, up to limit.
func Exponential(base, limit time.Duration) func(n int) time.Duration {
	return func(n int) time.Duration {
		d := float64(base) * math.Pow(2, float64(n-1))
		if d >= float64(limit) {
			return limit
		}
		return time.Duration(d)
	}
}

// bucket is a token bucket that is full at time 0 and may owe tokens.
type bucket struct {
	rate, burst float64
	tokens      float64
	at          time.Duration
}

// take takes a token and says for how long its owner has to wait for it.
func (b *bucket) take(now time.Duration) time.Duration {
	if b.rate < 0 {
		return 0
	}
	b.tokens = min(b.burst, b.tokens+max(now-b.at, 0).Seconds()*b.rate)
	b.at = max(now, b.at)
	b.tokens--
	if b.tokens >= 0 {
		return 0
	}
	return time.Duration(-b.tokens / b.rate * float64(time.Second))
}
