package informers

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// content is what writers change of an object.
type content struct {
	uid   types.UID
	color string
	value string
}

func contentOf(obj any) content {
	switch o := obj.(type) {
	case *corev1.ConfigMap:
		return content{o.UID, o.Labels["color"], o.Data["value"]}
	case *unstructured.Unstructured:
		value, _, _ := unstructured.NestedString(o.Object, "data", "value")
		return content{o.GetUID(), o.GetLabels()["color"], value}
	case *metav1.PartialObjectMetadata:
		return content{o.UID, o.Labels["color"], o.Annotations["value"]}
	}
	panic(fmt.Sprintf("an informer of config maps holds a %T", obj))
}

// ledger is what the server has acknowledged.
type ledger struct {
	mu      sync.Mutex
	written map[string]content // by key and revision
}

func newLedger() *ledger { return &ledger{written: map[string]content{}} }

func (l *ledger) add(cm *corev1.ConfigMap) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.written[keyOf(cm)+"@"+cm.ResourceVersion] = contentOf(cm)
}

func (l *ledger) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.written)
}

// contradicts says that something else was written at an object's revision.
// Writes whose answer was lost are not known.
func (l *ledger) contradicts(m metav1.Object) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	want, ok := l.written[keyOf(m)+"@"+m.GetResourceVersion()]
	return ok && want != contentOf(m)
}

// seen is what a handler was last told of an object.
type seen struct {
	present  bool
	revision uint64
	content  content
}

// history checks what a handler is told: an object is added, updated and
// deleted in turns, never goes back in time, and is as somebody wrote it.
type history struct {
	truth *ledger

	mu       sync.Mutex
	last     map[string]seen
	told     int
	breaches []string
}

func (h *history) breachLocked(format string, args ...any) {
	if len(h.breaches) < 10 {
		h.breaches = append(h.breaches, fmt.Sprintf(format, args...))
	}
}

func (h *history) OnAdd(obj any, _ bool) {
	m := obj.(metav1.Object)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last[keyOf(m)].present {
		h.breachLocked("%s added twice", keyOf(m))
	}
	h.takeLocked(m)
}

func (h *history) OnUpdate(old, obj any) {
	m := obj.(metav1.Object)
	h.mu.Lock()
	defer h.mu.Unlock()
	last := h.last[keyOf(m)]
	if !last.present {
		h.breachLocked("%s updated, but not there", keyOf(m))
	}
	if was := revisionOf(old.(metav1.Object)); was != last.revision {
		h.breachLocked("%s updated from revision %d, last was %d", keyOf(m), was, last.revision)
	}
	h.takeLocked(m)
}

// takeLocked takes the newest state of an object. A list may tell the same
// again.
func (h *history) takeLocked(m metav1.Object) {
	h.told++
	last, now := h.last[keyOf(m)], seen{true, revisionOf(m), contentOf(m)}
	switch {
	case now.revision < last.revision, now.revision == last.revision && !last.present:
		h.breachLocked("%s went back from revision %d to %d", keyOf(m), last.revision, now.revision)
	case now.revision == last.revision && now.content != last.content:
		h.breachLocked("%s is two things at revision %d: %v and %v", keyOf(m), now.revision, last.content, now.content)
	}
	if h.truth.contradicts(m) {
		h.breachLocked("%s at revision %d is not what was written: %v", keyOf(m), now.revision, now.content)
	}
	h.last[keyOf(m)] = now
}

func (h *history) OnDelete(obj any) {
	unknown, missed := obj.(cache.DeletedFinalStateUnknown)
	if missed {
		obj = unknown.Obj
	}
	m := obj.(metav1.Object)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.told++
	last := h.last[keyOf(m)]
	switch {
	case !last.present:
		h.breachLocked("%s deleted, but not there", keyOf(m))
	case missed && revisionOf(m) != last.revision, !missed && revisionOf(m) <= last.revision:
		h.breachLocked("%s deleted at revision %d (missed: %v), last was %d", keyOf(m), revisionOf(m), missed, last.revision)
	case !missed && contentOf(m) != last.content:
		h.breachLocked("%s was %v, but was deleted as %v", keyOf(m), last.content, contentOf(m))
	}
	h.last[keyOf(m)] = seen{revision: revisionOf(m)}
}

// present is what a handler that forgets nothing believes to be there.
func (h *history) present() map[string]uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[string]uint64{}
	for key, s := range h.last {
		if s.present {
			out[key] = s.revision
		}
	}
	return out
}

func (h *history) found() (told int, breaches []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.told, slices.Clone(h.breaches)
}

func revisionOf(m metav1.Object) uint64 {
	n, err := strconv.ParseUint(m.GetResourceVersion(), 10, 64)
	if err != nil {
		panic(fmt.Sprintf("%s has the resource version %q", keyOf(m), m.GetResourceVersion()))
	}
	return n
}

// difference tells how two sets of objects differ.
func difference(got, want map[string]uint64) string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if n, ok := got[key]; !ok || n != want[key] {
			out = append(out, fmt.Sprintf("%s is at %d, want %d", key, n, want[key]))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[key]; !ok {
			out = append(out, fmt.Sprintf("%s at %d should not be there", key, got[key]))
		}
	}
	return fmt.Sprint(out)
}
