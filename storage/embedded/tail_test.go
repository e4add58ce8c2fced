package embedded

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/even-keel/evenkeel/storage"
)

// What the tail says of a key is what its last event left, and it says nothing of
// a key whose last event it no longer holds.
func TestTheTailKnowsTheKeysOfItsEvents(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	tail, last := newTail(7), map[storage.Key]storage.Event{}
	unknown := 0
	for range 400 {
		var events []storage.Event
		for range 1 + random.IntN(20) {
			e := storage.Event{
				Key: storage.Key(fmt.Sprintf("k%d", random.IntN(1500))), Revision: tail.head() + storage.Revision(len(events)+1),
				Deleted: random.IntN(4) == 0, Value: bytes.Repeat([]byte("x"), random.IntN(4<<10)),
			}
			events, last[e.Key] = append(events, e), e
		}
		tail.publish(events)
		oldest := tail.events[0].Revision
		for key, e := range last {
			got, ok := tail.current(key)
			if want := e.Revision >= oldest; ok != want {
				t.Fatalf("%s of revision %d is known: %v, want %v; the tail begins at %d", key, e.Revision, ok, want, oldest)
			}
			if want := entryAfter(e); ok && (got.Revision != want.Revision || !bytes.Equal(got.Value, want.Value)) {
				t.Fatalf("%s stands at %d, want %d", key, got.Revision, want.Revision)
			}
			if !ok {
				unknown++
			}
		}
	}
	if unknown == 0 {
		t.Error("no event has left the tail: the test shows nothing")
	}
	if len(tail.newest) > len(tail.events) {
		t.Errorf("%d keys of %d events", len(tail.newest), len(tail.events))
	}
}
