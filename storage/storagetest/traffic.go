package storagetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/even-keel/evenkeel/storage"
)

// awkward are keys that encodings get wrong: prefixes of one another, zero
// bytes, the greatest byte, separators, and nothing at all.
var awkward = []storage.Key{
	"", "\x00", "\x00\x00", "\x00\x01", "\x00\xff", "\x01",
	"/", "//", "a", "a\x00", "a\x00\x00", "a\x00b", "a\x01", "a/", "a/b", "a/b/c", "a0", "aa", "ab", "abc",
	"a\xfe\xff", "a\xff", "a\xff\x00", "a\xff\xff", "a\xff\xff\xff", "b", "b/", "\xfe", "\xfe\xff", "\xff", "\xff\x00", "\xff\xff", "\xff\xff\xff",
}

// somePrefixes are worth watching and scanning when awkward keys are written.
var somePrefixes = []storage.Key{"", "a", "a\x00", "a/", "a\xff", "\x00", "\xff", "\xff\xff", "b", "abc", "no such"}

// traffic runs writers and readers at once. When the last writer has returned
// the ledger is closed, which ends the readers.
func (s *subject) traffic(
	ctx context.Context,
	writers int, write func(ctx context.Context, i int) error,
	readers int, read func(ctx context.Context, i int) error,
) {
	s.t.Helper()
	crew, ctx := s.crew(ctx)
	var writing sync.WaitGroup
	writing.Add(writers)
	for i := range readers {
		crew.start(func() error { return read(ctx, i) })
	}
	for i := range writers {
		crew.start(func() error {
			defer writing.Done()
			return write(ctx, i)
		})
	}
	crew.start(func() error {
		writing.Wait()
		s.ledger.close()
		return nil
	})
	crew.wait()
}

// scribbler returns a writer for traffic that makes n random writes.
func (s *subject) scribbler(keys []storage.Key, n int) func(ctx context.Context, i int) error {
	s.rand(0) // the seed is logged before anything runs
	return func(ctx context.Context, i int) error { return s.scribble(ctx, i, keys, n) }
}

// scribble makes n random writes, as the i-th of several who may be at it.
// Those that lose to another writer count too.
func (s *subject) scribble(ctx context.Context, i int, keys []storage.Key, n int) error {
	rng := s.rand(1000 + i)
	for n := range n {
		key := keys[rng.IntN(len(keys))]
		entry, err := s.store.Get(ctx, key)
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return fmt.Errorf("get %q: %w", key, err)
		}
		value := append(fmt.Appendf(nil, "writer %d, write %d", i, n), make([]byte, s.padding)...)
		w := storage.Replace(key, value, entry.Revision)
		if entry.Exists() && rng.IntN(3) == 0 {
			w = storage.Delete(key, entry.Revision)
		}
		if _, err := s.commit(ctx, w); err != nil && !errors.Is(err, storage.ErrConflict) {
			return err
		}
	}
	return nil
}

// impatience makes contexts that end at random moments, perhaps before they
// are first used. They last longer each time that one was not long enough, so
// that whoever is impatient gets somewhere in the end.
type impatience struct {
	rng   *rand.Rand
	limit time.Duration
}

func newImpatience(rng *rand.Rand) *impatience {
	return &impatience{rng: rng, limit: 200 * time.Microsecond}
}

// try calls f with a context that ends soon, and reports whether it was
// cancelled by that rather than by ctx.
func (p *impatience) try(ctx context.Context, f func(context.Context) error) (cancelled bool, err error) {
	brief, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := time.AfterFunc(time.Duration(p.rng.Int64N(int64(p.limit))), cancel)
	defer timer.Stop()
	err = f(brief)
	if errors.Is(err, context.Canceled) && ctx.Err() == nil {
		p.limit *= 2
		return true, nil
	}
	p.limit = 200 * time.Microsecond
	return false, err
}

