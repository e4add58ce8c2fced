package storage_test

import (
	"context"
	"errors"
	"testing"

	"github.com/even-keel/evenkeel/storage"
	"github.com/even-keel/evenkeel/storage/etcd"
	"github.com/even-keel/evenkeel/storage/storagetest"
	"github.com/even-keel/evenkeel/test/storage/etcdtest"
)

// TestEtcd runs the suite with a cluster per store: revisions and compactions
// are of the whole cluster.
func TestEtcd(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storage.Store {
		cluster := etcdtest.Start(t, 1)
		store, err := etcd.Open(t.Context(), etcd.Options{Endpoints: cluster.Endpoints()})
		if err != nil {
			t.Fatal(err)
		}
		return store
	})
}

// openEtcd opens a store that is closed when the test ends.
func openEtcd(t *testing.T, o etcd.Options) *etcd.Store {
	t.Helper()
	store, err := etcd.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

func mustCommit(t *testing.T, store storage.Store, w storage.Write) storage.Revision {
	t.Helper()
	result, err := store.Commit(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	return result.Revision
}

func mustHead(t *testing.T, store storage.Store) storage.Revision {
	t.Helper()
	head, err := store.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return head
}

// readThrough collects events until the watcher has seen a revision.
func readThrough(ctx context.Context, w storage.Watcher, until storage.Revision) ([]storage.Event, error) {
	var events []storage.Event
	for through := storage.Revision(0); through < until; {
		w.RequestProgress()
		batch, err := w.Next(ctx)
		if err != nil {
			return events, err
		}
		events = append(events, batch.Events...)
		through = batch.Through
	}
	return events, nil
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got error %v, want %v", err, want)
	}
}
