package storagetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/even-keel/evenkeel/storage"
)

// A long history is more than a store keeps at hand, or works on in one go.
var longBehaviours = behaviours{
	"is replayed like a short one":           longReplay,
	"is read like a short one":               longScan,
	"is caught up with while others write":   longCatchUp,
	"is caught up with by impatient readers": longImpatience,
	"can be compacted in one go":             longCompaction,
	"can be compacted while it is read":      longMarch,
}

// lengthen writes a long history and returns where it starts.
func (s *subject) lengthen(ctx context.Context) storage.Revision {
	s.t.Helper()
	start := s.head(ctx)
	s.padding = 1 << 10
	s.rand(0)
	s.together(ctx, 8, func(ctx context.Context, i int) error {
		return s.scribble(ctx, i, awkward, s.size(500, 350))
	})
	return start
}

func longReplay(ctx context.Context, s *subject) {
	start := s.lengthen(ctx)
	h, rng := s.history(), s.rand(0)
	watches := s.watchAll(somePrefixes, start)
	for range 20 {
		after := h[rng.IntN(len(h))].Revision
		watches = append(watches, s.watch(somePrefixes[rng.IntN(len(somePrefixes))], after))
	}
	s.checkWatches(ctx, h, watches)
}

func longScan(ctx context.Context, s *subject) {
	s.lengthen(ctx)
	h, rng := s.history(), s.rand(0)
	for range s.size(100, 30) {
		at := h[rng.IntN(len(h))].Revision
		s.checkScan(ctx, storage.Range{Revision: at}, at)
		s.checkScan(ctx, randomRange(rng, at), at)
	}
}

// longCatchUp starts watchers at the beginning, and all over the past, that
// have to catch up with writers who go on.
func longCatchUp(ctx context.Context, s *subject) {
	start := s.lengthen(ctx)
	h, rng := s.history(), s.rand(0)
	watches := s.watchAll(somePrefixes, start)
	for range 10 {
		watches = append(watches, s.watch(somePrefixes[rng.IntN(3)], h[rng.IntN(len(h))].Revision))
	}
	s.traffic(ctx, 4, s.scribbler(awkward, s.size(150, 40)), len(watches), func(ctx context.Context, i int) error {
		return s.follow(ctx, watches[i])
	})
	h = s.history()
	for _, c := range watches {
		s.verify(c, h)
	}
}

// longImpatience reads a long past with contexts that end at random moments.
func longImpatience(ctx context.Context, s *subject) {
	start := s.lengthen(ctx)
	h := s.history()
	watches := s.watchAll(somePrefixes[:4], start)
	s.together(ctx, len(watches), func(ctx context.Context, i int) error {
		impatient := newImpatience(s.rand(i))
		watches[i].requestProgress()
		for watches[i].through < h.newest() {
			if _, err := impatient.try(ctx, watches[i].step); err != nil {
				return err
			}
		}
		return nil
	})
	for _, c := range watches {
		s.verify(c, h)
	}
}

// longCompaction compacts nearly everything at once, under the eyes of readers
// of all that is about to go.
func longCompaction(ctx context.Context, s *subject) {
	start := s.lengthen(ctx)
	h := s.history()
	at := h[len(h)-50].Revision
	s.compactWatched(ctx, h, start, at)

	for _, gone := range []storage.Revision{start, at - 1} {
		_, err := s.store.Scan(ctx, storage.Range{Revision: gone})
		s.wantErr(fmt.Sprintf("Scan at %d, compacted at %d", gone, at), err, storage.ErrCompacted)
	}
	for kept := at; kept <= h.newest(); kept++ {
		s.checkScan(ctx, storage.Range{Revision: kept}, kept)
	}
	s.wantCompacted(ctx, s.watchAll(somePrefixes, start))
	s.checkWatches(ctx, h, s.watchEach("", at, h.newest()))
	for key, want := range h.state(h.newest()) {
		s.same("what stands", want, s.get(ctx, key))
	}
}

func (s *subject) compactWatched(ctx context.Context, h history, start, at storage.Revision) {
	s.t.Helper()
	var seen sightings
	const readsBefore = 10 // of each reader, before it is compacted
	over, reading := make(chan struct{}), make(chan struct{}, 2)
	crew, ctx := s.crew(ctx)
	for i := range 2 {
		crew.start(func() error {
			rng := s.rand(1 + i)
			for n := 0; n < 1000 && !ended(over); n++ {
				r := randomRange(rng, start+storage.Revision(rng.Uint64N(uint64(at-start))))
				page, err := s.store.Scan(ctx, r)
				if err == nil {
					seen.add(r, page)
				} else if !errors.Is(err, storage.ErrCompacted) {
					return fmt.Errorf("scan %+v: %w", r, err)
				}
				if n == readsBefore {
					reading <- struct{}{}
				}
			}
			return nil
		})
	}
	crew.start(func() error {
		defer close(over)
		for range 2 {
			select {
			case <-reading:
			case <-ctx.Done():
			}
		}
		return s.store.Compact(ctx, at)
	})
	crew.wait()
	seen.check(s)
}

// ended reports whether a channel has been closed.
func ended(over <-chan struct{}) bool {
	select {
	case <-over:
		return true
	default:
		return false
	}
}

// longMarch compacts bit by bit, while scans and watches read right where the
// next bit goes.
func longMarch(ctx context.Context, s *subject) {
	start := s.head(ctx)
	s.padding = 8 << 10
	write := s.scribbler(awkward, s.size(150, 75))
	s.together(ctx, 4, write)
	h, rng := s.history(), s.rand(0)
	far, over := horizon{asked: start, done: start}, make(chan struct{})
	crew, ctx := s.crew(ctx)
	crew.start(func() error {
		defer close(over)
		for at := start; at < h.newest(); {
			at = min(h.newest(), at+1+storage.Revision(rng.Uint64N(4)))
			far.ask(at)
			if err := s.store.Compact(ctx, at); err != nil {
				return fmt.Errorf("compact at %d: %w", at, err)
			}
			far.finish(at)
		}
		return nil
	})
	for i := range 2 {
		crew.start(func() error { return s.onTheEdge(ctx, h, s.rand(1+i), &far, over, s.edgeScan) })
		crew.start(func() error { return s.onTheEdge(ctx, h, s.rand(3+i), &far, over, s.edgeWatch) })
	}
	crew.wait()
}

// onTheEdge reads at revisions that are just being compacted, until all are.
func (s *subject) onTheEdge(
	ctx context.Context, h history, rng *rand.Rand, far *horizon, over <-chan struct{},
	read func(ctx context.Context, h history, prefix storage.Key, at storage.Revision) error,
) error {
	for !ended(over) {
		_, done := far.get()
		at := min(h.newest(), done+storage.Revision(rng.Uint64N(3)))
		err := read(ctx, h, somePrefixes[rng.IntN(4)], at)
		if err := far.refusal(err, at); err != nil {
			return err
		}
	}
	return nil
}

func (s *subject) edgeScan(ctx context.Context, h history, prefix storage.Key, at storage.Revision) error {
	r := storage.Range{Prefix: prefix, Revision: at}
	page, err := s.store.Scan(ctx, r)
	if err != nil {
		return fmt.Errorf("scan %+v: %w", r, err)
	}
	s.checkPage(h, r, page, at)
	return nil
}

func (s *subject) edgeWatch(ctx context.Context, h history, prefix storage.Key, after storage.Revision) error {
	c := s.watch(prefix, after)
	defer c.watcher.Close()
	c.requestProgress()
	err := c.step(ctx)
	s.verify(c, h)
	return err
}
