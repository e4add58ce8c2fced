package storagetest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/even-keel/evenkeel/storage"
)

var cancelBehaviours = behaviours{
	"a call whose context has ended says so":          cancelledBefore,
	"a cancelled commit happened whole or not at all": cancelledCommits,
	"a cancelled next returns":                        cancelledWait,
}

// calls are all calls that take a context.
func (s *subject) calls(at storage.Revision) map[string]func(ctx context.Context) error {
	return map[string]func(ctx context.Context) error{
		"Commit": func(ctx context.Context) error {
			_, err := s.store.Commit(ctx, storage.Create("new", []byte("1")))
			return err
		},
		"Get": func(ctx context.Context) error {
			_, err := s.store.Get(ctx, "key")
			return err
		},
		"Get of nothing": func(ctx context.Context) error {
			_, err := s.store.Get(ctx, "no such")
			return err
		},
		"Scan": func(ctx context.Context) error {
			_, err := s.store.Scan(ctx, storage.Range{})
			return err
		},
		"Scan of the past": func(ctx context.Context) error {
			_, err := s.store.Scan(ctx, storage.Range{Revision: at})
			return err
		},
		"Compact": func(ctx context.Context) error { return s.store.Compact(ctx, at) },
		"Head": func(ctx context.Context) error {
			_, err := s.store.Head(ctx)
			return err
		},
		"Next with events at hand": func(ctx context.Context) error { return s.watch("key", at-1).step(ctx) },
		"Next without events":      func(ctx context.Context) error { return s.watch("key", at).step(ctx) },
	}
}

func cancelledBefore(ctx context.Context, s *subject) {
	at := s.create(ctx, "key", "1")
	c := s.watch("key", at-1)
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	expired, cancel := context.WithDeadline(ctx, time.Unix(0, 0))
	defer cancel()
	for name, call := range s.calls(at) {
		s.wantErr(name+" with a cancelled context", call(cancelled), context.Canceled)
		s.wantErr(name+" with an expired context", call(expired), context.DeadlineExceeded)
	}
	for range 10 {
		s.wantErr("Next again", c.step(cancelled), context.Canceled)
	}
	if err := c.read(ctx, 1); err != nil {
		s.t.Fatal(err)
	}
	s.same("what was seen after it", at, c.events[0].Revision)
}

// cancelledCommits cancels commits at random moments. What became of them is
// unknown, but the state and the events must agree on it.
func cancelledCommits(ctx context.Context, s *subject) {
	start := s.head(ctx)
	s.rand(0)
	acknowledged := make([]map[storage.Key]bool, 8)
	s.together(ctx, len(acknowledged), func(ctx context.Context, i int) error {
		acknowledged[i] = map[storage.Key]bool{}
		impatient := newImpatience(s.rand(i))
		for n := range s.size(60, 20) {
			key := storage.Key(fmt.Sprintf("%d/%d", i, n))
			gaveUp, err := impatient.try(ctx, func(ctx context.Context) error {
				_, err := s.store.Commit(ctx, storage.Create(key, []byte(strconv.Itoa(n))))
				return err
			})
			if err != nil {
				return err
			}
			acknowledged[i][key] = !gaveUp
		}
		return nil
	})
	state := replica{}
	at, err := s.list(ctx, storage.Range{Limit: 50}, state)
	if err != nil {
		s.t.Fatal(err)
	}
	c := s.watch("", start)
	if err := c.catchUp(ctx, at); err != nil {
		s.t.Fatal(err)
	}
	s.sameState(state, c.events, at)
	for i := range acknowledged {
		for key, ok := range acknowledged[i] {
			if ok && !state[key].Exists() {
				s.t.Errorf("%q was acknowledged and is not there", key)
			}
		}
	}
}

// sameState compares a listed state with the sum of the events up to it.
func (s *subject) sameState(listed replica, events []storage.Event, at storage.Revision) {
	s.t.Helper()
	sum := replica{}
	for _, event := range events {
		if event.Revision > at {
			break
		}
		if err := sum.apply(event); err != nil {
			s.t.Error(err)
		}
	}
	s.same("the listed state and the sum of the events", listed, sum)
}

// cancelledWait cancels watchers that wait in Next: when nothing happens, and
// in the moment in which something does. None may be lost, none come twice.
func cancelledWait(ctx context.Context, s *subject) {
	at, written := s.create(ctx, "key", "1"), 0
	watches := make([]*cursor, 16)
	for i := range watches {
		watches[i] = s.watch("key", at)
	}
	write := func() { at, written = s.replace(ctx, "key", "more", at), written+1 }
	for range s.size(8, 3) {
		s.cancelBlocked(ctx, watches, func(cancel func()) { cancel() })
		s.cancelBlocked(ctx, watches, func(cancel func()) { write(); cancel() })
		s.readAll(ctx, watches, written)
		s.cancelBlocked(ctx, watches, func(cancel func()) { cancel(); write() })
		s.readAll(ctx, watches, written)
	}
	s.checkWatches(ctx, s.history(), watches)
}

// cancelBlocked lets the watches block in Next, does something, and returns
// when each Next has returned.
func (s *subject) cancelBlocked(ctx context.Context, watches []*cursor, do func(cancel func())) {
	s.t.Helper()
	brief, cancel := context.WithCancel(ctx)
	defer cancel()
	crew, _ := s.crew(ctx)
	for _, c := range watches {
		crew.start(func() error {
			if err := c.step(brief); err != nil && !errors.Is(err, context.Canceled) {
				return err
			}
			return nil
		})
	}
	s.untilBlocked(ctx, len(watches))
	do(cancel)
	crew.wait()
}

// readAll reads until each of the watches has n events.
func (s *subject) readAll(ctx context.Context, watches []*cursor, n int) {
	s.t.Helper()
	s.together(ctx, len(watches), func(ctx context.Context, i int) error { return watches[i].read(ctx, n) })
}
