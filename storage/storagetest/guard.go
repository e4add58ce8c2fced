package storagetest

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/even-keel/evenkeel/storage"
)

var guardBehaviours = behaviours{
	"a guarded write wants both keys where it expects them": guardConditions,
	"a key can guard itself":                                guardItself,
	"no guarded write slips past a guard that has moved":    guardMoves,
}

func guardConditions(ctx context.Context, s *subject) {
	for where, bring := range standings(ctx, s) {
		for verb, remove := range map[string]bool{"write": false, "delete": true} {
			for what, held := range map[string]bool{"holds": true, "does not hold": false} {
				key := storage.Key(fmt.Sprintf("%s when a guard that is %s %s", verb, where, what))
				guard := bring("guard of " + key)
				g := storage.Guard{Key: "guard of " + key, At: guard.now.Revision}
				if !held {
					g.At = guard.past + 1<<20
				}
				at := s.create(ctx, key, "old")
				w := storage.Write{Key: key, Delete: remove, At: at, Guard: &g}
				s.tryGuarded(ctx, w, held)
				w.At += 1 << 20
				_, err := s.commit(ctx, w)
				s.wantErr(string(key)+", which is elsewhere", err, storage.ErrConflict)
			}
		}
	}
	_, err := s.commit(ctx, storage.Write{Key: "a", Guard: &storage.Guard{Key: longKey(storage.MaxKeyBytes + 1)}})
	s.wantErr("a guard longer than allowed", err, storage.ErrTooLarge)
}

// tryGuarded commits a write that must happen if and only if its guard holds.
func (s *subject) tryGuarded(ctx context.Context, w storage.Write, held bool) {
	before := s.get(ctx, w.Key)
	result, err := s.commit(ctx, w)
	if held {
		if err != nil {
			s.t.Errorf("%q: %v", w.Key, err)
		}
		return
	}
	s.wantErr(string(w.Key), err, storage.ErrGuard)
	if errors.Is(err, storage.ErrConflict) {
		s.t.Errorf("%q: %v is a conflict too", w.Key, err)
	}
	s.same(string(w.Key)+": the result", storage.Result{}, result)
	s.same(string(w.Key)+": what stands after", before, s.get(ctx, w.Key))
}

func guardItself(ctx context.Context, s *subject) {
	one := s.create(ctx, "a", "1")
	two := s.must(ctx, storage.Write{Key: "a", Value: []byte("2"), At: one, Guard: &storage.Guard{Key: "a", At: one}})
	_, err := s.commit(ctx, storage.Write{Key: "a", At: two, Guard: &storage.Guard{Key: "a", At: one}})
	s.wantErr("a guard where the key stood", err, storage.ErrGuard)
	s.must(ctx, storage.Write{Key: "b", Guard: &storage.Guard{Key: "b"}})
}

// guardMoves has writers write while somebody moves their guard. Each writes down
// where it saw the guard: at the revision of the write it must still have stood
// there.
func guardMoves(ctx context.Context, s *subject) {
	writers, writes := 6, s.size(100, 25)
	s.create(ctx, "guard", "")
	s.together(ctx, writers+1, func(ctx context.Context, i int) error {
		if i == writers {
			return s.moveGuard(ctx, writes)
		}
		return s.writeGuarded(ctx, storage.Key("writer "+strconv.Itoa(i)), writes)
	})
	var stands storage.Revision
	held := 0
	for _, e := range s.history() {
		if e.Key == "guard" {
			stands = e.Revision
			continue
		}
		held++
		if saw := string(e.Value); saw != fmt.Sprint(stands) {
			s.t.Errorf("%q was written at %d with a guard at %s, which stood at %d", e.Key, e.Revision, saw, stands)
		}
	}
	if held == 0 {
		s.t.Error("no guarded write happened")
	}
}

func (s *subject) moveGuard(ctx context.Context, times int) error {
	for range times {
		guard, err := s.store.Get(ctx, "guard")
		if err != nil {
			return err
		}
		if _, err := s.commit(ctx, storage.Replace("guard", nil, guard.Revision)); err != nil {
			return err
		}
	}
	return nil
}

func (s *subject) writeGuarded(ctx context.Context, key storage.Key, times int) error {
	var at storage.Revision
	for range times {
		guard, err := s.store.Get(ctx, "guard")
		if err != nil {
			return err
		}
		w := storage.Replace(key, []byte(fmt.Sprint(guard.Revision)), at)
		w.Guard = &storage.Guard{Key: "guard", At: guard.Revision}
		result, err := s.commit(ctx, w)
		switch {
		case err == nil:
			at = result.Revision
		case !errors.Is(err, storage.ErrGuard):
			return err
		}
	}
	return nil
}
