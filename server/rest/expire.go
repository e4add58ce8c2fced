package rest

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/even-keel/evenkeel/server/watch"
	"github.com/even-keel/evenkeel/storage"
)

// ExpireEvents deletes the events that have not been written for a time.
func (a *API) ExpireEvents(ctx context.Context, life time.Duration) error {
	r := a.registry.stored("", "events")
	if r == nil {
		return nil
	}
	before := a.now().Add(-life)
	var failed error
	r.objects.Snapshot().Scan("", "", func(o *watch.Object) bool {
		obj, err := r.decodedOnce(o)
		if err != nil {
			failed = err
			return false
		}
		if lastWritten(obj.(*corev1.Event)).After(before) {
			return true
		}
		if _, err := a.remove(ctx, r, o); err != nil && !errors.Is(err, storage.ErrConflict) {
			failed = err
		}
		return failed == nil
	})
	return failed
}

// lastWritten is when an event was made or last counted.
func lastWritten(e *corev1.Event) time.Time {
	last := e.CreationTimestamp.Time
	for _, m := range e.ManagedFields {
		if m.Time != nil && m.Time.After(last) {
			last = m.Time.Time
		}
	}
	return last
}
