package embedded

import (
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// scheduler lets Pebble compact one set of tables at a time, but none while it
// opens: Open would wait for it. What was put off is granted by open, and from
// then on whenever a compaction ends. It never polls.
type scheduler struct {
	pebble.CompactionGrantHandle // for the reports that nobody reads

	mu   sync.Mutex
	cond sync.Cond
	db   pebble.DBForCompaction
	// running counts compactions; granting is set while the database is asked
	// for one, which must not happen under mu.
	running  int
	granting bool
	opened   bool
	closed   bool
}

func newScheduler() *scheduler {
	s := &scheduler{CompactionGrantHandle: pebble.NewConcurrencyLimitSchedulerWithNoPeriodicGrantingForTest()}
	s.cond.L = &s.mu
	return s
}

// Register implements [pebble.CompactionScheduler].
func (s *scheduler) Register(_ int, db pebble.DBForCompaction) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.db = db
}

// Unregister waits for a grant under way; there is none after it.
func (s *scheduler) Unregister() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for s.granting {
		s.cond.Wait()
	}
}

// TrySchedule implements [pebble.CompactionScheduler].
func (s *scheduler) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.opened || s.closed || s.running >= s.db.GetAllowedWithoutPermission() {
		return false, nil
	}
	s.running++
	return true, s
}

// UpdateGetAllowedWithoutPermission implements [pebble.CompactionScheduler]:
// flushes ask by TrySchedule right after it.
func (s *scheduler) UpdateGetAllowedWithoutPermission() {}

// open ends the time in which nothing is compacted.
func (s *scheduler) open() {
	s.mu.Lock()
	s.opened = true
	s.mu.Unlock()
	s.grant()
}

// Done implements [pebble.CompactionGrantHandle].
func (s *scheduler) Done() {
	s.mu.Lock()
	s.running--
	s.mu.Unlock()
	s.grant()
}

// grant starts compactions that wait, as far as they are allowed.
func (s *scheduler) grant() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.granting {
		s.cond.Wait()
	}
	for s.opened && !s.closed && s.running < s.db.GetAllowedWithoutPermission() {
		s.granting = true
		s.mu.Unlock()
		waiting, _ := s.db.GetWaitingCompaction()
		accepted := waiting && s.db.Schedule(s)
		s.mu.Lock()
		s.granting = false
		s.cond.Broadcast()
		if !accepted {
			return
		}
		s.running++
	}
}
