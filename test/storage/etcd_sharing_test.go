package storage_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/even-keel/evenkeel/storage"
	"github.com/even-keel/evenkeel/storage/etcd"
	"github.com/even-keel/evenkeel/test/storage/etcdtest"
)

func TestEtcdPrefixesAreApart(t *testing.T) {
	cluster := etcdtest.Start(t, 1)
	// Each but the last would begin the next, were no slash added.
	stores := map[string]*etcd.Store{}
	for _, prefix := range []string{"", "/evenkeel", "/evenkeel2", "/e", "\xff"} {
		stores[prefix] = openEtcd(t, etcd.Options{Endpoints: cluster.Endpoints(), Prefix: prefix})
	}
	delete(stores, "") // the same as /evenkeel
	start := mustHead(t, stores["/e"])
	revisions := map[string]storage.Revision{}
	for prefix, store := range stores {
		for _, key := range []storage.Key{"", "a", "\xff"} {
			revisions[prefix+string(key)] = mustCommit(t, store, storage.Create(key, []byte(prefix)))
		}
	}
	for prefix, store := range stores {
		want := []storage.Entry{}
		for _, key := range []storage.Key{"", "a", "\xff"} {
			want = append(want, storage.Entry{Key: key, Value: []byte(prefix), Revision: revisions[prefix+string(key)]})
		}
		page, err := store.Scan(t.Context(), storage.Range{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, page.Entries); diff != "" {
			t.Errorf("scan under %q (-want +got):\n%s", prefix, diff)
		}
		w := store.Watch("", start)
		defer w.Close()
		events, err := readThrough(t.Context(), w, mustHead(t, store))
		if err != nil {
			t.Fatal(err)
		}
		for i, event := range events {
			if got := (storage.Entry{Key: event.Key, Value: event.Value, Revision: event.Revision}); i >= len(want) || !cmp.Equal(got, want[i]) {
				t.Errorf("watch under %q: unexpected event %+v", prefix, got)
			}
		}
		if len(events) != len(want) {
			t.Errorf("watch under %q: %d events, want %d", prefix, len(events), len(want))
		}
	}
}

// TestEtcdServersShareAPrefix has the stores of several servers increment one
// counter, each also by what it is told on conflict.
func TestEtcdServersShareAPrefix(t *testing.T) {
	const servers, increments = 3, 60
	cluster := etcdtest.Start(t, 3)
	stores := make([]*etcd.Store, servers)
	for i := range stores {
		stores[i] = openEtcd(t, etcd.Options{Endpoints: cluster.Endpoints()})
	}
	start := mustCommit(t, stores[0], storage.Create("counter", []byte("0")))

	watched := make([][]storage.Event, servers)
	var all sync.WaitGroup
	for i, store := range stores {
		all.Go(func() {
			for range increments {
				if err := increment(t.Context(), store, "counter"); err != nil {
					t.Error(err)
					return
				}
			}
		})
		all.Go(func() {
			w := store.Watch("", start)
			defer w.Close()
			for len(watched[i]) < servers*increments {
				batch, err := w.Next(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				watched[i] = append(watched[i], batch.Events...)
			}
		})
	}
	all.Wait()
	for i, events := range watched {
		previous := start
		for n, event := range events {
			if string(event.Value) != strconv.Itoa(n+1) || event.Previous.Revision != previous {
				t.Fatalf("server %d: event %d is %+v, want it to replace revision %d", i, n, event, previous)
			}
			previous = event.Revision
		}
		entry, err := stores[i].Get(t.Context(), "counter")
		if err != nil || string(entry.Value) != strconv.Itoa(servers*increments) || entry.Revision != previous {
			t.Errorf("server %d: the counter is %+v, error %v", i, entry, err)
		}
	}
}

func increment(ctx context.Context, store storage.Store, key storage.Key) error {
	entry, err := store.Get(ctx, key)
	for err == nil {
		n, _ := strconv.Atoi(string(entry.Value))
		var result storage.Result
		result, err = store.Commit(ctx, storage.Replace(key, []byte(strconv.Itoa(n+1)), entry.Revision))
		if !errors.Is(err, storage.ErrConflict) {
			return err
		}
		entry, err = result.Previous, nil
	}
	return err
}

// TestEtcdScansInChunks scans more than fits one response while the keys
// change, and compares with pages of other sizes of the same state.
func TestEtcdScansInChunks(t *testing.T) {
	cluster := etcdtest.Start(t, 1)
	store := openEtcd(t, etcd.Options{Endpoints: cluster.Endpoints()})
	const keys = 3000
	var fill sync.WaitGroup
	for part := range 8 {
		fill.Go(func() {
			for n := part; n < keys; n += 8 {
				// Sizes differ so that chunks do.
				value := make([]byte, 1+n%7*n%5000)
				if _, err := store.Commit(t.Context(), storage.Create(chunkKey(n), value)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	fill.Wait()

	ctx, stop := context.WithCancel(t.Context())
	var churn sync.WaitGroup
	churn.Go(func() {
		for n := 0; ctx.Err() == nil; n = (n + 611) % keys {
			entry, err := store.Get(ctx, chunkKey(n))
			if err == nil {
				_, err = store.Commit(ctx, storage.Delete(entry.Key, entry.Revision))
			}
			if err == nil {
				_, err = store.Commit(ctx, storage.Create(entry.Key, entry.Value))
			}
			if err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
		}
	})
	defer churn.Wait()
	defer stop()
	for _, limit := range []int{1, 100, 128, 129, 1000, 1128, 1129, keys + 1} {
		whole, err := store.Scan(t.Context(), storage.Range{})
		if err != nil {
			t.Fatal(err)
		}
		if whole.More || len(whole.Entries) < keys-1 {
			t.Errorf("a scan without a limit has %d entries, more: %v", len(whole.Entries), whole.More)
		}
		if limit == 1 {
			whole.Entries = whole.Entries[:20] // enough of it
		}
		comparePages(t, store, whole, limit)
	}
}

func chunkKey(n int) storage.Key { return storage.Key("key/" + strconv.Itoa(n)) }

func comparePages(t *testing.T, store storage.Store, whole storage.Page, limit int) {
	t.Helper()
	r := storage.Range{Limit: limit, Revision: whole.Revision}
	var got []storage.Entry
	for more := true; more && len(got) < len(whole.Entries); {
		page, err := store.Scan(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Entries) > limit || page.Revision != whole.Revision {
			t.Fatalf("page of %d at revision %d, want at most %d at %d", len(page.Entries), page.Revision, limit, whole.Revision)
		}
		got = append(got, page.Entries...)
		r.Start, more = page.Next, page.More
	}
	if !slices.EqualFunc(whole.Entries, got, func(a, b storage.Entry) bool {
		return a.Key == b.Key && a.Revision == b.Revision && len(a.Value) == len(b.Value)
	}) {
		t.Errorf("pages of %d differ from the whole at revision %d: %d and %d entries", limit, whole.Revision, len(got), len(whole.Entries))
	}
}
