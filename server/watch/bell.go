package watch

import (
	"runtime"
	"slices"
	"sync"
	"time"
)

// bell wakes the cursors of a resource.
//
// To wake a cursor costs about as much as to send it some more events. So after a
// while without events all are woken at once, but under load only so often that
// it takes a small part of the machine, and each then finds several events. And
// they are woken a few at a time, behind whatever else is ready to run, so that
// ten thousand watchers do not stand between a request and its answer.
//
// It is used under the resource's lock.
type bell struct {
	seats []*seat
	rung  time.Time
	// due says that the bell is to be rung.
	due bool
}

// seat is where a few cursors wait.
type seat struct {
	taken int
	rung  chan struct{} // closed and replaced to wake them
}

const (
	seatSize = 8
	// pauseFor each cursor lies between two rings, at most longestPause.
	pauseFor     = 50 * time.Microsecond
	longestPause = 100 * time.Millisecond
)

// take finds a cursor a seat.
func (b *bell) take() *seat {
	i := slices.IndexFunc(b.seats, func(s *seat) bool { return s.taken < seatSize })
	if i < 0 {
		i = len(b.seats)
		b.seats = append(b.seats, &seat{rung: make(chan struct{})})
	}
	b.seats[i].taken++
	return b.seats[i]
}

// leave gives a seat up.
func (b *bell) leave(s *seat) {
	if s.taken--; s.taken == 0 {
		b.seats = slices.DeleteFunc(slices.Clone(b.seats), func(other *seat) bool { return other == s })
	}
}

// ring has all cursors woken, now or when it may be again. mu is the lock that
// is held.
func (b *bell) ring(mu sync.Locker) {
	if b.due || len(b.seats) == 0 {
		return
	}
	pause := min(time.Duration(len(b.seats)*seatSize)*pauseFor, longestPause)
	wait := pause - time.Since(b.rung)
	if wait <= 0 && len(b.seats) == 1 {
		b.wake(b.seats[0])
		b.rung = time.Now()
		return
	}
	b.due = true
	time.AfterFunc(wait, func() { b.wakeAll(mu) })
}

func (b *bell) wakeAll(mu sync.Locker) {
	mu.Lock()
	b.due, b.rung = false, time.Now()
	seats := b.seats
	mu.Unlock()
	for _, s := range seats {
		mu.Lock()
		b.wake(s)
		mu.Unlock()
		runtime.Gosched()
	}
}

func (b *bell) wake(s *seat) {
	close(s.rung)
	s.rung = make(chan struct{})
}
