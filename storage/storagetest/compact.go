package storagetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/even-keel/evenkeel/storage"
)

var compactBehaviours = behaviours{
	"states below are gone and the others remain":     compactScans,
	"watches from below are gone and the others work": compactWatches,
	"an open watcher that is past it goes on":         compactPastWatcher,
	"an idle watcher that made progress goes on":      compactIdleWatcher,
	"an open watcher behind it is told":               compactBehindWatcher,
	"never goes back and never runs ahead":            compactOrder,
	"what was deleted stays deleted":                  compactDeleted,
	"what stands is kept however old":                 compactKeeps,
	"round after round the store is right":            compactRounds,
	"amid traffic an answer is right or is refused":   compactUnderTraffic,
}

func compactScans(ctx context.Context, s *subject) {
	start := s.head(ctx)
	s.scribbleAlone(ctx, s.size(120, 50))
	h, rng := s.history(), s.rand(0)
	for _, at := range []storage.Revision{h[len(h)/3].Revision, h[len(h)/2].Revision, h.newest()} {
		s.compact(ctx, at)
		for past := start; past < at; past++ {
			_, err := s.store.Scan(ctx, storage.Range{Revision: past})
			s.wantErr(fmt.Sprintf("Scan at %d, compacted at %d", past, at), err, storage.ErrCompacted)
		}
		for kept := at; kept <= h.newest(); kept++ {
			s.checkScan(ctx, storage.Range{Revision: kept}, kept)
			s.checkScan(ctx, randomRange(rng, kept), kept)
		}
		s.checkScan(ctx, storage.Range{}, h.newest())
		for _, r := range []storage.Range{{Limit: 1, Revision: at - 1}, {Prefix: "no such", Revision: at - 1}} {
			_, err := s.store.Scan(ctx, r)
			s.wantErr(fmt.Sprintf("Scan %+v, compacted at %d", r, at), err, storage.ErrCompacted)
		}
	}
}

// compactWatches leaves out the watch after the revision just before the
// compacted one: its next event is the compacted revision itself, which an
// engine may have or not.
func compactWatches(ctx context.Context, s *subject) {
	start := s.head(ctx)
	s.scribbleAlone(ctx, s.size(100, 50))
	h := s.history()
	for _, at := range []storage.Revision{h[len(h)/2].Revision, h.newest()} {
		s.compact(ctx, at)
		s.wantCompacted(ctx, s.watchEach("", start, at-2))
		s.wantCompacted(ctx, s.watchEach("no such", start, at-2))
		s.wantCompacted(ctx, s.watchAll(somePrefixes, 0))
		s.checkWatches(ctx, h, s.watchEach("", at, h.newest()))
		s.checkWatches(ctx, h, s.watchEach("a", at, h.newest()))
	}
	c := s.watch("", h.newest())
	s.scribbleAlone(ctx, 20)
	if err := c.catchUp(ctx, s.ledger.newest()); err != nil {
		s.t.Fatal(err)
	}
	s.verify(c, s.history())
}

// wantCompacted fails the test unless the watches are told that their past is
// gone, and stay told.
func (s *subject) wantCompacted(ctx context.Context, watches []*cursor) {
	s.t.Helper()
	s.together(ctx, len(watches), func(ctx context.Context, i int) error {
		defer watches[i].watcher.Close()
		for range 2 {
			if err := watches[i].step(ctx); !errors.Is(err, storage.ErrCompacted) {
				return fmt.Errorf("%v got error %w, want %w", watches[i], err, storage.ErrCompacted)
			}
		}
		return nil
	})
}

func compactPastWatcher(ctx context.Context, s *subject) {
	start := s.head(ctx)
	c := s.watch("", start)
	for range 5 {
		s.scribbleAlone(ctx, 20)
		s.covered(ctx, c)
		s.compact(ctx, c.through)
		s.scribbleAlone(ctx, 5)
	}
	s.covered(ctx, c)
	s.verify(c, s.history())
}

func compactIdleWatcher(ctx context.Context, s *subject) {
	at := s.create(ctx, "idle", "1")
	c := s.watch("idle", at)
	for range 5 {
		s.scribbleAlone(ctx, 20)
		s.covered(ctx, c)
		s.compact(ctx, s.ledger.newest())
	}
	s.replace(ctx, "idle", "2", at)
	if err := c.read(ctx, 1); err != nil {
		s.t.Fatal(err)
	}
	s.verify(c, s.history())
}

