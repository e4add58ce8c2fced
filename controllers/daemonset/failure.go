package daemonset

import (
	"maps"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/even-keel/evenkeel/client"
)

// A pod that failed is replaced at once, the next on that node after firstPause, and
// then after twice as long each time, up to maxPause. Who does not fail for twice that
// begins anew.
const (
	firstPause = time.Second
	maxPause   = 15 * time.Minute
)

// failure is when a pod that had failed was last replaced, and how long the next has
// to wait.
type failure struct {
	last  time.Time
	pause time.Duration
}

// in is how long a pod that has failed has to wait.
func (f failure) in(now time.Time) time.Duration { return max(f.last.Add(f.pause).Sub(now), 0) }

// next is the failure after one more.
func (f failure) next(now time.Time) failure {
	if now.Sub(f.last) > 2*maxPause {
		f.pause = 0
	}
	return failure{now, min(max(2*f.pause, firstPause), maxPause)}
}

// failures are those of all sets, by node. A set whose spec changes begins anew.
type failures struct {
	mu   sync.Mutex
	sets map[client.Key]record
}

type record struct {
	uid        types.UID
	generation int64
	nodes      map[string]failure
}

func newFailures() *failures { return &failures{sets: map[client.Key]record{}} }

// of returns a copy of what is known of a set.
func (f *failures) of(set *appsv1.DaemonSet) map[string]failure {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.sets[client.KeyOf(set)]
	if r.uid != set.UID || r.generation != set.Generation {
		return nil
	}
	return maps.Clone(r.nodes)
}

// add counts a failure.
func (f *failures) add(set *appsv1.DaemonSet, node string, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := client.KeyOf(set)
	r := f.sets[key]
	if r.uid != set.UID || r.generation != set.Generation {
		r = record{set.UID, set.Generation, map[string]failure{}}
		f.sets[key] = r
	}
	maps.DeleteFunc(r.nodes, func(_ string, old failure) bool { return now.Sub(old.last) > 2*maxPause })
	r.nodes[node] = r.nodes[node].next(now)
}

// forget drops what is known of a set that is no more.
func (f *failures) forget(key client.Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.sets, key)
}
