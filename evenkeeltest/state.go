package evenkeeltest

import (
	"context"
	"errors"

	"github.com/even-keel/evenkeel/storage"
)

// State is what a server held at some time.
type State struct {
	entries map[storage.Key][]byte
}

// Snapshot returns what the server holds. It is for [Env.Restore].
func (e *Env) Snapshot() State {
	e.t.Helper()
	entries, err := e.read()
	if err != nil {
		e.t.Fatalf("evenkeeltest: take a snapshot: %v", err)
	}
	s := State{entries: map[storage.Key][]byte{}}
	for key, entry := range entries {
		s.entries[key] = entry.Value
	}
	return s
}

// Restore makes the server hold what it held when the snapshot was taken: what
// is new is deleted, what has changed or gone is written again. To clients these
// are changes like others, of new revisions; nobody has to start anew. Stop
// first what would change it at the same time.
func (e *Env) Restore(s State) {
	e.t.Helper()
	if err := e.restore(s); err != nil {
		e.t.Fatalf("evenkeeltest: restore a snapshot: %v", err)
	}
}

func (e *Env) restore(s State) error {
	now, err := e.read()
	if err != nil {
		return err
	}
	ctx := context.Background()
	for key, entry := range now {
		if _, kept := s.entries[key]; !kept {
			if err := e.commit(ctx, storage.Delete(key, entry.Revision)); err != nil {
				return err
			}
		}
	}
	for key, value := range s.entries {
		entry, there := now[key]
		if there && string(entry.Value) == string(value) {
			continue
		}
		if err := e.commit(ctx, storage.Replace(key, value, entry.Revision)); err != nil {
			return err
		}
	}
	return nil
}

// commit says what to do about somebody who writes at the same time.
func (e *Env) commit(ctx context.Context, w storage.Write) error {
	_, err := e.store.Commit(ctx, w)
	if errors.Is(err, storage.ErrConflict) {
		return errorf("%s was changed meanwhile: stop controllers before Restore", w.Key)
	}
	return err
}

// read returns everything that is stored.
func (e *Env) read() (map[storage.Key]storage.Entry, error) {
	all := map[storage.Key]storage.Entry{}
	r := storage.Range{}
	for {
		page, err := e.store.Scan(context.Background(), r)
		if err != nil {
			return nil, err
		}
		for _, entry := range page.Entries {
			all[entry.Key] = entry
		}
		if !page.More {
			return all, nil
		}
		r.Start, r.Revision = page.Next, page.Revision
	}
}
