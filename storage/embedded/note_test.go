package embedded_test

import (
	"testing"

	"github.com/even-keel/evenkeel/storage"
	"github.com/even-keel/evenkeel/storage/embedded"
)

// From memory at first, and from the disk once the store has been opened again.
func TestDeletionsKeepTheirNotes(t *testing.T) {
	dir := t.TempDir()
	for _, where := range []string{"memory", "disk"} {
		store, err := embedded.Open(embedded.Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if where == "memory" {
			for key, note := range map[storage.Key]string{"a": "why", "b": ""} {
				made, err := store.Commit(t.Context(), storage.Create(key, []byte("1")))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := store.Commit(t.Context(), storage.Write{Key: key, Delete: true, At: made.Revision, Value: []byte(note)}); err != nil {
					t.Fatal(err)
				}
			}
		}
		for key, want := range map[storage.Key]string{"a": "why", "b": ""} {
			e := deletionOf(t, store, key)
			if string(e.Value) != want || want == "" && e.Value != nil || string(e.Previous.Value) != "1" {
				t.Errorf("in %s: the deletion of %s is %+v", where, key, e)
			}
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func deletionOf(t *testing.T, store storage.Store, key storage.Key) storage.Event {
	t.Helper()
	w := store.Watch(key, 0)
	defer w.Close()
	for {
		batch, err := w.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range batch.Events {
			if e.Deleted {
				return e
			}
		}
	}
}
