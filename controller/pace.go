package controller

import (
	"sync"
	"time"
)

const (
	// restTimes is how many times as long as its last reconcile a key rests.
	restTimes = 9
	// maxRest is the longest that a key rests.
	maxRest = 250 * time.Millisecond
	// maxResting bounds how many keys rest at once; others are not held back.
	maxResting = 4096
)

// Paced has a key rest after a reconcile before other objects than its own cause the
// next: nine times as long as the reconcile took, 250 ms at most. Many changes at once
// then cause few reconciles, the fewer the more there is to do; one alone is not held
// back. It is for controllers that sum up what many objects tell. What happens to the
// key's own object (see [For]) and what a reconcile asks for do not wait.
func Paced() Option { return func(c *Controller) { c.pace = &pace{keys: map[Key]respite{}} } }

// pace knows which keys rest. A nil pace holds nothing back.
type pace struct {
	mu   sync.Mutex
	keys map[Key]respite
}

// respite is how long the last reconcile of a key took, and until when the key rests.
type respite struct {
	took  time.Duration
	until time.Time
}

// began expects a reconcile to take as long as the last, so that what happens
// meanwhile waits too.
func (p *pace) began(key Key, now time.Time) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if last, some := p.keys[key]; some {
		p.restLocked(key, last.took, now.Add(last.took))
	}
}

// ended has a key rest after a reconcile that took a time.
func (p *pace) ended(key Key, took time.Duration, now time.Time) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, some := p.keys[key]; some || p.roomLocked(now) {
		p.restLocked(key, took, now)
	}
}

func (p *pace) restLocked(key Key, took time.Duration, from time.Time) {
	p.keys[key] = respite{took, from.Add(min(restTimes*took, maxRest))}
}

// roomLocked makes room for one more key by forgetting those that have rested.
func (p *pace) roomLocked(now time.Time) bool {
	if len(p.keys) < maxResting {
		return true
	}
	for key, at := range p.keys {
		if !at.until.After(now) {
			delete(p.keys, key)
		}
	}
	return len(p.keys) < maxResting
}

// left is how long a key still rests.
func (p *pace) left(key Key, now time.Time) time.Duration {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(0, p.keys[key].until.Sub(now))
}
