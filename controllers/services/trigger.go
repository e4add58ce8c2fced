package services

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/even-keel/evenkeel/client"
)

// Triggers remembers what the endpoints of services were last made of, to tell when
// that began which makes them change. Make one with [NewTriggers].
type Triggers struct {
	mu   sync.Mutex
	seen map[client.Key]Trigger
}

// Trigger is what the endpoints of a service are made of. Once they are written,
// [Triggers.Keep] it.
type Trigger struct {
	service types.UID
	pods    map[string]time.Time // when they became ready, or ceased to be
	// At is the first of what has happened since; zero if nothing has that tells its
	// time.
	At time.Time
}

// NewTriggers remembers nothing.
func NewTriggers() *Triggers { return &Triggers{seen: map[client.Key]Trigger{}} }

// Now compares a service and its pods with what was kept.
func (t *Triggers) Now(s *corev1.Service, all []*corev1.Pod) Trigger {
	t.mu.Lock()
	was := t.seen[client.KeyOf(s)]
	t.mu.Unlock()
	return was.next(s, all)
}

// next is the trigger after another.
func (t Trigger) next(s *corev1.Service, all []*corev1.Pod) Trigger {
	now := Trigger{service: s.UID, pods: map[string]time.Time{}}
	for _, p := range all {
		at := turned(p)
		if at.IsZero() {
			continue
		}
		now.pods[p.Name] = at
		if at.After(t.pods[p.Name]) && (now.At.IsZero() || at.Before(now.At)) {
			now.At = at
		}
	}
	if t.service != s.UID {
		now.At = s.CreationTimestamp.Time
	}
	return now
}

// turned is when a pod became ready, or ceased to be.
func turned(p *corev1.Pod) time.Time {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// Keep has later triggers be compared with this.
func (t *Triggers) Keep(key client.Key, now Trigger) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen[key] = now
}

// Forget is for services that are gone.
func (t *Triggers) Forget(key client.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.seen, key)
}

// Annotate says in the annotations of an object when what changes it began, or says
// nothing if that is not known. It returns them, which are new if there were none.
func (t Trigger) Annotate(annotations map[string]string) map[string]string {
	if annotations == nil {
		annotations = map[string]string{}
	}
	delete(annotations, corev1.EndpointsLastChangeTriggerTime)
	if !t.At.IsZero() {
		annotations[corev1.EndpointsLastChangeTriggerTime] = t.At.UTC().Format(time.RFC3339Nano)
	}
	return annotations
}
