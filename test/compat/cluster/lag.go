package cluster

import (
	"context"
	"time"

	"github.com/even-keel/evenkeel/server"
	"github.com/even-keel/evenkeel/storage"
)

// Lagging has a server hear of each write only after a time, its own included,
// as with a busy etcd: what it then answers by luck elsewhere, it gets wrong.
func Lagging(by time.Duration) Option {
	return Configured(func(c *server.Config) { c.Store = laggingStore{c.Store, by} })
}

type laggingStore struct {
	storage.Store
	by time.Duration
}

func (s laggingStore) Watch(prefix storage.Key, after storage.Revision) storage.Watcher {
	return &laggingWatcher{Watcher: s.Store.Watch(prefix, after), by: s.by}
}

// laggingWatcher holds a batch back. One that it holds when ctx ends is for the
// next call.
type laggingWatcher struct {
	storage.Watcher
	by   time.Duration
	held *storage.Batch
}

func (w *laggingWatcher) Next(ctx context.Context) (storage.Batch, error) {
	if w.held == nil {
		batch, err := w.Watcher.Next(ctx)
		if err != nil {
			return batch, err
		}
		w.held = &batch
	}
	select {
	case <-time.After(w.by):
		batch := *w.held
		w.held = nil
		return batch, nil
	case <-ctx.Done():
		return storage.Batch{}, ctx.Err()
	}
}
