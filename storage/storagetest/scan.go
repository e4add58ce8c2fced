package storagetest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/even-keel/evenkeel/storage"
)

var scanBehaviours = behaviours{
	"an empty store has no entries":                   scanEmpty,
	"a range selects by prefix, start and limit":      scanRanges,
	"pages of every size make up the whole":           scanPages,
	"every past revision can be read":                 scanPast,
	"a revision that is yet to come is in the future": scanFuture,
}

func scanEmpty(ctx context.Context, s *subject) {
	head := s.head(ctx)
	for _, r := range []storage.Range{{}, {Prefix: "a"}, {Start: "a"}, {Limit: 1}, {Revision: head}} {
		page := s.scan(ctx, r)
		if len(page.Entries) != 0 || page.More || page.Revision != head {
			s.t.Errorf("Scan %+v of an empty store at %d: %+v", r, head, page)
		}
	}
}

// scribbleAlone makes n random writes, one after the other.
func (s *subject) scribbleAlone(ctx context.Context, n int) {
	s.t.Helper()
	if err := s.scribble(ctx, -1, awkward, n); err != nil {
		s.t.Fatal(err)
	}
}

// scanRanges compares every combination of awkward prefix, start and limit
// with the naive model.
func scanRanges(ctx context.Context, s *subject) {
	for _, key := range awkward {
		s.create(ctx, key, "value of "+string(key))
	}
	bounds := slices.Concat(awkward, []storage.Key{"no such", "a\xff\xff\xff\xff", "\xff\xff\xff\xff", longKey(storage.MaxKeyBytes)})
	h := s.history()
	for i := 0; i < len(bounds); i += s.size(1, 4) {
		for _, start := range bounds {
			for _, limit := range []int{-1, 0, 1, 2, 7} {
				r := storage.Range{Prefix: bounds[i], Start: start, Limit: limit}
				s.checkPage(h, r, s.scan(ctx, r), h.newest())
			}
		}
	}
}

// checkScan compares one page with the model.
func (s *subject) checkScan(ctx context.Context, r storage.Range, at storage.Revision) {
	s.t.Helper()
	s.checkPage(s.history(), r, s.scan(ctx, r), at)
}

// checkPage compares a page of a range with the model, and says which state it
// must be of.
func (s *subject) checkPage(h history, r storage.Range, page storage.Page, at storage.Revision) {
	s.t.Helper()
	s.comparePage(h.state(at), r, page, at)
}

func (s *subject) comparePage(state replica, r storage.Range, page storage.Page, at storage.Revision) {
	s.t.Helper()
	want, more := state.entries(r)
	if d := diff(want, page.Entries); d != "" {
		s.t.Errorf("Scan %+v at %d (-want +got):\n%s", r, at, d)
	}
	if page.More != more || page.Revision != at {
		s.t.Errorf("Scan %+v at %d: got more %t at %d, want %t", r, at, page.More, page.Revision, more)
	}
	if page.More && len(page.Entries) > 0 && page.Next <= page.Entries[len(page.Entries)-1].Key {
		s.t.Errorf("Scan %+v at %d: goes on at %q, before the end of the page", r, at, page.Next)
	}
}

func scanPages(ctx context.Context, s *subject) {
	for _, key := range awkward {
		s.create(ctx, key, "value of "+string(key))
	}
	for _, prefix := range somePrefixes {
		want, _ := s.history().state(s.ledger.newest()).entries(storage.Range{Prefix: prefix})
		for limit := 1; limit <= len(want)+1; limit++ {
			s.same(fmt.Sprintf("%q in pages of %d", prefix, limit), want, s.pages(ctx, storage.Range{Prefix: prefix, Limit: limit}))
		}
	}
}

// pages reads a range to its end and returns the entries in the order they came.
func (s *subject) pages(ctx context.Context, r storage.Range) []storage.Entry {
	s.t.Helper()
	var entries []storage.Entry
	for {
		page := s.scan(ctx, r)
		entries = append(entries, page.Entries...)
		if r.Limit > 0 && len(page.Entries) > r.Limit || page.More && len(page.Entries) < r.Limit {
			s.t.Errorf("Scan %+v: a page of %d entries with more %t", r, len(page.Entries), page.More)
		}
		if !page.More {
			return entries
		}
		if page.Next <= r.Start {
			s.t.Fatalf("Scan %+v goes on at %q", r, page.Next)
		}
		r.Revision, r.Start = page.Revision, page.Next
	}
}