var trafficBehaviours = behaviours{
	"many watchers see everything once and in order":        manyWatchers,
	"a cancelled next loses nothing and repeats nothing":    cancelledNext,
	"a slow watcher gets everything":                        slowWatcher,
	"a list and a watch after it make up the state":         listAndWatch,
	"a watch resumed where one ended continues it":          resumeUnderTraffic,
	"progress covers the head while others write":           progressUnderTraffic,
	"a scan is the state at its revision":                   scanUnderTraffic,
	"pages of one scan share a revision":                    pagesUnderTraffic,
	"a scan of the newest state sees what was acknowledged": freshScan,
}

func (s *subject) follow(ctx context.Context, c *cursor) error {
	return c.follow(ctx, s.ledger, func() error { return c.step(ctx) })
}

func manyWatchers(ctx context.Context, s *subject) {
	start := s.head(ctx)
	cursors := make([]*cursor, s.size(100, 20))
	for i := range cursors {
		cursors[i] = s.watch(somePrefixes[i%len(somePrefixes)], start)
	}
	s.traffic(ctx, 4, s.scribbler(awkward, s.size(150, 40)), len(cursors), func(ctx context.Context, i int) error {
		return s.follow(ctx, cursors[i])
	})
	h := s.history()
	for _, c := range cursors {
		s.verify(c, h)
	}
}

// cancelledNext gives every Next a context that ends at a random moment.
func cancelledNext(ctx context.Context, s *subject) {
	start := s.head(ctx)
	cursors := make([]*cursor, 6)
	for i := range cursors {
		cursors[i] = s.watch(somePrefixes[i%3], start)
	}
	write := s.scribbler(awkward, s.size(200, 50))
	var cancelled atomic.Int64
	s.traffic(ctx, 3, write, len(cursors), func(ctx context.Context, i int) error {
		impatient := newImpatience(s.rand(i))
		return cursors[i].follow(ctx, s.ledger, func() error {
			gaveUp, err := impatient.try(ctx, cursors[i].step)
			if gaveUp {
				cancelled.Add(1)
			}
			return err
		})
	})
	s.t.Logf("%d steps were cancelled", cancelled.Load())
	h := s.history()
	for _, c := range cursors {
		s.verify(c, h)
	}
}

// slowWatcher opens watchers that take a first step and then none until all
// has been written, more than any buffer should hold.
func slowWatcher(ctx context.Context, s *subject) {
	const kilobytes = 16
	first := s.create(ctx, "key", "first")
	cursors := []*cursor{s.watch("", first-1), s.watch("key", first-1), s.watch("other", first)}
	for _, c := range cursors[:2] {
		if err := c.read(ctx, 1); err != nil {
			s.t.Fatal(err)
		}
	}
	at, value := first, make([]byte, kilobytes<<10)
	for n := range s.size(400, 100) {
		value[n%len(value)]++
		at = s.must(ctx, storage.Replace("key", value, at))
	}
	h := s.history()
	for _, c := range cursors {
		if err := c.catchUp(ctx, at); err != nil {
			s.t.Fatal(err)
		}
		s.verify(c, h)
	}
}

// listAndWatch has clients list while writers write, and keep what they listed
// up to date by a watch.
func listAndWatch(ctx context.Context, s *subject) {
	s.scribbleAlone(ctx, 30)
	clients := s.size(12, 4)
	replicas := make([]replica, clients)
	s.traffic(ctx, 4, s.scribbler(awkward, s.size(120, 30)), clients, func(ctx context.Context, i int) error {
		prefix := somePrefixes[i%3]
		replicas[i] = replica{}
		pace := s.ledger.pace()
		for range i * 5 { // everybody lists at another time
			<-pace
		}
		revision, err := s.list(ctx, storage.Range{Prefix: prefix, Limit: 1 + i}, replicas[i])
		if err != nil {
			return err
		}
		c := s.watch(prefix, revision)
		if err := s.follow(ctx, c); err != nil {
			return err
		}
		for _, event := range c.events {
			if err := replicas[i].apply(event); err != nil {
				return fmt.Errorf("listed at %d: %w", revision, err)
			}
		}
		return nil
	})
	h := s.history()
	for i, got := range replicas {
		want, _ := h.state(h.newest()).entries(storage.Range{Prefix: somePrefixes[i%3]})
		have, _ := got.entries(storage.Range{})
		s.same(fmt.Sprintf("client %d in the end", i), want, have)
	}
}

