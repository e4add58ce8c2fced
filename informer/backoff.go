package informer

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff doubles what is waited after each failure, from least to most. Half of
// it is by chance, so that those who failed together do not come back together.
type backoff struct {
	least, most time.Duration
	failures    int
}

func (b *backoff) reset() { b.failures = 0 }

// next returns what to wait after one more failure, and no more than limit.
func (b *backoff) next(limit time.Duration) time.Duration {
	limit = min(limit, b.most)
	wait := limit
	if b.failures < 32 {
		wait = min(b.least<<b.failures, limit)
	}
	b.failures++
	return jitter(wait)
}

// jitter returns between half of d and all of it.
func jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d/2+1)
}

// sleep returns early when the context ends.
func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
