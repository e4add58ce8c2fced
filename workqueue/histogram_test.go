package workqueue

import (
	"math"
	"testing"
	"time"
)

// TestDurationsAreInTheirBucket, at and beside every bound and power of two.
func TestDurationsAreInTheirBucket(t *testing.T) {
	of := func(d time.Duration) int {
		i := 0
		for bound := 10 * time.Nanosecond; i < buckets && d > bound; i++ {
			bound *= 10
		}
		return i
	}
	check := func(d time.Duration) {
		var h Histogram
		h.observe(d)
		if d >= 0 && h.counts[of(d)] != 1 {
			t.Errorf("%d ns: counted as %v", d, h.counts)
		}
	}
	for p := time.Duration(1); p > 0; p <<= 1 {
		check(p - 1)
		check(p)
		check(p + 1)
	}
	for b := range (Histogram{}).Buckets() {
		check(b - 1)
		check(b)
		check(b + 1)
	}
	check(math.MaxInt64)
}
