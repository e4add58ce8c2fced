package informer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/cache"
	"github.com/even-keel/evenkeel/client"
)

// The patience of a reflector.
const (
	// answerWithin is how long a server may take to begin an answer, and how long
	// it may pause in the middle of a list.
	answerWithin = time.Minute
	// manyQuiets is how many times the patience for a bookmark a state may take
	// altogether.
	manyQuiets = 20
	// changeWithin bounds the waiting for something that somebody has to change
	// in the cluster: a kind that does not exist, a right that is missing.
	changeWithin = 5 * time.Second
	// healthyAfter is how long a watch stands that did not fail, though nothing
	// came.
	healthyAfter = 10 * time.Second
)

// reflector fills the part of an informer, and keeps it up to date.
//
// It begins with a state, and follows the changes from its revision on. A state
// comes by WatchList, in the same stream as the changes after it; or by a list,
// from servers that cannot do that. A connection that ends goes on from the
// revision of the last event. If the server has forgotten that, a new state
// replaces the old.
type reflector[T client.Object] struct {
	of   *shared[T]
	part *part[T]
	// revision is the one to go on from; "" if a state is needed.
	revision string
	// began says that the part has had a state: later ones are to be the newest.
	began bool
	// lists says that the server does not do WatchList, oneList that it forgets
	// faster than pages can be read.
	lists, oneList bool
	// progress says that something has come since the last failure, opened when
	// the last watch began.
	progress bool
	opened   time.Time
	backoff  backoff
}

func newReflector[T client.Object](of *shared[T], p *part[T]) *reflector[T] {
	c := of.set.config
	return &reflector[T]{
		of: of, part: p, lists: of.config.noWatchList,
		backoff: backoff{least: c.MinBackoff, most: c.MaxBackoff},
	}
}

// run returns when the context ends.
func (r *reflector[T]) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := r.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		wait := r.judge(err)
		if !ended(err) {
			r.fail(err, wait)
		}
		sleep(ctx, wait)
	}
}

// follow gets a state if it needs one, and follows the changes until the server
// ends the watch or something fails.
func (r *reflector[T]) follow(ctx context.Context) error {
	switch {
	case r.revision != "":
	case r.lists:
		r.part.board.enter(Listing)
		if err := r.list(ctx); err != nil {
			return err
		}
	default:
		r.part.board.enter(Listing)
		return r.watchList(ctx)
	}
	return r.watch(ctx)
}

func (r *reflector[T]) watchList(ctx context.Context) error {
	opts := []client.ReadOption{client.InitialEvents()}
	if r.of.config.anyVersion && !r.began {
		opts = append(opts, client.From("0"))
	}
	within := r.of.set.config.BookmarkWithin
	in, err := r.open(ctx, within, opts...)
	if errors.Is(err, ErrStalled) && apierrors.ReasonForError(err) == metav1.StatusReasonUnknown {
		return fmt.Errorf("%w: %w", ErrNoBookmark, err)
	}
	if err != nil {
		return err
	}
	in.start(true)
	defer in.end()
	return r.take(in, &state[T]{
		replacement: r.of.replace(r.part), within: within, until: time.Now().Add(manyQuiets * within), late: ErrNoBookmark,
	})
}

func (r *reflector[T]) watch(ctx context.Context) error {
	in, err := r.open(ctx, answerWithin, client.From(r.revision), client.Bookmarks())
	if err != nil {
		return err
	}
	r.part.board.enter(Watching)
	in.start(false)
	defer in.end()
	return r.take(in, nil)
}

// open begins a watch, which the server is to end after a while: watches move
// from server to server that way. The context of a server that does not is ended.
func (r *reflector[T]) open(ctx context.Context, within time.Duration, opts ...client.ReadOption) (*intake[T], error) {
	last := jitter(r.of.set.config.WatchFor)
	ctx, cancel := context.WithTimeout(ctx, last+answerWithin)
	stalled := time.AfterFunc(within, cancel)
	opts = append([]client.ReadOption{r.part.selection.options(), client.Timeout(last)}, opts...)
	w, err := r.of.client.WatchRaw(ctx, opts...)
	if !stalled.Stop() && err != nil {
		err = fmt.Errorf("no answer within %s: %w: %w", within, ErrStalled, err)
	}
	if err != nil {
		cancel()
		return nil, err
	}
	r.opened = time.Now()
	return r.intake(w.Next, func() {
		w.Close()
		cancel()
	}), nil
}

