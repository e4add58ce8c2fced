package embedded

import (
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// scheduler lets Pebble compact one set of tables at a time, but none while it
// opens: Open would wait for it. Unlike Pebble's own it does not poll; what has
// been put off is taken up after the next flush.
type scheduler struct {
	*pebble.ConcurrencyLimitScheduler
	opened atomic.Bool
}

func newScheduler() *scheduler {
	return &scheduler{ConcurrencyLimitScheduler: pebble.NewConcurrencyLimitSchedulerWithNoPeriodicGrantingForTest()}
}

func (s *scheduler) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	if !s.opened.Load() {
		return false, nil
	}
	return s.ConcurrencyLimitScheduler.TrySchedule()
}
