package storagetest

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/even-keel/evenkeel/storage"
)

var commitBehaviours = behaviours{
	"the first write comes after the empty store":       firstWrite,
	"a write wants the key where it expects it":         conditions,
	"revisions grow and none is used twice":             revisionsGrow,
	"a refused write leaves no trace":                   refusedWrites,
	"a contended counter loses no increment":            contendedCounter,
	"of those who race to create a key one wins":        raceToCreate,
	"of those who race to replace a key one wins":       raceToReplace,
	"of those who race to delete a key one wins":        raceToDelete,
	"a deleted key can be created again and again":      createAgain,
	"a deletion may have a note":                        deletionNote,
	"writers of one key replace what the last one left": oneKeyManyWriters,
}

func firstWrite(ctx context.Context, s *subject) {
	empty := s.head(ctx)
	if empty < 1 {
		s.t.Errorf("an empty store stands at %d, want 1 or more", empty)
	}
	first := s.create(ctx, "a", "1")
	if first <= empty {
		s.t.Errorf("the first write has revision %d, the empty store %d", first, empty)
	}
	if head := s.head(ctx); head != first {
		s.t.Errorf("head %d after the first write made %d", head, first)
	}
}

// standing is where a key stands before the write that is tested.
type standing struct {
	now  storage.Entry
	past storage.Revision // where it stood earlier; zero if it never stood elsewhere
}

// standings bring a key to where it should stand.
func standings(ctx context.Context, s *subject) map[string]func(key storage.Key) standing {
	entry := func(key storage.Key, value string, at storage.Revision) storage.Entry {
		return storage.Entry{Key: key, Value: []byte(value), Revision: at}
	}
	return map[string]func(key storage.Key) standing{
		"absent": func(storage.Key) standing { return standing{} },
		"created": func(key storage.Key) standing {
			return standing{now: entry(key, "one", s.create(ctx, key, "one"))}
		},
		"replaced": func(key storage.Key) standing {
			one := s.create(ctx, key, "one")
			return standing{now: entry(key, "two", s.replace(ctx, key, "two", one)), past: one}
		},
		"deleted": func(key storage.Key) standing {
			one := s.create(ctx, key, "one")
			s.delete(ctx, key, one)
			return standing{past: one}
		},
		"created again": func(key storage.Key) standing {
			one := s.create(ctx, key, "one")
			s.delete(ctx, key, one)
			return standing{now: entry(key, "two", s.create(ctx, key, "two")), past: one}
		},
	}
}

// conditions tries every write with every expectation on every standing of a
// key: it must happen if and only if the expectation holds.
func conditions(ctx context.Context, s *subject) {
	other := s.create(ctx, "other", "key")
	expectations := map[string]func(standing) storage.Revision{
		"nothing":                    func(standing) storage.Revision { return 0 },
		"where it stands":            func(is standing) storage.Revision { return is.now.Revision },
		"where it stood":             func(is standing) storage.Revision { return is.past },
		"where another key stands":   func(standing) storage.Revision { return other },
		"a revision before":          func(is standing) storage.Revision { return max(is.now.Revision, 1) - 1 },
		"a revision after":           func(is standing) storage.Revision { return is.now.Revision + 1 },
		"a revision yet to be given": func(standing) storage.Revision { return s.head(ctx) + 1<<20 },
	}
	for where, bring := range standings(ctx, s) {
		for what, expect := range expectations {
			for verb, remove := range map[string]bool{"write": false, "delete": true} {
				key := storage.Key(fmt.Sprintf("%s when %s expecting %s", verb, where, what))
				is := bring(key)
				w := storage.Write{Key: key, Delete: remove, At: expect(is)}
				if !remove {
					w.Value = []byte("new")
				}
				s.tryWrite(ctx, w, is)
			}
		}
	}
}

// tryWrite commits a write to a key and checks the answer and what stands after.
func (s *subject) tryWrite(ctx context.Context, w storage.Write, is standing) {
	result, err := s.commit(ctx, w)
	switch {
	case w.Delete && w.At == 0:
		s.wantErr(string(w.Key), err, storage.ErrInvalid)
	case w.At != is.now.Revision:
		s.wantErr(string(w.Key), err, storage.ErrConflict)
		s.same(string(w.Key)+": previous", is.now, result.Previous)
	case err != nil:
		s.t.Errorf("%q: %v", w.Key, err)
	default:
		s.same(string(w.Key)+": previous", is.now, result.Previous)
		is.now = storage.Entry{}
		if !w.Delete {
			is.now = storage.Entry{Key: w.Key, Value: w.Value, Revision: result.Revision}
		}
	}
	entry, err := s.store.Get(ctx, w.Key)
	if is.now.Exists() && err != nil || !is.now.Exists() && !errors.Is(err, storage.ErrNotFound) {
		s.t.Errorf("%q: got error %v from Get", w.Key, err)
	}
	s.same(string(w.Key)+": what stands after", is.now, entry)
}

