package storagetest

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/even-keel/evenkeel/storage"
)

var watchBehaviours = behaviours{
	"a watch after nothing starts at the beginning":        watchFromZero,
	"a watch after any past revision sees the rest":        watchFromPast,
	"a watch after the head sees what comes":               watchFromHead,
	"a watch after a revision to come starts there":        watchFromFuture,
	"a watch resumes after each of its events":             watchResumes,
	"a watch sees its prefix and nothing else":             watchPrefixes,
	"an event tells what it replaced":                      watchPrevious,
	"a watch of a prefix without keys sees the first come": watchNewcomers,
	"opening a watch asks nothing of the store":            watchUnused,
	"a closed watcher ends and the others go on":           watchClosed,
	"watchers of one store do not disturb one another":     watchIndependent,
}

// checkWatch opens a watch after a revision and compares all of it, up to the
// newest write, with the history.
func (s *subject) checkWatch(ctx context.Context, h history, prefix storage.Key, after storage.Revision) {
	s.t.Helper()
	s.checkWatches(ctx, h, []*cursor{s.watch(prefix, after)})
}

// checkWatches reads watches at once, and compares all of each with the history.
func (s *subject) checkWatches(ctx context.Context, h history, watches []*cursor) {
	s.t.Helper()
	s.together(ctx, len(watches), func(ctx context.Context, i int) error {
		defer watches[i].watcher.Close()
		return watches[i].catchUp(ctx, h.newest())
	})
	for _, c := range watches {
		s.verify(c, h)
	}
}

// watchEach opens a watch of a prefix after each of the revisions from one up
// to another.
func (s *subject) watchEach(prefix storage.Key, from, to storage.Revision) []*cursor {
	var watches []*cursor
	for after := from; after <= to; after++ {
		watches = append(watches, s.watch(prefix, after))
	}
	return watches
}

// watchAll opens a watch of each of the prefixes.
func (s *subject) watchAll(prefixes []storage.Key, after storage.Revision) []*cursor {
	var watches []*cursor
	for _, prefix := range prefixes {
		watches = append(watches, s.watch(prefix, after))
	}
	return watches
}

func watchFromZero(ctx context.Context, s *subject) {
	s.scribbleAlone(ctx, 50)
	s.checkWatches(ctx, s.history(), s.watchAll(somePrefixes, 0))
}

func watchFromPast(ctx context.Context, s *subject) {
	start := s.head(ctx)
	s.scribbleAlone(ctx, s.size(100, 40))
	h := s.history()
	s.checkWatches(ctx, h, s.watchEach("", start, h.newest()))
	s.checkWatches(ctx, h, s.watchEach("a", start, h.newest()))
}

func watchFromHead(ctx context.Context, s *subject) {
	s.create(ctx, "before", "1")
	c := s.watch("", s.head(ctx))
	for n := range 20 {
		s.create(ctx, storage.Key(strconv.Itoa(n)), "1")
		if err := c.read(ctx, n+1); err != nil {
			s.t.Fatal(err)
		}
	}
	s.verify(c, s.history())
}

// watchFromFuture lets writers come up to, reach and pass the revision; what
// is not after it is not seen.
func watchFromFuture(ctx context.Context, s *subject) {
	at := s.create(ctx, "key", "0")
	var cursors []*cursor
	for ahead := range storage.Revision(10) {
		cursors = append(cursors, s.watch("k", at+ahead))
	}
	far := at + 9
	crew, waiting := s.crew(ctx)
	for _, c := range cursors {
		crew.start(func() error { return c.read(waiting, 3) }) // so that they wait while it happens
	}
	s.untilBlocked(ctx, len(cursors))
	for past := 0; past < 3; {
		if at = s.replace(ctx, "key", "more", at); at > far {
			past++
		}
	}
	crew.wait()
	h := s.history()
	for _, c := range cursors {
		if err := c.catchUp(ctx, at); err != nil {
			s.t.Fatal(err)
		}
		s.verify(c, h)
	}
}

func watchResumes(ctx context.Context, s *subject) {
	start := s.head(ctx)
	s.scribbleAlone(ctx, s.size(80, 30))
	h := s.history()
	first := s.watch("a", start)
	if err := first.catchUp(ctx, h.newest()); err != nil {
		s.t.Fatal(err)
	}
	s.verify(first, h)
	var resumed []*cursor
	for _, event := range first.events {
		resumed = append(resumed, s.watch("a", event.Revision))
	}
	s.checkWatches(ctx, h, resumed)
}

