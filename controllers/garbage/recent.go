package garbage

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/even-keel/evenkeel/client"
)

// claim is what a reference says: that an object of a kind, a name and a UID exists
// in the dependent's namespace, or in none. A UID alone would not do: an owner that
// is absent for dependents of another namespace exists for those of its own.
type claim struct {
	kind schema.GroupKind
	key  client.Key
	uid  types.UID
}

// recent remembers claims that are settled for good, the last few of them.
type recent struct {
	mu    sync.Mutex
	all   map[claim]struct{}
	order []claim // a ring, once it is full
	next  int
}

const recentSize = 4096

func (r *recent) add(c claim) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.all[c]; ok {
		return
	}
	if r.all == nil {
		r.all = map[claim]struct{}{}
	}
	if len(r.order) < recentSize {
		r.order = append(r.order, c)
	} else {
		delete(r.all, r.order[r.next])
		r.order[r.next] = c
		r.next = (r.next + 1) % recentSize
	}
	r.all[c] = struct{}{}
}

func (r *recent) has(c claim) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.all[c]
	return ok
}
