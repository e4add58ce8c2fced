package truth

import (
	"fmt"
	"maps"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/informer"
)

// state is which objects there are, in which revisions.
type state map[client.Key]version

// version is an object in a revision.
type version struct {
	uid      types.UID
	revision string
	value    string
}

// valueAnnotation is what the writers write, where objects of all forms have it.
const valueAnnotation = "value"

func versionOf(o client.Object) version {
	return version{o.GetUID(), o.GetResourceVersion(), o.GetAnnotations()[valueAnnotation]}
}

// history checks what a handler is told, and remembers what it must believe.
type history[T client.Object] struct {
	name string
	// whole says that objects do not leave what the informer selects, other than
	// by their deletion; then one that was deleted does not come back.
	whole bool

	mu    sync.Mutex
	knows state
	gone  map[types.UID]version
	told  []version // that exist, in order
	errs  []error
	count int
}

func newHistory[T client.Object](name string, whole bool) *history[T] {
	return &history[T]{name: name, whole: whole, knows: state{}, gone: map[types.UID]version{}}
}

func (h *history[T]) hearAll(batch []informer.Delta[T]) {
	for _, d := range batch {
		h.hear(d)
	}
}

func (h *history[T]) hear(d informer.Delta[T]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count++
	known, knows := h.knows[d.Key]
	now := versionOf(d.Object())
	if what := h.judge(d, known, knows, now); what != "" && len(h.errs) < 5 {
		h.errs = append(h.errs, fmt.Errorf("%s heard %s %s at %s: %s", h.name, d.Type, d.Key.Name, d.Revision(), what))
	}
	if d.Type == informer.Deleted {
		delete(h.knows, d.Key)
		h.gone[now.uid] = now
		return
	}
	h.knows[d.Key] = now
	h.told = append(h.told, now)
}

// judge says what is illegal in what a handler is told; nothing if it is legal.
func (h *history[T]) judge(d informer.Delta[T], known version, knows bool, now version) string {
	ended, gone := h.gone[now.uid]
	switch {
	case d.Type == informer.Added && knows:
		return "it knows the object"
	case d.Type == informer.Added && gone && h.whole:
		return "the object was deleted"
	case d.Type == informer.Added && gone && older(now, ended):
		return "it was told of the object's end at " + ended.revision
	case d.Type != informer.Added && !knows:
		return "it does not know the object"
	case d.Type == informer.Added:
		return ""
	case now.uid != known.uid:
		return "it is another object of the same name"
	case versionOf(d.Old()) != known:
		return fmt.Sprintf("it was told of %v, not of %v", known, versionOf(d.Old()))
	case older(now, known):
		return "it knows a newer revision, " + known.revision
	case d.Type == informer.Updated && now.revision == known.revision:
		return "it knows that revision"
	case d.Type == informer.Deleted && !d.Unknown && h.whole && !older(known, now):
		return "a deletion has a revision of its own"
	}
	return ""
}

// older compares revisions of one object.
func older(a, b version) bool {
	x, errX := strconv.ParseUint(a.revision, 10, 64)
	y, errY := strconv.ParseUint(b.revision, 10, 64)
	return errX != nil || errY != nil || x < y
}

// believes is what the handler must take for the state, and what was illegal.
func (h *history[T]) believes() (state, []error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.knows), h.errs
}

// lies are states that the handler was told of and that never were.
func (h *history[T]) lies(l *ledger) (errs []error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, v := range h.told {
		if !l.has(v) {
			errs = append(errs, fmt.Errorf("%s was told of %v, which nobody wrote", h.name, v))
		}
	}
	return errs
}

// ledger is what the server has acknowledged.
type ledger struct {
	mu   sync.Mutex
	seen map[version]bool
}

func (l *ledger) add(o client.Object) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen[versionOf(o)] = true
}

func (l *ledger) has(v version) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen[v]
}
