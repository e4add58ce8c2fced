package storagetest

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/even-keel/evenkeel/storage"
)

var progressBehaviours = behaviours{
	"asked before next":                     progressBefore,
	"asked while next blocks":               progressWhile,
	"asked again and again":                 progressAgain,
	"asked many times before one next":      progressMany,
	"covers the writes of other prefixes":   progressIdle,
	"comes after the events that are due":   progressBehind,
	"comes after large events that are due": progressLarge,
	"of a watch after a revision to come":   progressFuture,
	"asked for and cancelled is still owed": progressCancelled,
	"is where another watch can go on":      progressResume,
}

// covered asks for progress and fails the test unless it comes and covers the
// head.
func (s *subject) covered(ctx context.Context, c *cursor) {
	s.t.Helper()
	head := s.head(ctx)
	if err := c.catchUp(ctx, head); err != nil {
		s.t.Fatal(err)
	}
}

func progressBefore(ctx context.Context, s *subject) {
	s.create(ctx, "a", "1")
	for _, after := range []storage.Revision{s.head(ctx), 0} {
		for _, prefix := range []storage.Key{"", "a", "no such"} {
			c := s.watch(prefix, after)
			s.covered(ctx, c)
			s.verify(c, s.history())
		}
	}
}

// progressWhile asks a watcher that waits.
func progressWhile(ctx context.Context, s *subject) {
	c := s.watch("idle", s.head(ctx))
	s.covered(ctx, c)
	for n := range s.size(50, 10) {
		s.create(ctx, storage.Key("busy"+strconv.Itoa(n)), "1")
		head := s.head(ctx)
		crew, waiting := s.crew(ctx)
		crew.start(func() error {
			for c.through < head {
				if err := c.step(waiting); err != nil {
					return err
				}
			}
			return nil
		})
		s.untilBlocked(ctx, 1)
		c.requestProgress()
		crew.wait()
	}
	if len(c.events) > 0 {
		s.t.Errorf("an idle watch has events: %+v", c.events)
	}
}

func progressAgain(ctx context.Context, s *subject) {
	c := s.watch("", s.head(ctx))
	for n := range 20 {
		s.covered(ctx, c) // with something new
		c.requestProgress()
		if batch, err := c.next(ctx); err != nil { // and with nothing new
			s.t.Fatal(err)
		} else if len(batch.Events) > 0 || batch.Through < s.head(ctx) {
			s.t.Errorf("at head %d: progress %+v", s.head(ctx), batch)
		}
		s.create(ctx, storage.Key(strconv.Itoa(n)), "1")
	}
	s.covered(ctx, c)
	s.verify(c, s.history())
}

func progressMany(ctx context.Context, s *subject) {
	c := s.watch("", s.head(ctx))
	for n := range 200 {
		c.requestProgress()
		if n%20 == 0 {
			s.create(ctx, storage.Key(strconv.Itoa(n)), "1")
		}
	}
	s.covered(ctx, c)
	s.create(ctx, "last", "1")
	for len(c.events) < 11 {
		if err := c.step(ctx); err != nil {
			s.t.Fatal(err)
		}
	}
	s.verify(c, s.history())
}

func progressIdle(ctx context.Context, s *subject) {
	c := s.watch("a/idle", s.head(ctx))
	for n := range s.size(50, 10) {
		for _, key := range []storage.Key{"a/", "a/idl", "a/idlf", "b"} {
			s.create(ctx, key+"!"+storage.Key(strconv.Itoa(n)), "1")
		}
		s.covered(ctx, c)
	}
	if len(c.events) > 0 {
		s.t.Errorf("an idle watch has events: %+v", c.events)
	}
	at := s.create(ctx, "a/idle", "no more")
	if err := c.read(ctx, 1); err != nil {
		s.t.Fatal(err)
	}
	s.same("the first event", at, c.events[0].Revision)
}

// progressBehind asks when there is much to deliver: a Through that runs ahead
// of the events is caught by the cursor.
func progressBehind(ctx context.Context, s *subject) {
	start := s.head(ctx)
	s.scribbleAlone(ctx, s.size(300, 60))
	s.checkWatches(ctx, s.history(), s.watchAll(somePrefixes, start))
}

// progressLarge has one large event in each batch, and after them only events
// of another prefix, as large.
func progressLarge(ctx context.Context, s *subject) {
	start := s.head(ctx)
	value := make([]byte, large)
	for n := range 3 {
		s.must(ctx, storage.Create(storage.Key(fmt.Sprintf("mine/%d", n)), value))
	}
	for n := range 3 {
		s.must(ctx, storage.Create(storage.Key(fmt.Sprintf("theirs/%d", n)), value))
	}
	s.checkWatches(ctx, s.history(), s.watchAll([]storage.Key{"", "mine/", "theirs/", "idle/"}, start))
}

// progressFuture: a watcher that waits for a revision to come has seen all that
// concerns it, and so answers.
func progressFuture(ctx context.Context, s *subject) {
	at := s.create(ctx, "a", "0")
	future := at + 5
	c := s.watch("a", future)
	s.covered(ctx, c)
	for at <= future {
		at = s.replace(ctx, "a", "1", at)
	}
	s.covered(ctx, c)
	if err := c.read(ctx, 1); err != nil {
		s.t.Fatal(err)
	}
	s.verify(c, s.history())
}

// progressCancelled asks, lets Next be cancelled, and expects the answer from a
// Next after it.
func progressCancelled(ctx context.Context, s *subject) {
	impatient := newImpatience(s.rand(0))
	ended, cancel := context.WithCancel(ctx)
	cancel()
	c := s.watch("idle", s.head(ctx))
	for n := range s.size(20, 10) {
		s.create(ctx, storage.Key("busy"+strconv.Itoa(n)), "1")
		head := s.head(ctx)
		s.cancelBlocked(ctx, []*cursor{c}, func(cancel func()) { cancel(); c.requestProgress() })
		s.wantErr("Next with a cancelled context", c.step(ended), context.Canceled)
		for c.through < head {
			if _, err := impatient.try(ctx, c.step); err != nil {
				s.t.Fatalf("waiting for progress through %d: %v", head, err)
			}
		}
	}
}

// progressResume uses Through of an idle watch as the start of another.
func progressResume(ctx context.Context, s *subject) {
	c := s.watch("mine", s.head(ctx))
	for n := range 10 {
		s.create(ctx, storage.Key(fmt.Sprintf("theirs%d", n)), "1")
		s.covered(ctx, c)
		next := s.watch("mine", c.through)
		s.create(ctx, storage.Key(fmt.Sprintf("mine%d", n)), "1")
		if err := errors.Join(next.read(ctx, 1), c.read(ctx, n+1)); err != nil {
			s.t.Fatal(err)
		}
		s.same("events of the watch that went on", c.events[n:], next.events)
	}
}
