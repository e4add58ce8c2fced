package storagetest

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/even-keel/evenkeel/storage"
)

var readBehaviours = behaviours{
	"a key that never was is not found":     neverWas,
	"a get sees every commit that returned": getIsFresh,
	"the head counts every commit returned": headIsFresh,
	"a working store says that it works":    healthy,
}

func neverWas(ctx context.Context, s *subject) {
	for _, key := range []storage.Key{"", "a", "ab", "abc", "\x00", "\xff"} {
		entry, err := s.store.Get(ctx, key)
		s.wantErr(fmt.Sprintf("Get %q of an empty store", key), err, storage.ErrNotFound)
		s.same("entry", storage.Entry{}, entry)
	}
	s.create(ctx, "ab", "1")
	for _, key := range []storage.Key{"", "a", "abc", "ab\x00", "b"} {
		_, err := s.store.Get(ctx, key)
		s.wantErr(fmt.Sprintf("Get %q beside \"ab\"", key), err, storage.ErrNotFound)
	}
}

// getIsFresh has readers note what was acknowledged before they read.
func getIsFresh(ctx context.Context, s *subject) {
	at := s.create(ctx, "key", "0")
	write := func(ctx context.Context, _ int) error {
		for n := range s.size(300, 60) {
			result, err := s.commit(ctx, storage.Replace("key", []byte(strconv.Itoa(n+1)), at))
			if err != nil {
				return err
			}
			at = result.Revision
		}
		return nil
	}
	read := func(ctx context.Context, _ int) error {
		for range s.ledger.pace() {
			floor := s.ledger.newest()
			entry, err := s.store.Get(ctx, "key")
			if err != nil {
				return err
			}
			if entry.Revision < floor {
				return fmt.Errorf("got revision %d after %d had been acknowledged", entry.Revision, floor)
			}
		}
		return nil
	}
	s.traffic(ctx, 1, write, 3, read)
	s.history()
}

func headIsFresh(ctx context.Context, s *subject) {
	for n := range 20 {
		at := s.create(ctx, storage.Key("alone "+strconv.Itoa(n)), "1")
		if head := s.head(ctx); head != at {
			s.t.Errorf("head %d after %d was written", head, at)
		}
	}
	read := func(ctx context.Context, _ int) error {
		var last storage.Revision
		for range s.ledger.pace() {
			floor := max(last, s.ledger.newest())
			head, err := s.store.Head(ctx)
			if err != nil {
				return err
			}
			if head < floor {
				return fmt.Errorf("head %d after %d had been seen", head, floor)
			}
			last = head
		}
		return nil
	}
	s.traffic(ctx, 4, s.scribbler(awkward, s.size(60, 20)), 3, read)
}

func healthy(ctx context.Context, s *subject) {
	checker, ok := s.store.(storage.HealthChecker)
	if !ok {
		s.t.Skip("the store has no opinion on its health")
	}
	if err := checker.Health(ctx); err != nil {
		s.t.Errorf("Health: %v", err)
	}
	s.close()
	if err := checker.Health(ctx); !errors.Is(err, storage.ErrClosed) {
		s.t.Errorf("Health after Close: got %v, want %v", err, storage.ErrClosed)
	}
}
