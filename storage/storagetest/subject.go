package storagetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/even-keel/evenkeel/storage"
)

// subject is the store under test together with what it has acknowledged.
type subject struct {
	t       *testing.T
	open    func(t *testing.T) storage.Store
	store   storage.Store
	ledger  *ledger
	checked history // the ledger when it was last checked
	padding int     // is added to the size of what scribble writes
	seed    func() uint64
}

func newSubject(t *testing.T, open func(t *testing.T) storage.Store) *subject {
	s := &subject{t: t, open: open, store: open(t), ledger: newLedger(), seed: sync.OnceValue(func() uint64 { return pickSeed(t) })}
	t.Cleanup(s.close)
	return s
}

func pickSeed(t *testing.T) uint64 {
	seed := rand.Uint64()
	if text := os.Getenv("EVENKEEL_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("EVENKEEL_SEED: %v", err)
		}
	}
	t.Logf("EVENKEEL_SEED=%d", seed)
	return seed
}

// rand returns the i-th source of chance of this test. The first call must be
// made by the test's own goroutine.
func (s *subject) rand(i int) *rand.Rand {
	return rand.New(rand.NewPCG(s.seed(), uint64(i)))
}

// size is how much of something to do: less in a short run.
func (s *subject) size(full, short int) int {
	if testing.Short() {
		return short
	}
	return full
}

// close closes the store, and says so if that hangs.
func (s *subject) close() {
	done := make(chan error, 1)
	go func() { done <- s.store.Close() }()
	select {
	case err := <-done:
		if err != nil {
			s.t.Errorf("Close: %v", err)
		}
	case <-time.After(patience):
		s.t.Errorf("Close did not return within %v", patience)
	}
}

// commit writes, enters the write in the ledger and checks what every result
// must have. It may be called by any goroutine.
func (s *subject) commit(ctx context.Context, w storage.Write) (storage.Result, error) {
	result, err := s.store.Commit(ctx, w)
	switch {
	case err == nil && result.Revision == 0:
		return result, fmt.Errorf("%s was acknowledged with revision 0", describe(w))
	case err == nil && result.Previous.Revision != w.At:
		return result, fmt.Errorf("%s replaced revision %d", describe(w), result.Previous.Revision)
	case err == nil:
		s.ledger.enter(w, result)
		return result, nil
	case result.Revision != 0:
		return result, fmt.Errorf("%s failed (%w) and yet has revision %d", describe(w), err, result.Revision)
	case errors.Is(err, storage.ErrConflict) && result.Previous.Revision == w.At:
		return result, fmt.Errorf("%s was refused although the key is there: %s", describe(w), err.Error())
	}
	return result, fmt.Errorf("%s: %w", describe(w), err)
}

func describe(w storage.Write) string {
	switch {
	case w.Delete:
		return fmt.Sprintf("delete of %.40q at %d", w.Key, w.At)
	case w.At == 0:
		return fmt.Sprintf("create of %.40q", w.Key)
	}
	return fmt.Sprintf("replace of %.40q at %d", w.Key, w.At)
}

// must commits a write that has to succeed.
func (s *subject) must(ctx context.Context, w storage.Write) storage.Revision {
	s.t.Helper()
	result, err := s.commit(ctx, w)
	if err != nil {
		s.t.Fatal(err)
	}
	return result.Revision
}

func (s *subject) create(ctx context.Context, key storage.Key, value string) storage.Revision {
	s.t.Helper()
	return s.must(ctx, storage.Create(key, []byte(value)))
}

func (s *subject) replace(ctx context.Context, key storage.Key, value string, at storage.Revision) storage.Revision {
	s.t.Helper()
	return s.must(ctx, storage.Replace(key, []byte(value), at))
}

func (s *subject) delete(ctx context.Context, key storage.Key, at storage.Revision) storage.Revision {
	s.t.Helper()
	return s.must(ctx, storage.Delete(key, at))
}

func (s *subject) get(ctx context.Context, key storage.Key) storage.Entry {
	s.t.Helper()
	entry, err := s.store.Get(ctx, key)
	if err != nil {
		s.t.Fatalf("Get %.40q: %v", key, err)
	}
	return entry
}

func (s *subject) scan(ctx context.Context, r storage.Range) storage.Page {
	s.t.Helper()
	page, err := s.store.Scan(ctx, r)
	if err != nil {
		s.t.Fatalf("Scan %+v: %v", r, err)
	}
	return page
}

// only returns the one entry with a prefix.
func (s *subject) only(ctx context.Context, prefix storage.Key) storage.Entry {
	s.t.Helper()
	page := s.scan(ctx, storage.Range{Prefix: prefix})
	if len(page.Entries) != 1 {
		s.t.Fatalf("Scan of %q at %d: %d entries, want one", prefix, page.Revision, len(page.Entries))
	}
	return page.Entries[0]
}

func (s *subject) head(ctx context.Context) storage.Revision {
	s.t.Helper()
	head, err := s.store.Head(ctx)
	if err != nil {
		s.t.Fatalf("Head: %v", err)
	}
	return head
}

func (s *subject) compact(ctx context.Context, at storage.Revision) {
	s.t.Helper()
	if err := s.store.Compact(ctx, at); err != nil {
		s.t.Fatalf("Compact at %d: %v", at, err)
	}
}

// wantErr fails the test unless err is want.
func (s *subject) wantErr(what string, err, want error) {
	s.t.Helper()
	if !errors.Is(err, want) {
		s.t.Errorf("%s: got error %v, want %v", what, err, want)
	}
}

// same fails the test unless got is want; an empty slice is as good as none.
func (s *subject) same(what string, want, got any) {
	s.t.Helper()
	if d := diff(want, got); d != "" {
		s.t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func diff(want, got any) string {
	if reflect.DeepEqual(want, got) { // far quicker than cmp on large values
		return ""
	}
	asText := cmp.FilterValues(
		func(a, b []byte) bool { return len(a)+len(b) > 0 },
		cmp.Transformer("text", func(value []byte) string { return string(value) }),
	)
	return cmp.Diff(want, got, cmpopts.EquateEmpty(), asText)
}

// crew runs tasks at once; the first that fails stops the rest and the test.
type crew struct {
	t     *testing.T
	tasks sync.WaitGroup
	stop  context.CancelFunc
	late  <-chan struct{} // ends when the tasks should have
	once  sync.Once
	err   error
}

func (s *subject) crew(ctx context.Context) (*crew, context.Context) {
	late := ctx.Done()
	ctx, stop := context.WithCancel(ctx)
	return &crew{t: s.t, stop: stop, late: late}, ctx
}

func (c *crew) start(task func() error) {
	c.tasks.Go(func() {
		if err := task(); err != nil {
			c.once.Do(func() { c.err = err; c.stop() })
		}
	})
}

// wait returns when all tasks have. Those that do not heed their context are
// left behind.
func (c *crew) wait() {
	c.t.Helper()
	done := make(chan struct{})
	go func() { c.tasks.Wait(); close(done) }()
	select {
	case <-done:
	case <-c.late:
		select {
		case <-done:
		case <-time.After(grace):
			c.t.Fatalf("a call does not return, although its context ended %v ago:\n%s", grace, strings.Join(callsUnderway(), "\n\n"))
		}
	}
	c.stop()
	if c.err != nil {
		c.t.Fatal(c.err)
	}
}

// together runs n tasks at once.
func (s *subject) together(ctx context.Context, n int, task func(ctx context.Context, i int) error) {
	s.t.Helper()
	crew, ctx := s.crew(ctx)
	for i := range n {
		crew.start(func() error { return task(ctx, i) })
	}
	crew.wait()
}