// revisionsGrow has writers of their own keys note the newest revision that any
// of them was given before each write: the write's own must be greater.
func revisionsGrow(ctx context.Context, s *subject) {
	writers, writes := 8, s.size(100, 25)
	s.together(ctx, writers, func(ctx context.Context, i int) error {
		key := storage.Key("writer " + strconv.Itoa(i))
		var at storage.Revision
		for n := range writes {
			before := s.ledger.newest()
			result, err := s.commit(ctx, storage.Replace(key, []byte(strconv.Itoa(n)), at))
			if err != nil {
				return err
			}
			if result.Revision <= before {
				return fmt.Errorf("%q was given revision %d after %d had been returned", key, result.Revision, before)
			}
			at = result.Revision
		}
		return nil
	})
	h := s.history() // checks that no revision was used twice
	if len(h) != writers*writes {
		s.t.Errorf("%d writes acknowledged, want %d", len(h), writers*writes)
	}
	if head := s.head(ctx); head != h.newest() {
		s.t.Errorf("head %d, the newest write made %d", head, h.newest())
	}
}

func refusedWrites(ctx context.Context, s *subject) {
	start := s.head(ctx)
	a := s.create(ctx, "a", "1")
	refused := map[string]struct {
		write storage.Write
		want  error
	}{
		"create of what exists":       {storage.Create("a", []byte("x")), storage.ErrConflict},
		"replace of what is absent":   {storage.Replace("b", []byte("x"), a), storage.ErrConflict},
		"replace at another place":    {storage.Replace("a", []byte("x"), a+1), storage.ErrConflict},
		"delete of what is absent":    {storage.Delete("b", a), storage.ErrConflict},
		"delete at another place":     {storage.Delete("a", a+1), storage.ErrConflict},
		"delete from nowhere":         {storage.Delete("a", 0), storage.ErrInvalid},
		"key longer than allowed":     {storage.Create(longKey(storage.MaxKeyBytes+1), nil), storage.ErrTooLarge},
		"value longer than allowed":   {storage.Create("b", make([]byte, storage.MaxValueBytes+1)), storage.ErrTooLarge},
		"replace by a value too long": {storage.Replace("a", make([]byte, storage.MaxValueBytes+1), a), storage.ErrTooLarge},
	}
	for name, refusal := range refused {
		_, err := s.commit(ctx, refusal.write)
		s.wantErr(name, err, refusal.want)
	}
	s.same("what stands after refusals", []storage.Entry{{Key: "a", Value: []byte("1"), Revision: a}}, s.scan(ctx, storage.Range{}).Entries)

	last := s.replace(ctx, "a", "2", a)
	w := s.watch("", start)
	if err := w.catchUp(ctx, last); err != nil {
		s.t.Fatal(err)
	}
	s.verify(w, s.history())
}

// contendedCounter has everybody increment one number. Half of the attempts
// start from what the conflict says stands there, half from a read.
func contendedCounter(ctx context.Context, s *subject) {
	writers, increments := 8, s.size(50, 10)
	s.create(ctx, "counter", "0")
	s.together(ctx, writers, func(ctx context.Context, i int) error {
		for n := range increments {
			if err := s.increment(ctx, "counter", (i+n)%2 == 0); err != nil {
				return err
			}
		}
		return nil
	})
	s.same("the counter", strconv.Itoa(writers*increments), string(s.get(ctx, "counter").Value))
	if h := s.history(); len(h) != 1+writers*increments {
		s.t.Errorf("%d writes acknowledged, want %d", len(h), 1+writers*increments)
	}
}

func (s *subject) increment(ctx context.Context, key storage.Key, trustConflict bool) error {
	entry, err := s.store.Get(ctx, key)
	for err == nil {
		n, err := strconv.Atoi(string(entry.Value))
		if err != nil {
			return fmt.Errorf("counter at %d: %w", entry.Revision, err)
		}
		result, err := s.commit(ctx, storage.Replace(key, []byte(strconv.Itoa(n+1)), entry.Revision))
		if !errors.Is(err, storage.ErrConflict) {
			return err
		}
		if entry = result.Previous; !trustConflict {
			if entry, err = s.store.Get(ctx, key); err != nil {
				return err
			}
		}
	}
	return err
}

