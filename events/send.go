package events

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
)

// verdict is what a server says to a write.
type verdict int

const (
	created verdict = iota
	updated
	failed  // it may succeed later
	refused // it will not
)

// sendWithin is how long a write may take.
const sendWithin = 30 * time.Second

// send creates an event or sets its count. Counts are not added to but set, so that
// a write may be repeated.
func (r *Recorder) send(ctx context.Context, w *write) (verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, sendWithin)
	defer cancel()
	v := updated
	var err error
	if !w.create {
		err = r.update(ctx, w)
	}
	if w.create || client.IsNotFound(err) { // it expired, or somebody deleted it
		v, err = created, r.create(ctx, w)
	}
	if client.IsAlreadyExists(err) { // an earlier try succeeded, but nobody heard
		v, err = updated, r.update(ctx, w)
	}
	switch {
	case err == nil:
		return v, nil
	case isFinal(err):
		return refused, err
	}
	return failed, err
}

func (r *Recorder) create(ctx context.Context, w *write) error {
	e := *w.event
	e.Series = w.ofSeries()
	if _, err := r.client.Create(ctx, &e); err != nil {
		return fmt.Errorf("create event %s/%s: %w", e.Namespace, e.Name, err)
	}
	return nil
}

func (r *Recorder) update(ctx context.Context, w *write) error {
	series := w.ofSeries()
	if series == nil {
		return nil
	}
	key := client.KeyOf(w.event)
	if _, err := r.client.Patch(ctx, key, client.MergePatch(map[string]any{"series": series})); err != nil {
		return fmt.Errorf("update event %s: %w", key, err)
	}
	return nil
}

// ofSeries is nil for what happened once.
func (w *write) ofSeries() *eventsv1.EventSeries {
	if w.count < 2 {
		return nil
	}
	return &eventsv1.EventSeries{Count: w.count, LastObservedTime: metav1.NewMicroTime(w.last.Truncate(time.Microsecond))}
}

// isFinal reports whether the server would say the same again: it is the event that
// it does not want, and not the moment.
func isFinal(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return client.IsNoKind(err)
	}
	switch code := status.Status().Code; code {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return false
	default:
		return code >= 400 && code < 500
	}
}
