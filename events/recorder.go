package events

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/even-keel/evenkeel/client"
)

// Recorder tells a server of events. Make one with [New], and run it; it is safe
// for concurrent use.
type Recorder struct {
	options Options
	err     error // of the options
	client  *client.Client[*eventsv1.Event]
	ran     atomic.Bool
	wake    chan struct{} // there may be something to write

	mu      sync.Mutex
	book    *book
	fullLog time.Time // when it was last logged that there is no room
}

// New returns a recorder. It sends nothing, and nothing is sent before
// [Recorder.Run], of which options that do not fit are an error.
func New(s client.Source, o Options) *Recorder {
	o = o.withDefaults()
	r := &Recorder{options: o, err: o.check(), client: client.Of[*eventsv1.Event](s.Conn()), wake: make(chan struct{}, 1)}
	r.book = newBook(&r.options)
	return r
}

// Event records that something happened to an object. It is [Recorder.Record] for
// what most events are; the note is formatted as by [fmt.Sprintf].
func (r *Recorder) Event(about runtime.Object, t Type, reason, note string, args ...any) {
	r.Record(Event{Regarding: about, Type: t, Reason: reason, Note: fmt.Sprintf(note, args...)})
}

// Record records an event. It sends nothing and never waits for the server: what
// happens again is counted, and what is too much is dropped and counted in
// [Stats]. The objects are only read, and not kept.
func (r *Recorder) Record(e Event) {
	o, err := r.occurrence(e, time.Now())
	if err != nil {
		r.mu.Lock()
		r.book.stats.Recorded++
		r.book.stats.Dropped.Bad++
		r.mu.Unlock()
		r.options.Logger.Error("an event was dropped", "reason", e.Reason, "note", e.Note, "error", err)
		return
	}
	r.mu.Lock()
	what := r.book.record(o)
	tell := what == full && o.at.Sub(r.fullLog) >= time.Minute
	if tell {
		r.fullLog = o.at
	}
	r.mu.Unlock()
	switch {
	case what == kept:
		r.rouse()
	case tell:
		r.logDrop(slog.LevelWarn, o, "too many are pending")
	case what == spam:
		r.logDrop(slog.LevelDebug, o, "there are too many about this object")
	case what == late:
		r.logDrop(slog.LevelDebug, o, "the recorder has stopped")
	}
}

func (r *Recorder) logDrop(level slog.Level, o occurrence, why string) {
	r.options.Logger.Log(context.Background(), level, "an event was dropped", "why", why,
		"kind", o.regarding.Kind, "namespace", o.regarding.Namespace, "name", o.regarding.Name, "reason", o.subject.reason, "note", o.note)
}

// Stats counts what became of events. It takes constant time.
func (r *Recorder) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.book.figures()
}

func (r *Recorder) rouse() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run writes events until ctx ends, and then what is pending, for up to
// [Options].Grace; the rest is dropped. It returns once nothing runs any more.
// Events that are recorded before Run are kept for it, those after it are dropped.
// A recorder runs once. That ctx ends is no error.
func (r *Recorder) Run(ctx context.Context) error {
	if r.err != nil {
		return r.err
	}
	if !r.ran.CompareAndSwap(false, true) {
		return ErrRan
	}
	writing, abandon := context.WithCancel(context.WithoutCancel(ctx))
	var writers sync.WaitGroup
	r.dispatch(ctx, func(w *write) { writers.Go(func() { r.carryOut(writing, w) }) })
	abandon()
	writers.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.book.close()
	if n := r.book.stats.Dropped.Stopped; n > 0 {
		r.options.Logger.Warn("events were dropped, because the recorder stopped", "events", n)
	}
	return nil
}

// dispatch has writes begun as they fall due. It returns when ctx has ended and
// either nothing is left or the grace is over.
func (r *Recorder) dispatch(ctx context.Context, begin func(*write)) {
	stop := ctx.Done()
	var enough <-chan time.Time
	for {
		w, wait, idle := r.next()
		switch {
		case w != nil:
			begin(w)
			continue
		case idle && stop == nil:
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-r.wake:
		case <-timer.C:
		case <-stop:
			stop, enough = nil, time.After(r.options.Grace)
			r.mu.Lock()
			r.book.drain()
			r.mu.Unlock()
		case <-enough:
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

func (r *Recorder) next() (w *write, wait time.Duration, idle bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w, wait = r.book.next(time.Now())
	return w, wait, r.book.idleNow()
}

// carryOut does a write.
func (r *Recorder) carryOut(ctx context.Context, w *write) {
	v, err := r.send(ctx, w)
	r.mu.Lock()
	before := r.book.stats.Dropped.Total()
	r.book.done(w, v, time.Now())
	dropped := r.book.stats.Dropped.Total() - before
	r.mu.Unlock()
	if dropped > 0 {
		g := w.event.Regarding
		r.options.Logger.Warn("events were dropped", "events", dropped, "kind", g.Kind, "namespace", g.Namespace, "name", g.Name,
			"reason", w.event.Reason, "note", w.event.Note, "error", err)
	}
	r.rouse()
}