// list reads a range page by page, all at the revision of the first page.
func (s *subject) list(ctx context.Context, r storage.Range, into replica) (storage.Revision, error) {
	for {
		page, err := s.store.Scan(ctx, r)
		if err != nil {
			return 0, fmt.Errorf("scan %+v: %w", r, err)
		}
		if r.Revision != 0 && page.Revision != r.Revision {
			return 0, fmt.Errorf("scan %+v answered with the state at %d", r, page.Revision)
		}
		for _, entry := range page.Entries {
			into[entry.Key] = entry
		}
		if !page.More {
			return page.Revision, nil
		}
		if page.Next <= r.Start {
			return 0, fmt.Errorf("scan %+v goes on at %q", r, page.Next)
		}
		r.Revision, r.Start = page.Revision, page.Next
	}
}

// resumeUnderTraffic takes one step with each watcher and goes on with another
// one from there.
func resumeUnderTraffic(ctx context.Context, s *subject) {
	start := s.head(ctx)
	seen := make([]*cursor, 4)
	write := s.scribbler(awkward, s.size(150, 40))
	s.traffic(ctx, 4, write, len(seen), func(ctx context.Context, i int) error {
		whole := &cursor{prefix: somePrefixes[i], after: start, through: start}
		seen[i] = whole
		for range s.ledger.pace() {
			if err := s.resume(ctx, whole); err != nil {
				return err
			}
		}
		for whole.through < s.ledger.newest() {
			if err := s.resume(ctx, whole); err != nil {
				return err
			}
		}
		return nil
	})
	h := s.history()
	for _, c := range seen {
		s.verify(c, h)
	}
}

// resume takes the next step of a cursor with a watcher of its own.
func (s *subject) resume(ctx context.Context, whole *cursor) error {
	c := s.watch(whole.prefix, whole.through)
	defer c.watcher.Close()
	c.requestProgress()
	if err := c.step(ctx); err != nil {
		return err
	}
	whole.events = append(whole.events, c.events...)
	whole.through = max(whole.through, c.through)
	return nil
}

// progressUnderTraffic watches prefixes that are idle, or not, and asks for
// progress again and again.
func progressUnderTraffic(ctx context.Context, s *subject) {
	start := s.head(ctx)
	prefixes := []storage.Key{"no such", "", "a/", "\xff\xff\xff\xff"}
	cursors := make([]*cursor, len(prefixes))
	write := s.scribbler(awkward, s.size(150, 40))
	s.traffic(ctx, 4, write, len(cursors), func(ctx context.Context, i int) error {
		cursors[i] = s.watch(prefixes[i], start)
		for range s.ledger.pace() {
			if err := cursors[i].catchUp(ctx, s.ledger.newest()); err != nil {
				return err
			}
		}
		return cursors[i].catchUp(ctx, s.ledger.newest())
	})
	h := s.history()
	for _, c := range cursors {
		s.verify(c, h)
	}
}

// randomRange picks a range of awkward keys.
func randomRange(rng *rand.Rand, at storage.Revision) storage.Range {
	r := storage.Range{Prefix: somePrefixes[rng.IntN(len(somePrefixes))], Revision: at}
	if rng.IntN(2) == 0 {
		r.Start = awkward[rng.IntN(len(awkward))]
	}
	if rng.IntN(2) == 0 {
		r.Limit = 1 + rng.IntN(8)
	}
	return r
}