// compactBehindWatcher compacts past watchers that have events to come. One
// that has yet to ask the store for anything must be told. One in mid-stream
// may have events at hand that the store has forgotten; it gets those in full
// or is told.
func compactBehindWatcher(ctx context.Context, s *subject) {
	start := s.head(ctx)
	s.scribbleAlone(ctx, 10)
	opened, unopened := s.watch("", start), s.watch("", start)
	if err := opened.read(ctx, 1); err != nil {
		s.t.Fatal(err)
	}
	s.scribbleAlone(ctx, s.size(200, 80))
	s.compact(ctx, s.ledger.newest())

	_, err := unopened.next(ctx)
	s.wantErr("Next of a watcher behind, not yet opened", err, storage.ErrCompacted)
	if err := opened.catchUp(ctx, s.ledger.newest()); err != nil && !errors.Is(err, storage.ErrCompacted) {
		s.t.Fatal(err)
	}
	s.verify(opened, s.history())
}

func compactOrder(ctx context.Context, s *subject) {
	s.scribbleAlone(ctx, 20)
	head := s.head(ctx)
	for _, ahead := range []storage.Revision{1, 2, 1 << 40} {
		s.wantErr(fmt.Sprintf("Compact %d past the head", ahead), s.store.Compact(ctx, head+ahead), storage.ErrFuture)
	}
	at := head - 5
	s.compact(ctx, at)
	for back := range storage.Revision(3) {
		s.wantErr(fmt.Sprintf("Compact again %d below", back), s.store.Compact(ctx, at-back), storage.ErrCompacted)
	}
	for kept := at; kept <= head; kept++ {
		s.checkScan(ctx, storage.Range{Revision: kept}, kept)
	}
	s.compact(ctx, at+1)
	s.compact(ctx, head)
	s.wantErr("Compact again at the head", s.store.Compact(ctx, head), storage.ErrCompacted)
	s.checkScan(ctx, storage.Range{}, s.ledger.newest())
}

func compactDeleted(ctx context.Context, s *subject) {
	for _, key := range awkward {
		at := s.create(ctx, key, "1")
		at = s.replace(ctx, key, "2", at)
		s.delete(ctx, key, at)
	}
	gone := s.head(ctx)
	s.compact(ctx, gone)
	s.same("entries", []storage.Entry{}, s.scan(ctx, storage.Range{}).Entries)
	for _, key := range awkward {
		_, err := s.store.Get(ctx, key)
		s.wantErr(fmt.Sprintf("Get %q", key), err, storage.ErrNotFound)
		result, err := s.commit(ctx, storage.Replace(key, nil, gone))
		s.wantErr(fmt.Sprintf("replace of %q", key), err, storage.ErrConflict)
		s.same("what stands there", storage.Entry{}, result.Previous)
		s.create(ctx, key, "3")
	}
	s.checkWatch(ctx, s.history(), "", gone)
}

// compactKeeps compacts far past the last write of some keys: they stand, and
// their next events tell what they replaced.
func compactKeeps(ctx context.Context, s *subject) {
	old := map[storage.Key]storage.Revision{}
	for _, key := range awkward {
		old[key] = s.create(ctx, key, "old "+string(key))
	}
	at := s.create(ctx, "busy", "0")
	for range 30 {
		at = s.replace(ctx, "busy", "more", at)
	}
	s.compact(ctx, at)
	for _, key := range awkward {
		s.same("what stands", storage.Entry{Key: key, Value: []byte("old " + string(key)), Revision: old[key]}, s.get(ctx, key))
		s.replace(ctx, key, "new", old[key])
	}
	s.checkScan(ctx, storage.Range{Revision: at}, at)
	s.checkWatch(ctx, s.history(), "", at)
}

// compactRounds writes and compacts in turn and compares all that is left.
func compactRounds(ctx context.Context, s *subject) {
	rng, at := s.rand(0), s.head(ctx)
	for range s.size(12, 5) {
		s.scribbleAlone(ctx, 25)
		h := s.history()
		at += 1 + storage.Revision(rng.Uint64N(uint64(h.newest()-at)))
		s.compact(ctx, at)
		for kept := at; kept <= h.newest(); kept++ {
			s.checkScan(ctx, storage.Range{Revision: kept}, kept)
		}
		s.checkWatch(ctx, h, "", at)
	}
}

// horizon is how far compaction has got: asked for, and done.
type horizon struct {
	mu          sync.Mutex
	asked, done storage.Revision
}

func (h *horizon) ask(at storage.Revision) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = max(h.asked, at)
}

func (h *horizon) finish(at storage.Revision) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.done = max(h.done, at)
}

func (h *horizon) get() (asked, done storage.Revision) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asked, h.done
}

// refusal returns err unless that is ErrCompacted and true of a revision.
func (h *horizon) refusal(err error, at storage.Revision) error {
	if asked, _ := h.get(); err == nil || errors.Is(err, storage.ErrCompacted) && at < asked {
		return nil
	}
	return err
}

