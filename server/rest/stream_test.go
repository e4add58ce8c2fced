package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/even-keel/evenkeel/server/watch"
	"github.com/even-keel/evenkeel/storage"
	"github.com/even-keel/evenkeel/storage/embedded"
)

// shared returns n events of a resource as a hub shares them.
func shared(t *testing.T, n, size int) []*watch.Event {
	t.Helper()
	store, err := embedded.Open(embedded.Options{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	hub := watch.New(store)
	if err := hub.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- hub.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
		_ = store.Close()
	})
	for i := range n {
		key := watch.Key("things", "n", fmt.Sprint(i))
		value, err := watch.Stored(fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q},"data":%q}`, watch.Placeholder, strings.Repeat("x", size)))
		if err != nil {
			t.Fatal(err)
		}
		result, err := store.Commit(t.Context(), storage.Create(key, value))
		if err != nil {
			t.Fatal(err)
		}
		if err := hub.Wait(t.Context(), result.Revision); err != nil {
			t.Fatal(err)
		}
	}
	cursor := hub.Resource("things").Watch(0)
	defer cursor.Close()
	var all []*watch.Event
	for len(all) < n {
		events, err := cursor.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, events...)
	}
	return all
}

// Some events are sent from where they lie and others are copied, as a selector
// has it: they come in order all the same.
func TestEventsComeInOrderHoweverTheyAreSent(t *testing.T) {
	for _, size := range []int{10, 2000, 20_000} {
		events := shared(t, 200, size)
		seed := rand.Uint64()
		random := rand.New(rand.NewPCG(seed, 1))
		for range 20 {
			answer := httptest.NewRecorder()
			s := &stream{
				encoder: &eventEncoder{call: &call{res: &resource{}, out: output{media: mediaJSON}}},
				w:       answer, control: http.NewResponseController(answer),
			}
			var want []string
			for _, e := range events {
				switch random.IntN(5) {
				case 0: // it is not selected
					continue
				case 1:
					if err := s.object("ADDED", e.Object); err != nil {
						t.Fatal(err)
					}
				default:
					if err := s.event("ADDED", e.Object, e); err != nil {
						t.Fatal(err)
					}
				}
				want = append(want, fmt.Sprint(e.Revision))
			}
			if err := s.flush(); err != nil {
				t.Fatal(err)
			}
			if got := revisionsIn(t, answer.Body.Bytes()); strings.Join(got, " ") != strings.Join(want, " ") {
				t.Fatalf("seed %d, objects of %d bytes: got %v, want %v", seed, size, got, want)
			}
		}
	}
}

func revisionsIn(t *testing.T, stream []byte) []string {
	t.Helper()
	var found []string
	for line := range bytes.Lines(stream) {
		var e struct {
			Object struct {
				Metadata struct{ ResourceVersion string }
			}
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		found = append(found, e.Object.Metadata.ResourceVersion)
	}
	return found
}