func (r *reflector[T]) intake(next func(*[]byte) (client.Frame, error), end func()) *intake[T] {
	return &intake[T]{next: next, close: end, decode: r.of.decode, decodeState: r.of.decodeState, decoders: r.of.set.decoders}
}

// list gets a state by listing. The pages of a list are of one revision.
func (r *reflector[T]) list(ctx context.Context) error {
	opts := []client.ReadOption{r.part.selection.options()}
	if !r.oneList {
		opts = append(opts, client.Chunk(r.of.set.config.PageSize))
	}
	if r.of.config.anyVersion && !r.began {
		opts = append(opts, client.NotOlderThan("0"))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stalled := time.AfterFunc(answerWithin, cancel)
	l, err := r.of.client.ListRaw(ctx, opts...)
	if !stalled.Stop() && err != nil {
		err = fmt.Errorf("no answer within %s: %w: %w", answerWithin, ErrStalled, err)
	}
	if err != nil {
		return err
	}
	replacement := r.of.replace(r.part)
	err = r.takeList(l, cancel, replacement)
	if !errors.Is(err, io.EOF) {
		r.oneList = r.oneList || client.IsExpired(err)
		return err
	}
	r.complete(replacement, l.Revision())
	return nil
}

// takeList returns io.EOF after the last item.
func (r *reflector[T]) takeList(l *client.RawList, cancel func(), to *replacement[T]) error {
	in := r.intake(func(buf *[]byte) (client.Frame, error) {
		raw, err := l.Next(buf)
		return client.Frame{Type: client.Added, Object: raw}, err
	}, cancel)
	in.start(true)
	defer l.Close()
	defer in.end()
	return r.take(in, &state[T]{replacement: to, within: answerWithin, late: ErrStalled})
}

// complete has a state be the part's.
func (r *reflector[T]) complete(to *replacement[T], revision string) {
	to.finish(revision)
	r.revision, r.began, r.progress = revision, true, true
	r.part.board.heard(revision)
}

// state is a replacement under way, and when it is given up.
type state[T client.Object] struct {
	*replacement[T]
	within time.Duration // without anything new
	until  time.Time     // in any case, if it is set
	late   error
}

// wait is how long there may be nothing new from now on.
func (s *state[T]) wait() time.Duration {
	if s.until.IsZero() {
		return s.within
	}
	return min(s.within, time.Until(s.until))
}

// take takes what comes until it ends. What comes up to the end of a state, if
// one is expected, goes to its replacement, and what follows to the informer.
func (r *reflector[T]) take(in *intake[T], s *state[T]) error {
	late := time.NewTimer(time.Hour)
	defer late.Stop()
	if s == nil {
		late.Stop()
	} else {
		late.Reset(s.wait())
	}
	for {
		select {
		case c := <-in.chunks:
			rest, err := r.takeChunks(in, c, s)
			if s = rest; s == nil {
				late.Stop()
			} else if s.progress {
				s.progress = false
				late.Reset(s.wait())
			}
			if err != nil {
				return err
			}
		case <-late.C:
			return fmt.Errorf("nothing new for %s: %w", s.within, s.late)
		}
	}
}

// takeChunks takes a chunk and what is ready behind it. Once the state is complete,
// the reader takes what it has time for.
func (r *reflector[T]) takeChunks(in *intake[T], c *chunk[T], s *state[T]) (*state[T], error) {
	in.turn.Lock()
	defer in.turn.Unlock()
	items, n, end := in.take(c)
	s, err := r.takeItems(items, s)
	in.queued.Add(-n)
	if s == nil && in.inline == nil {
		in.inline = func(items []item[T]) error { _, err := r.takeItems(items, nil); return err }
	}
	return s, cmp.Or(err, end)
}

// takeItems returns the state, or nil if it is complete.
func (r *reflector[T]) takeItems(items []item[T], s *state[T]) (*state[T], error) {
	if len(items) == 0 {
		return s, nil
	}
	var events []event[T]
	revision := ""
	flush := func() {
		if s != nil {
			s.add(events)
		} else if revision != "" {
			r.of.apply(r.part, write[T]{events: events, revision: revision})
			r.revision = revision
		}
		events = nil
	}
	for _, it := range items {
		if it.err != nil {
			flush()
			return s, it.err
		}
		revision = it.obj.GetResourceVersion()
		switch {
		case it.frame.Type != client.Bookmark:
			events = append(events, r.of.event(it))
		case s != nil && it.initialEnd():
			flush()
			r.part.board.enter(Watching) // before anybody hears that it is complete
			r.complete(s.replacement, revision)
			s = nil
		}
	}
	flush()
	r.progress = r.progress || s == nil
	r.part.board.heard(r.revision)
	return s, nil
}

// judge says how long to wait after an error, and what to do otherwise then.
func (r *reflector[T]) judge(err error) time.Duration {
	if r.progress || !r.opened.IsZero() && time.Since(r.opened) >= healthyAfter {
		r.backoff.reset()
	}
	r.progress, r.opened = false, time.Time{}
	limit := r.backoff.most
	switch {
	case client.IsExpired(err), isTooLarge(err):
		r.revision = ""
	case r.refusesWatchList(err):
		r.lists = true
		return 0
	case client.IsNoKind(err):
		r.of.vanish(r.part)
		r.revision, limit = "", changeWithin
	case client.IsForbidden(err), client.IsUnauthorized(err), client.IsNotFound(err):
		limit = changeWithin
	}
	wait := r.backoff.next(limit)
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		asked := time.Duration(seconds) * time.Second
		wait = max(wait, asked+jitter(asked/10))
	}
	return wait
}

