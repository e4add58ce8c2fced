package rest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/server/watch"
	"github.com/even-keel/evenkeel/storage"
)

const (
	// A watch that asks for no timeout ends after this, or up to twice this.
	watchAtLeast = 30 * time.Minute
	// bookmarkEvery is how often a watcher hears how far it is, and
	// bookmarkBefore when it does so before its watch times out.
	bookmarkEvery  = time.Minute
	bookmarkBefore = 2 * time.Second
)

// watch streams the changes of what the selector selects.
func (c *call) watch(o internalversion.ListOptions, sel *selector) error {
	initial, after, err := c.watchStart(o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.ctx(), watchTimeout(o))
	defer cancel()
	leave, ok := c.res.watches.enter(cancel)
	defer leave()
	if !ok { // the definition has just changed: the next try finds what is now
		return errNoSuchResource()
	}
	sink, err := c.openSink(cancel)
	if err != nil {
		return err
	}
	defer sink.close()
	w := &watching{call: c, sel: sel, sink: sink, cursor: c.res.objects.Watch(after), bookmarks: o.AllowWatchBookmarks}
	defer w.cursor.Close()
	if initial != nil {
		if err := w.sendState(*initial); err != nil {
			return nil // the client has gone
		}
	}
	w.run(ctx)
	w.finish(ctx)
	return nil
}

func watchTimeout(o internalversion.ListOptions) time.Duration {
	if o.TimeoutSeconds != nil && *o.TimeoutSeconds > 0 {
		return time.Duration(*o.TimeoutSeconds) * time.Second
	}
	return watchAtLeast + rand.N(watchAtLeast)
}

// watchStart decides whether the watcher first gets the state, and from which
// revision on it gets changes.
func (c *call) watchStart(o internalversion.ListOptions) (*watch.Snapshot, storage.Revision, error) {
	rev, err := revision(o.ResourceVersion)
	if err != nil {
		return nil, 0, err
	}
	wantsState := rev == 0
	if o.SendInitialEvents != nil {
		wantsState = *o.SendInitialEvents
	}
	if !wantsState {
		if rev == 0 { // from now on
			if err := c.fresh(""); err != nil {
				return nil, 0, err
			}
			rev = c.api.hub.Through()
		}
		return nil, rev, nil
	}
	if err := c.fresh(o.ResourceVersion); err != nil {
		return nil, 0, err
	}
	s := c.res.objects.Snapshot()
	return &s, s.Revision, nil
}

// watching is one watch that runs.
type watching struct {
	*call
	sel       *selector
	sink      sink
	cursor    *watch.Cursor
	bookmarks bool
}

// sendState sends the objects that are there as added, and says that they are
// complete.
func (w *watching) sendState(s watch.Snapshot) error {
	var failed error
	s.Scan(w.sel.namespace, w.sel.scopeKey(), func(o *watch.Object) bool {
		ok, err := w.sel.matches(o)
		if err == nil && ok {
			err = w.told(w.sink.object("ADDED", o))
		}
		failed = err
		return err == nil
	})
	if failed != nil {
		return failed
	}
	if w.bookmarks {
		if err := w.sendBookmark(s.Revision, map[string]string{metav1.InitialEventsAnnotationKey: "true"}); err != nil {
			return err
		}
	}
	return w.sink.flush()
}

// run sends changes until the watch ends: by its timeout, by the client, or
// with an error as its last event.
func (w *watching) run(ctx context.Context) {
	for ctx.Err() == nil {
		if !w.runUntil(ctx, nextBookmark(ctx)) {
			return
		}
		if ctx.Err() == nil && w.bookmarks && w.bookmark() != nil {
			return
		}
	}
}

// runUntil sends changes until a bookmark is due, and reports whether the watch
// is to go on.
func (w *watching) runUntil(ctx context.Context, due time.Time) bool {
	next, cancel := context.WithDeadline(ctx, due)
	defer cancel()
	for time.Now().Before(due) {
		events, err := w.cursor.Next(next)
		switch {
		case err == nil:
			if w.sendEvents(events) != nil || ctx.Err() != nil {
				return false
			}
		case errors.Is(err, context.DeadlineExceeded):
			return true
		case errors.Is(err, context.Canceled):
			return false // the client has gone, or the server stops
		default:
			w.sendError(err)
			return false
		}
	}
	return true
}

// nextBookmark is when a watch is to hear how far it is, seen or not seen
// anything.
func nextBookmark(ctx context.Context) time.Time {
	now := time.Now()
	due := now.Add(bookmarkEvery)
	if end, ok := ctx.Deadline(); ok {
		if last := end.Add(-bookmarkBefore); last.After(now) && last.Before(due) {
			return last
		}
	}
	return due
}

func (w *watching) bookmark() error {
	if err := w.sendBookmark(w.cursor.Position(), nil); err != nil {
		return err
	}
	return w.sink.flush()
}

// finish sends what happened before the resource ended, such as the deletion of its
// objects, if that is why the watch does.
func (w *watching) finish(ctx context.Context) {
	last, over := w.res.watches.until()
	for over {
		events, err := w.cursor.Next(ctx) // which has ended: it does not wait
		if err != nil || w.sendEvents(events) != nil || w.cursor.Position() > last {
			return
		}
	}
}

func (w *watching) sendEvents(events []*watch.Event) error {
	sent := false
	last, over := w.res.watches.until()
	for _, e := range events {
		if over && e.Revision > last {
			break
		}
		kind, o, err := w.sel.change(e)
		if err != nil {
			w.sendError(err)
			return err
		}
		if kind == "" {
			continue
		}
		if err := w.told(w.sink.event(kind, o, e)); err != nil {
			return err
		}
		sent = true
	}
	if !sent {
		return nil
	}
	return w.sink.flush()
}

// change says what an event is to somebody who sees only what is selected. An
// object that is no longer seen carries the revision that took it away.
func (s *selector) change(e *watch.Event) (kind string, o *watch.Object, err error) {
	after, err := s.matches(e.Object)
	if err != nil {
		return "", nil, err
	}
	before := after // a name stays as it is
	if s.selective() || e.Object == nil || e.Previous == nil {
		if before, err = s.matches(e.Previous); err != nil {
			return "", nil, err
		}
	}
	switch {
	case before && after:
		return "MODIFIED", e.Object, nil
	case after:
		return "ADDED", e.Object, nil
	case before:
		return "DELETED", e.Previous.At(e.Revision), nil
	}
	return "", nil, nil
}

// told is for what sending an event came to. What cannot be converted ends the
// watch, with the reason as its last event.
func (w *watching) told(err error) error {
	if err != nil && w.res.custom != nil {
		w.sendError(err)
	}
	return err
}

func (w *watching) sendError(err error) {
	if errors.Is(err, storage.ErrCompacted) {
		err = expired(fmt.Sprintf("too old resource version: %d (%d)", w.cursor.Position(), w.api.hub.Through()))
	}
	s := status(err)
	s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	if w.sink.typed("ERROR", &s) == nil {
		_ = w.sink.flush()
	}
}

func (w *watching) sendBookmark(rev storage.Revision, annotations map[string]string) error {
	obj := w.res.new()
	m, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	m.SetResourceVersion(strconv.FormatUint(uint64(rev), 10))
	m.SetAnnotations(annotations)
	obj.GetObjectKind().SetGroupVersionKind(w.res.gvk)
	return w.sink.typed("BOOKMARK", obj)
}
