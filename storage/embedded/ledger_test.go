package embedded

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/even-keel/evenkeel/storage"
)

// ledger knows which writes were begun and which were acknowledged, and holds a
// store that has crashed to it: no acknowledged write lost, none invented,
// revisions dense and never going back.
type ledger struct {
	mu    sync.Mutex
	begun map[string]bool
	acked map[storage.Revision]string

	// seen and state are what the last check found.
	seen  storage.Revision
	state map[storage.Key]storage.Entry
}

func newLedger() *ledger {
	return &ledger{
		begun: map[string]bool{}, acked: map[storage.Revision]string{},
		seen: firstRevision, state: map[storage.Key]storage.Entry{},
	}
}

func (l *ledger) begin(op string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun[op] = true
}

func (l *ledger) ack(rev storage.Revision, op string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acked[rev] = op
}

// ackedNow returns what has been acknowledged so far.
func (l *ledger) ackedNow() map[storage.Revision]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.acked)
}

// check reads what has been added since the last check through a watch from
// there, and compares it with the books.
func (l *ledger) check(t *testing.T, s storage.Store, acked map[storage.Revision]string) {
	t.Helper()
	ctx := t.Context()
	head, err := s.Head(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if head < l.seen {
		t.Fatalf("the head went back from %d to %d", l.seen, head)
	}
	for rev := range acked {
		if rev > head {
			t.Fatalf("revision %d was acknowledged, but the store ends at %d", rev, head)
		}
	}
	l.follow(t, s, head, acked)
	page, err := s.Scan(ctx, storage.Range{})
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Entries) != len(l.state) {
		t.Fatalf("the store has %d keys, its history made %d", len(page.Entries), len(l.state))
	}
	for _, e := range page.Entries {
		want := l.state[e.Key]
		if want.Revision != e.Revision || string(want.Value) != string(e.Value) {
			t.Fatalf("%q stands at revision %d, its history ends at %d", e.Key, e.Revision, want.Revision)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acked = map[storage.Revision]string{}
}

func (l *ledger) follow(t *testing.T, s storage.Store, head storage.Revision, acked map[storage.Revision]string) {
	t.Helper()
	w := s.Watch("", l.seen)
	defer w.Close()
	for l.seen < head {
		batch, err := w.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range batch.Events {
			l.event(t, e, acked)
		}
	}
}

func (l *ledger) event(t *testing.T, e storage.Event, acked map[storage.Revision]string) {
	t.Helper()
	if e.Revision != l.seen+1 {
		t.Fatalf("revision %d follows %d", e.Revision, l.seen)
	}
	l.seen = e.Revision
	if was := l.state[e.Key]; was.Revision != e.Previous.Revision || string(was.Value) != string(e.Previous.Value) {
		t.Fatalf("revision %d replaced %d, but %q stood at %d", e.Revision, e.Previous.Revision, e.Key, was.Revision)
	}
	op := opName(e.Key, e.Value, e.Deleted, e.Previous.Revision)
	if want, ok := acked[e.Revision]; ok && want != op {
		t.Fatalf("revision %d holds %q, acknowledged was %q", e.Revision, op, want)
	}
	l.mu.Lock()
	begun := l.begun[op]
	l.mu.Unlock()
	if !begun {
		t.Fatalf("revision %d holds %q, which nobody wrote", e.Revision, op)
	}
	delete(l.state, e.Key)
	if !e.Deleted {
		l.state[e.Key] = storage.Entry{Key: e.Key, Value: e.Value, Revision: e.Revision}
	}
}

// opName names a write by all that it did: its value begins with a unique id.
func opName(key storage.Key, value []byte, deleted bool, at storage.Revision) string {
	if deleted {
		return fmt.Sprintf("delete %s at %d", key, at)
	}
	id, _, _ := strings.Cut(string(value), "|")
	return fmt.Sprintf("put %s at %d id %s size %d", key, at, id, len(value))
}

// books is what a writer tells of its writes.
type books interface {
	begin(op string)
	ack(rev storage.Revision, op string)
}

// traffic writes at random to its own share of the keys until the store no
// longer takes writes or ctx ends.
func traffic(ctx context.Context, s storage.Store, b books, writer int, run string, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, uint64(writer)))
	padding := strings.Repeat("x", 4096)
	for n := 0; ctx.Err() == nil; n++ {
		// Two writers share each key, so that some writes conflict.
		key := storage.Key("/k/" + strconv.Itoa(writer/2) + "/" + strconv.Itoa(rng.IntN(20)))
		at := storage.Revision(0)
		if e, err := s.Get(ctx, key); err == nil {
			at = e.Revision
		}
		w := storage.Replace(key, []byte(fmt.Sprintf("%s-%d-%d|%s", run, writer, n, padding[:rng.IntN(len(padding))])), at)
		if at != 0 && rng.IntN(4) == 0 {
			w = storage.Delete(key, at)
		}
		op := opName(w.Key, w.Value, w.Delete, w.At)
		b.begin(op)
		r, err := s.Commit(ctx, w)
		if err == nil {
			b.ack(r.Revision, op)
		} else if !errors.Is(err, storage.ErrConflict) {
			return
		}
	}
}