// refusesWatchList reports whether an error means that the state has to be listed.
func (r *reflector[T]) refusesWatchList(err error) bool {
	if r.lists || r.revision != "" {
		return false
	}
	return errors.Is(err, ErrNoBookmark) || client.IsInvalid(err) || apierrors.IsBadRequest(err)
}

// isTooLarge is true of a revision that the server does not know yet: it was
// restored from a backup, or is not the one that told the revision.
func isTooLarge(err error) bool {
	return apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

func (r *reflector[T]) fail(err error, wait time.Duration) {
	n := r.part.board.fail(err, wait)
	if hook := r.of.set.config.OnError; hook != nil {
		hook(Failure{Kind: r.of.about, Selection: r.part.selection, Err: err, Failures: n, Wait: wait})
	}
}

// event is what an item means for the store. Last states do not go there, so they
// lose here what the store would drop.
func (s *shared[T]) event(it item[T]) event[T] {
	e := event[T]{key: client.KeyOf(it.obj), obj: it.obj, ready: it.ready, deleted: it.frame.Type == client.Deleted}
	if e.deleted && !s.config.keepManaged {
		e.obj.SetManagedFields(nil)
	}
	return e
}

// decodeState decodes objects of a state, which are let to share parts, and has
// the store do what it can before they are applied: here there are several
// processors to do it. What the store has already is left alone.
func (s *shared[T]) decodeState(items []item[T]) {
	sharer := s.sharers.Get().(*client.Sharer[T])
	defer s.sharers.Put(sharer)
	var near client.Object
	for i := range items {
		it := &items[i]
		bytes := 0
		if s.transform == nil {
			it.obj, bytes, it.err = sharer.Decode(it.frame.Object)
		} else {
			it.obj, it.err = s.decode(it.frame)
		}
		switch {
		case it.err != nil || it.frame.Type == client.Bookmark || it.frame.Type == client.Deleted || s.has(it.obj):
		case bytes > 0:
			it.ready = s.store.PrepareShared(it.obj, bytes)
		default:
			it.ready = s.store.Prepare(it.obj, near)
			near = it.obj
		}
	}
}

// has reports whether the store has an object in the same revision.
func (s *shared[T]) has(obj T) bool {
	e := s.store.Snapshot().Entry(obj.GetNamespace(), obj.GetName())
	return e.Exists() && e.Revision() == cache.Revision(obj.GetResourceVersion())
}

// decode makes an object ready for the store, and for handlers.
func (s *shared[T]) decode(f client.Frame) (T, error) {
	raw := f.Object
	if s.strips && raw.Encoding == client.Protobuf {
		raw.Bytes = stripManaged(raw.Bytes)
	}
	obj, err := s.client.Decode(raw)
	if err != nil {
		return obj, err
	}
	if s.transform != nil && f.Type != client.Bookmark {
		obj = s.transform(obj)
	}
	return obj, nil
}