func scanPast(ctx context.Context, s *subject) {
	start := s.head(ctx)
	s.scribbleAlone(ctx, s.size(200, 60))
	h, rng := s.history(), s.rand(0)
	for at := start; at <= h.newest(); at++ {
		s.checkPage(h, storage.Range{Revision: at}, s.scan(ctx, storage.Range{Revision: at}), at)
		r := randomRange(rng, at)
		s.checkPage(h, r, s.scan(ctx, r), at)
	}
}

func scanFuture(ctx context.Context, s *subject) {
	s.create(ctx, "a", "1")
	head := s.head(ctx)
	for _, ahead := range []storage.Revision{1, 2, 1 << 40} {
		_, err := s.store.Scan(ctx, storage.Range{Revision: head + ahead})
		s.wantErr(fmt.Sprintf("Scan %d past the head", ahead), err, storage.ErrFuture)
	}
	s.checkScan(ctx, storage.Range{Revision: head}, head)
	next := s.create(ctx, "b", "1")
	s.checkScan(ctx, storage.Range{Revision: next}, next)
}

// sighting is a page that was read while others wrote, to be checked when the
// ledger is complete.
type sighting struct {
	asked storage.Range
	page  storage.Page
}

// sightings are collected by several readers.
type sightings struct {
	mu   sync.Mutex
	seen []sighting
}

func (s *sightings) add(r storage.Range, page storage.Page) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, sighting{r, page})
}

// at is the revision that the page must be of.
func (s sighting) at() storage.Revision {
	if s.asked.Revision != 0 {
		return s.asked.Revision
	}
	return s.page.Revision
}

// check compares all pages with the model.
func (all *sightings) check(s *subject) {
	s.t.Helper()
	slices.SortFunc(all.seen, func(a, b sighting) int { return cmp.Compare(a.at(), b.at()) })
	state, rest := replica{}, s.history()
	for _, one := range all.seen {
		for len(rest) > 0 && rest[0].Revision <= one.at() {
			state.set(rest[0])
			rest = rest[1:]
		}
		s.comparePage(state, one.asked, one.page, one.at())
	}
	s.t.Logf("%d pages were compared", len(all.seen))
}

// scanUnderTraffic reads random ranges of random past states, and of the newest.
func scanUnderTraffic(ctx context.Context, s *subject) {
	start := s.head(ctx)
	var seen sightings
	write := s.scribbler(awkward, s.size(150, 40))
	s.traffic(ctx, 4, write, 4, func(ctx context.Context, i int) error {
		rng := s.rand(i)
		for range s.ledger.pace() {
			span := uint64(s.ledger.newest() - start)
			for _, at := range []storage.Revision{0, start + storage.Revision(rng.Uint64N(span+1))} {
				r := randomRange(rng, at)
				page, err := s.store.Scan(ctx, r)
				if err != nil {
					return fmt.Errorf("scan %+v: %w", r, err)
				}
				seen.add(r, page)
			}
		}
		return nil
	})
	seen.check(s)
}

// pagesUnderTraffic reads ranges page by page: put together they must be one
// state.
func pagesUnderTraffic(ctx context.Context, s *subject) {
	var seen sightings
	s.scribbleAlone(ctx, 40)
	write := s.scribbler(awkward, s.size(120, 30))
	s.traffic(ctx, 4, write, 3, func(ctx context.Context, i int) error {
		rng := s.rand(i)
		for range s.ledger.pace() {
			r := storage.Range{Prefix: somePrefixes[rng.IntN(3)], Limit: 1 + rng.IntN(5)}
			whole := replica{}
			revision, err := s.list(ctx, r, whole)
			if err != nil {
				return err
			}
			entries, _ := whole.entries(storage.Range{})
			seen.add(storage.Range{Prefix: r.Prefix, Revision: revision}, storage.Page{Entries: entries, Revision: revision})
		}
		return nil
	})
	seen.check(s)
}

func freshScan(ctx context.Context, s *subject) {
	write := s.scribbler(awkward, s.size(120, 30))
	s.traffic(ctx, 4, write, 3, func(ctx context.Context, _ int) error {
		for range s.ledger.pace() {
			floor := s.ledger.newest()
			page, err := s.store.Scan(ctx, storage.Range{Limit: 1})
			if err != nil {
				return err
			}
			if page.Revision < floor {
				return fmt.Errorf("scanned revision %d after %d had been acknowledged", page.Revision, floor)
			}
		}
		return nil
	})
}