func watchPrefixes(ctx context.Context, s *subject) {
	start := s.head(ctx)
	for _, key := range awkward {
		at := s.create(ctx, key, "1")
		at = s.replace(ctx, key, "2", at)
		s.delete(ctx, key, at)
	}
	others := []storage.Key{"no such", "\xff\xff\xff\xff", longKey(storage.MaxKeyBytes)}
	s.checkWatches(ctx, s.history(), s.watchAll(slices.Concat(awkward, others), start))
}

func watchPrevious(ctx context.Context, s *subject) {
	c := s.watch("key", s.head(ctx))
	one := s.create(ctx, "key", "one")
	two := s.replace(ctx, "key", "two", one)
	gone := s.delete(ctx, "key", two)
	three := s.create(ctx, "key", "three")
	if err := c.read(ctx, 4); err != nil {
		s.t.Fatal(err)
	}
	s.same("events", []storage.Event{
		{Key: "key", Revision: one, Value: []byte("one")},
		{Key: "key", Revision: two, Value: []byte("two"), Previous: storage.Entry{Key: "key", Value: []byte("one"), Revision: one}},
		{Key: "key", Revision: gone, Deleted: true, Previous: storage.Entry{Key: "key", Value: []byte("two"), Revision: two}},
		{Key: "key", Revision: three, Value: []byte("three")},
	}, c.events)
}

// watchNewcomers writes much that does not concern the watcher before what
// does; nothing but that may wake it.
func watchNewcomers(ctx context.Context, s *subject) {
	c := s.watch("mine/", s.head(ctx))
	crew, waiting := s.crew(ctx)
	crew.start(func() error { return c.read(waiting, 2) })
	for n := range 30 {
		s.untilBlocked(ctx, 1)
		s.create(ctx, storage.Key(fmt.Sprintf("theirs/%d", n)), "1")
	}
	s.untilBlocked(ctx, 1)
	s.create(ctx, "mine/1", "1")
	s.create(ctx, "min", "1")
	s.create(ctx, "mine0", "1")
	s.create(ctx, "mine/", "1")
	crew.wait()
	s.verify(c, s.history())
}

func watchUnused(ctx context.Context, s *subject) {
	for range 100 {
		s.watch("a", s.head(ctx))
		s.watch("a", 1<<60)
	}
	s.create(ctx, "a", "1")
	s.checkWatch(ctx, s.history(), "a", 0)
}

func watchClosed(ctx context.Context, s *subject) {
	start := s.head(ctx)
	blocked, fresh, survivor := s.watch("a", start), s.watch("a", start), s.watch("a", start)
	answers := make(chan error, 1)
	go func() { answers <- blocked.step(context.WithoutCancel(ctx)) }()
	s.untilBlocked(ctx, 1)
	blocked.watcher.Close()
	s.wantErr("Next of a watcher that was closed", s.answer(ctx, answers), storage.ErrClosed)

	fresh.watcher.Close()
	fresh.watcher.Close() // harmless
	fresh.requestProgress()
	s.wantErr("Next of a watcher that was closed before", fresh.step(ctx), storage.ErrClosed)

	s.create(ctx, "a", "1")
	s.wantErr("Next of a closed watcher with events to come", blocked.step(ctx), storage.ErrClosed)
	if err := survivor.read(ctx, 1); err != nil {
		s.t.Fatal(err)
	}
	s.verify(survivor, s.history())
}

// watchIndependent opens watchers that stand at different places of one
// history and reads them in turn.
func watchIndependent(ctx context.Context, s *subject) {
	start := s.head(ctx)
	s.scribbleAlone(ctx, s.size(60, 30))
	h := s.history()
	var cursors []*cursor
	for after := start; after < h.newest(); after += 7 {
		cursors = append(cursors, s.watch("", after))
	}
	for turn := range len(h) {
		for _, c := range cursors {
			if turn%(1+int(c.after%3)) == 0 && c.through < h.newest() {
				if err := c.step(ctx); err != nil {
					s.t.Fatal(err)
				}
			}
		}
	}
	for _, c := range cursors {
		if err := c.catchUp(ctx, h.newest()); err != nil {
			s.t.Fatal(err)
		}
		s.verify(c, h)
	}
}
