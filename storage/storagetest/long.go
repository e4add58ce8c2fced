package storagetest

import (
	"context"
	"fmt"

	"github.com/even-keel/evenkeel/storage"
)

// A long history is more than a store keeps at hand, or works on in one go.
var longBehaviours = behaviours{
	"is replayed like a short one":           longReplay,
	"is read like a short one":               longScan,
	"is caught up with while others write":   longCatchUp,
	"is caught up with by impatient readers": longImpatience,
	"can be compacted in one go":             longCompaction,
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

func longCompaction(ctx context.Context, s *subject) {
	start := s.lengthen(ctx)
	h := s.history()
	at := h[len(h)-50].Revision
	s.compact(ctx, at)
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