func raceToCreate(ctx context.Context, s *subject) {
	s.race(ctx, func(round int) (storage.Key, storage.Revision) {
		return storage.Key("prize " + strconv.Itoa(round)), 0
	})
}

func raceToReplace(ctx context.Context, s *subject) {
	s.create(ctx, "prize", "old")
	s.race(ctx, func(int) (storage.Key, storage.Revision) { return "prize", s.ledger.newest() })
}

func raceToDelete(ctx context.Context, s *subject) {
	for round := range s.size(20, 5) {
		key := storage.Key("prize " + strconv.Itoa(round))
		at := s.create(ctx, key, "old")
		won := make([]bool, 8)
		s.together(ctx, len(won), func(ctx context.Context, i int) error {
			result, err := s.commit(ctx, storage.Delete(key, at))
			if won[i] = err == nil; won[i] {
				return nil
			}
			if !errors.Is(err, storage.ErrConflict) || result.Previous.Exists() {
				return fmt.Errorf("the loser found %+v: %w", result.Previous, err)
			}
			return nil
		})
		s.oneWinner(key, won)
	}
	s.history()
}

// race has racers write one key at one revision, round after round.
func (s *subject) race(ctx context.Context, prize func(round int) (storage.Key, storage.Revision)) {
	for round := range s.size(20, 5) {
		key, at := prize(round)
		won := make([]bool, 8)
		results := make([]storage.Result, len(won))
		s.together(ctx, len(won), func(ctx context.Context, i int) error {
			var err error
			results[i], err = s.commit(ctx, storage.Replace(key, []byte("racer "+strconv.Itoa(i)), at))
			if won[i] = err == nil; !won[i] && !errors.Is(err, storage.ErrConflict) {
				return err
			}
			return nil
		})
		s.oneWinner(key, won)
		for i, result := range results {
			if !won[i] {
				s.same("what the loser found", s.get(ctx, key), result.Previous)
			}
		}
	}
	s.history()
}

func (s *subject) oneWinner(key storage.Key, won []bool) {
	s.t.Helper()
	winners := 0
	for _, w := range won {
		if w {
			winners++
		}
	}
	if winners != 1 {
		s.t.Errorf("%d of %d won %q, want one", winners, len(won), key)
	}
}

// deletionNote deletes with a note, which the engine may keep: watchers see it or
// nothing, and nobody else does.
func deletionNote(ctx context.Context, s *subject) {
	start := s.head(ctx)
	at := s.create(ctx, "a", "1")
	result, err := s.store.Commit(ctx, storage.Write{Key: "a", Delete: true, At: at, Value: []byte("note")})
	if err != nil {
		s.t.Fatal(err)
	}
	_, err = s.store.Get(ctx, "a")
	s.wantErr("Get after delete", err, storage.ErrNotFound)
	s.same("what stands after", []storage.Entry(nil), s.scan(ctx, storage.Range{}).Entries)
	again := s.create(ctx, "a", "2")
	w := s.store.Watch("", start)
	defer w.Close()
	for seen := start; seen < again; {
		batch, err := w.Next(ctx)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, e := range batch.Events {
			if e.Deleted != (e.Revision == result.Revision) {
				s.t.Errorf("event %d: deleted is %v", e.Revision, e.Deleted)
			}
			if e.Deleted && e.Value != nil && string(e.Value) != "note" {
				s.t.Errorf("the deletion's note is %q", e.Value)
			}
		}
		seen = batch.Through
	}
}

func createAgain(ctx context.Context, s *subject) {
	var last storage.Revision
	for n := range 5 {
		value := strconv.Itoa(n)
		created := s.create(ctx, "phoenix", value)
		if created <= last {
			s.t.Errorf("created at %d, after it had been deleted at %d", created, last)
		}
		s.same("after create", storage.Entry{Key: "phoenix", Value: []byte(value), Revision: created}, s.get(ctx, "phoenix"))
		last = s.delete(ctx, "phoenix", created)
		_, err := s.store.Get(ctx, "phoenix")
		s.wantErr("Get after delete", err, storage.ErrNotFound)
	}
	s.history()
}

// oneKeyManyWriters mixes creates, replaces and deletes of one key by many
// writers; the history must be one chain.
func oneKeyManyWriters(ctx context.Context, s *subject) {
	s.rand(0)
	s.together(ctx, 6, func(ctx context.Context, i int) error {
		return s.scribble(ctx, i, []storage.Key{"key"}, s.size(60, 15))
	})
	h := s.history()
	final, _ := h.state(h.newest()).entries(storage.Range{})
	s.same("what stands in the end", final, s.scan(ctx, storage.Range{}).Entries)
}
