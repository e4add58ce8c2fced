package controller

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// hotAfter is how many reconciles of a key in a row, each caused by nothing but what
// the one before wrote, make a hot loop.
const hotAfter = 10

// maxLoops bounds how many keys are watched for loops.
const maxLoops = 1024

// HotLoop is a key whose reconciles cause each other: each writes something, and
// that is the only cause of the next.
type HotLoop struct {
	Key   string    `json:"key"`
	Since time.Time `json:"since"`
	// Times is how often in a row.
	Times int `json:"times"`
}

// loops finds keys that are in a hot loop.
type loops struct {
	mu    sync.Mutex
	keys  map[Key]*loop
	total uint64
}

type loop struct {
	since, last time.Time
	times       int
}

// ran takes note of a reconcile: whether it was caused by nothing but its own
// controller's writes, and whether it wrote. It returns how often in a row that was
// so. A reconcile that writes nothing ends a loop.
func (l *loops) ran(key Key, own, wrote bool, now time.Time) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !wrote {
		delete(l.keys, key)
		return 0
	}
	if !own {
		return 0
	}
	at := l.keys[key]
	if at == nil {
		if !l.roomLocked(now) {
			return 0
		}
		at = &loop{since: now}
		l.keys[key] = at
	}
	at.last = now
	if at.times++; at.times == hotAfter {
		l.total++
	}
	return at.times
}

// roomLocked makes room for one more key, if there are some that have not been
// looked at for minutes.
func (l *loops) roomLocked(now time.Time) bool {
	if l.keys == nil {
		l.keys = map[Key]*loop{}
	}
	if len(l.keys) < maxLoops {
		return true
	}
	for key, at := range l.keys {
		if now.Sub(at.last) > 5*time.Minute {
			delete(l.keys, key)
		}
	}
	return len(l.keys) < maxLoops
}

// hot returns the keys that are in a loop, the worst first, and how many have been.
func (l *loops) hot() (now []HotLoop, total uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, at := range l.keys {
		if at.times >= hotAfter {
			now = append(now, HotLoop{Key: key.String(), Since: at.since, Times: at.times})
		}
	}
	slices.SortFunc(now, func(a, b HotLoop) int { return cmp.Or(cmp.Compare(b.Times, a.Times), cmp.Compare(a.Key, b.Key)) })
	return now, l.total
}
