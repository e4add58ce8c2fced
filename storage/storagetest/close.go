package storagetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/even-keel/evenkeel/storage"
)

var closeBehaviours = behaviours{
	"a closed store answers nothing":         closedAnswers,
	"watchers end when the store closes":     closeEndsWatchers,
	"values that were read outlive it":       closeKeepsValues,
	"amid traffic every call gets an answer": closeUnderTraffic,
	"nothing is left running":                closeLeavesNothing,
}

func closedAnswers(ctx context.Context, s *subject) {
	at := s.create(ctx, "key", "1")
	watchers := map[string]*cursor{
		"a watcher with events at hand":  s.watch("key", at-1),
		"a watcher without events":       s.watch("key", at),
		"a watcher of a future revision": s.watch("key", at+10),
		"a watcher in mid-stream":        s.watch("key", at-1),
		"a watcher that asked":           s.watch("key", at),
	}
	if err := watchers["a watcher in mid-stream"].read(ctx, 1); err != nil {
		s.t.Fatal(err)
	}
	watchers["a watcher that asked"].requestProgress()
	s.close()
	s.close() // harmless
	for name, call := range s.calls(at) {
		s.wantErr(name+" after Close", call(ctx), storage.ErrClosed)
	}
	for name, c := range watchers {
		s.wantErr("Next of "+name+" after Close", c.step(ctx), storage.ErrClosed)
		c.requestProgress()
		c.watcher.Close()
		s.wantErr("Next of "+name+" after both Closes", c.step(ctx), storage.ErrClosed)
	}
	late := s.watch("", 0)
	late.requestProgress()
	s.wantErr("Next of a watcher opened after Close", late.step(ctx), storage.ErrClosed)
}

// closeEndsWatchers closes the store while watchers wait. Their context has no
// end: it must not be what wakes them.
func closeEndsWatchers(ctx context.Context, s *subject) {
	at := s.create(ctx, "key", "1")
	answers := make(chan error, 100)
	watchers := s.size(50, 10)
	for i := range watchers {
		c := s.watch(storage.Key([]string{"", "key", "idle"}[i%3]), at)
		if i%2 == 0 {
			s.covered(ctx, c) // it is known to have been at work
		}
		go func() { answers <- c.step(context.WithoutCancel(ctx)) }()
	}
	s.untilBlocked(ctx, watchers)
	s.close()
	for range watchers {
		s.wantErr("a blocked Next", s.answer(ctx, answers), storage.ErrClosed)
	}
}

// answer returns what comes, and fails the test if nothing does.
func (s *subject) answer(ctx context.Context, answers <-chan error) error {
	s.t.Helper()
	select {
	case err := <-answers:
		return err
	case <-ctx.Done():
		s.t.Fatal("Next still blocks after Close")
		return nil
	}
}

// closeKeepsValues reads in every way, closes, and looks at the bytes.
func closeKeepsValues(ctx context.Context, s *subject) {
	value := strings.Repeat("kept ", 1000)
	at := s.create(ctx, "key", value)
	result, err := s.commit(ctx, storage.Replace("key", []byte(value), at))
	if err != nil {
		s.t.Fatal(err)
	}
	c := s.watch("key", at)
	if err := c.read(ctx, 1); err != nil {
		s.t.Fatal(err)
	}
	got, scanned := s.get(ctx, "key"), s.only(ctx, "key")
	s.close()
	s.t.Run("while another store uses its memory", func(t *testing.T) {
		newSubject(t, s.open).fill(ctx)
	})
	for name, bytes := range map[string][]byte{
		"get": got.Value, "scan": scanned.Value, "commit": result.Previous.Value,
		"watch": c.events[0].Value, "watch, previous": c.events[0].Previous.Value,
	} {
		if string(bytes) != value {
			s.t.Errorf("%s: the value has changed by closing the store", name)
		}
	}
}

// closeUnderTraffic closes while everybody is at work: a call is answered in
// full or with ErrClosed.
func closeUnderTraffic(ctx context.Context, s *subject) {
	start, written := s.head(ctx), make(chan struct{}, 1000)
	crew, ctx := s.crew(ctx)
	until := func(work func() error) func() error {
		return func() error {
			for ctx.Err() == nil {
				if err := work(); errors.Is(err, storage.ErrClosed) {
					return nil
				} else if err != nil {
					return fmt.Errorf("while the store was closed: %w", err)
				}
			}
			return errors.New("calls go on being answered after Close")
		}
	}
	for i := range 4 {
		n := 0
		crew.start(until(func() error {
			n++
			_, err := s.store.Commit(ctx, storage.Create(storage.Key(fmt.Sprintf("%d/%d", i, n)), []byte("1")))
			select {
			case written <- struct{}{}:
			default:
			}
			return err
		}))
		c := s.watch("", start)
		crew.start(until(func() error { return c.step(ctx) }))
		crew.start(until(func() error {
			_, err := s.store.Scan(ctx, storage.Range{Limit: 10})
			return err
		}))
	}
	for range 50 {
		select {
		case <-written:
		case <-ctx.Done():
		}
	}
	s.close()
	crew.wait()
}

// closeLeavesNothing compares the goroutines before a store was opened and
// after it, and what open made for it, was closed.
func closeLeavesNothing(ctx context.Context, s *subject) {
	s.close() // what an engine starts once for all stores has been started
	before := goroutines()
	s.t.Run("use", func(t *testing.T) {
		s := newSubject(t, s.open)
		at := s.create(ctx, "key", "1")
		answers := make(chan error, 10)
		for i := range 10 {
			c := s.watch("key", at)
			if i%2 == 0 {
				s.covered(ctx, c)
			}
			go func() { answers <- c.step(ctx) }()
			s.watch("unused", at)
		}
		s.untilBlocked(ctx, 10)
		s.close()
		for range 10 {
			s.wantErr("a blocked Next", s.answer(ctx, answers), storage.ErrClosed)
		}
	})
	s.settle(before)
}