// compactUnderTraffic writes, compacts, scans and watches at once. Whoever is
// told that the past is gone starts again from a list.
func compactUnderTraffic(ctx context.Context, s *subject) {
	start := s.head(ctx)
	far := horizon{done: start}
	var seen sightings
	var watched cursors
	readers := []func(ctx context.Context, rng *rand.Rand) error{
		func(ctx context.Context, rng *rand.Rand) error { return s.compactor(ctx, rng, &far) },
		func(ctx context.Context, rng *rand.Rand) error { return s.pastScanner(ctx, rng, start, &far, &seen) },
		func(ctx context.Context, rng *rand.Rand) error { return s.pastScanner(ctx, rng, start, &far, &seen) },
		func(ctx context.Context, rng *rand.Rand) error { return s.pastWatcher(ctx, rng, start, &far, &watched) },
		func(ctx context.Context, rng *rand.Rand) error { return s.pastWatcher(ctx, rng, start, &far, &watched) },
		func(ctx context.Context, _ *rand.Rand) error { return s.lister(ctx, "", &far, &watched) },
		func(ctx context.Context, _ *rand.Rand) error { return s.lister(ctx, "a", &far, &watched) },
		func(ctx context.Context, _ *rand.Rand) error { return s.lister(ctx, "no such", &far, &watched) },
	}
	s.padding = 8 << 10 // so that the past is more than a store keeps at hand
	s.traffic(ctx, 4, s.scribbler(awkward, s.size(200, 50)), len(readers), func(ctx context.Context, i int) error {
		return readers[i](ctx, s.rand(i))
	})
	seen.check(s)
	h := s.history()
	for _, c := range watched.all {
		s.verify(c, h)
	}
	_, done := far.get()
	s.t.Logf("compacted up to %d of %d, %d watches", done, h.newest(), len(watched.all))
	s.checkScan(ctx, storage.Range{Revision: done}, done)
}

// compactor compacts at random places as the store grows.
func (s *subject) compactor(ctx context.Context, rng *rand.Rand, far *horizon) error {
	for range s.ledger.pace() {
		newest := s.ledger.newest()
		_, done := far.get()
		if newest < done+4 {
			continue
		}
		at := done + 1 + storage.Revision(rng.Uint64N(uint64(newest-done)))
		far.ask(at)
		if err := s.store.Compact(ctx, at); err != nil {
			return fmt.Errorf("compact at %d: %w", at, err)
		}
		far.finish(at)
	}
	return nil
}

// aroundHorizon picks a revision that is compacted, or will soon be, or not.
func (s *subject) aroundHorizon(rng *rand.Rand, start storage.Revision, far *horizon) (at, done storage.Revision) {
	_, done = far.get()
	from := max(start, done-min(done, 10))
	return from + storage.Revision(rng.Uint64N(uint64(s.ledger.newest()-from)+1)), done
}

// pastScanner reads states around the horizon.
func (s *subject) pastScanner(ctx context.Context, rng *rand.Rand, start storage.Revision, far *horizon, seen *sightings) error {
	for range s.ledger.pace() {
		at, done := s.aroundHorizon(rng, start, far)
		r := randomRange(rng, at)
		page, err := s.store.Scan(ctx, r)
		if err == nil && r.Revision < done {
			return fmt.Errorf("scan %+v answered although %d had been compacted before", r, done)
		}
		if err == nil {
			seen.add(r, page)
		} else if err := far.refusal(err, r.Revision); err != nil {
			return fmt.Errorf("scan %+v: %w", r, err)
		}
	}
	return nil
}

// pastWatcher opens watches after revisions around the horizon and takes a few
// steps with each.
func (s *subject) pastWatcher(ctx context.Context, rng *rand.Rand, start storage.Revision, far *horizon, watched *cursors) error {
	for range s.ledger.pace() {
		after, done := s.aroundHorizon(rng, start, far)
		c := s.watch(somePrefixes[rng.IntN(3)], after)
		watched.add(c)
		err := c.catchUp(ctx, s.ledger.newest())
		c.watcher.Close()
		if err == nil && after+1 < done {
			return fmt.Errorf("%v was answered although %d had been compacted before", c, done)
		}
		if err := far.refusal(err, max(c.after, c.through)); err != nil {
			return err
		}
	}
	return nil
}

// cursors are collected by several readers.
type cursors struct {
	mu  sync.Mutex
	all []*cursor
}

func (cs *cursors) add(c *cursor) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.all = append(cs.all, c)
}

// lister watches from a list until writing ends, and lists again when it is
// told that it has fallen behind.
func (s *subject) lister(ctx context.Context, prefix storage.Key, far *horizon, watched *cursors) error {
	for {
		page, err := s.store.Scan(ctx, storage.Range{Prefix: prefix, Limit: 1})
		if err != nil {
			return err
		}
		c := s.watch(prefix, page.Revision)
		watched.add(c)
		err = s.follow(ctx, c)
		if err == nil {
			return nil
		}
		if err := far.refusal(err, max(c.after, c.through)); err != nil {
			return err
		}
	}
}
