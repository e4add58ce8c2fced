package storage_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/even-keel/evenkeel/storage"
	"github.com/even-keel/evenkeel/storage/embedded"
	"github.com/even-keel/evenkeel/storage/etcd"
	"github.com/even-keel/evenkeel/test/storage/etcdtest"
)

// contest is a number of clients that fight over a few keys, and every call
// that they made.
type contest struct {
	t       *testing.T
	clients []*contestant
	calls   atomic.Int64
	running atomic.Int64
}

// contestant is one client. It has one call at a time.
type contestant struct {
	contest *contest
	number  int
	start   time.Time
	rng     *rand.Rand
	// haste is within which time calls are cancelled, when they are; patience
	// bounds all others.
	haste, patience time.Duration
	believed        map[storage.Key]storage.Revision
	history         []call
}

func newContest(t *testing.T, seed uint64, clients int, haste, patience time.Duration) *contest {
	c, start := &contest{t: t}, time.Now()
	for i := range clients {
		c.clients = append(c.clients, &contestant{
			contest: c, number: i, start: start, rng: rand.New(rand.NewPCG(seed, uint64(i))),
			haste: haste, patience: patience, believed: map[storage.Key]storage.Revision{},
		})
	}
	return c
}

// rounds runs a test as often as EVENKEEL_ROUNDS says, once by default. The
// first round has the seed EVENKEEL_SEED, if that is set.
func rounds(t *testing.T, round func(t *testing.T, seed uint64)) {
	n, err := strconv.Atoi(cmp.Or(os.Getenv("EVENKEEL_ROUNDS"), "1"))
	if err != nil {
		t.Fatalf("EVENKEEL_ROUNDS: %v", err)
	}
	first, err := strconv.ParseUint(cmp.Or(os.Getenv("EVENKEEL_SEED"), strconv.FormatUint(rand.Uint64(), 10)), 10, 64)
	if err != nil {
		t.Fatalf("EVENKEEL_SEED: %v", err)
	}
	for i := range n {
		seed := first + uint64(i)
		t.Run(fmt.Sprintf("round %d", i), func(t *testing.T) {
			t.Logf("EVENKEEL_SEED=%d", seed)
			round(t, seed)
		})
	}
}

// run lets every client make a number of calls on one of the stores, and
// meanwhile does what is to be done to them. A client whose store has closed
// makes no more calls.
func (c *contest) run(stores []storage.Store, calls int, meanwhile func()) {
	c.t.Helper()
	errs := make([]error, len(c.clients))
	var all sync.WaitGroup
	c.running.Add(int64(len(c.clients)))
	for i, client := range c.clients {
		all.Go(func() {
			defer c.running.Add(-1)
			errs[i] = client.run(stores[i%len(stores)], calls)
		})
	}
	meanwhile()
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		c.t.Fatal(err)
	}
}

// await returns once the clients have made some more calls, or make no more.
func (c *contest) await(more int) {
	for until := c.calls.Load() + int64(more); c.calls.Load() < until && c.running.Load() > 0; {
		time.Sleep(100 * time.Microsecond) // only paces the disturbance
	}
}

// check holds everything that the clients did, and the log of a store that has
// it all, to the model.
func (c *contest) check(store storage.Store) {
	c.t.Helper()
	var calls []call
	fates := map[fate]int{}
	for _, client := range c.clients {
		calls = append(calls, client.history...)
	}
	for _, one := range calls {
		fates[one.fate]++
	}
	c.t.Logf("%d calls: %d done, %d refused, %d failed", len(calls), fates[fateDone], fates[fateRefused], fates[fateUnknown])
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	watcher := store.Watch("", 0)
	defer watcher.Close()
	log, err := readThrough(ctx, watcher, mustHead(c.t, store))
	if err != nil {
		c.t.Fatal(err)
	}
	if err := checkLog(calls, log); err != nil {
		c.t.Error(err)
	}
	checkHistory(c.t, calls)
}

// run makes a number of calls, or as many as the store answers before it is
// closed.
func (c *contestant) run(store storage.Store, calls int) error {
	for range calls {
		err := c.call(store)
		c.contest.calls.Add(1)
		switch {
		case errors.Is(err, storage.ErrClosed):
			return nil
		case err == nil, errors.Is(err, storage.ErrUnavailable), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		default:
			return fmt.Errorf("client %d: %w", c.number, err)
		}
	}
	return nil
}

// call makes one random call and notes what came of it. Its error is of a call
// whose outcome is unknown.
func (c *contestant) call(store storage.Store) error {
	key := storage.Key("key " + strconv.Itoa(c.rng.IntN(3)))
	ctx, cancel := context.WithTimeout(context.Background(), c.patience)
	defer cancel()
	if c.rng.IntN(8) == 0 {
		timer := time.AfterFunc(time.Duration(c.rng.Int64N(int64(c.haste))), cancel)
		defer timer.Stop()
	}
	if c.rng.IntN(3) == 0 {
		return c.get(ctx, store, key)
	}
	return c.commit(ctx, store, c.choose(key))
}

func (c *contestant) get(ctx context.Context, store storage.Store, key storage.Key) error {
	one := call{client: c.number, read: true, write: storage.Write{Key: key}, begin: c.now()}
	entry, err := store.Get(ctx, key)
	one.end = c.now()
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return err // a read that was not answered tells nothing
	}
	one.fate, one.found = fateDone, registerOf(entry)
	c.believed[key] = entry.Revision
	c.history = append(c.history, one)
	return nil
}

// choose picks a write that fits what the client believes of the key, which
// others may have changed since.
func (c *contestant) choose(key storage.Key) storage.Write {
	at := c.believed[key]
	value := fmt.Appendf(nil, "client %d, write %d", c.number, len(c.history))
	switch {
	case at > 0 && c.rng.IntN(4) == 0:
		return storage.Delete(key, at)
	case c.rng.IntN(10) == 0:
		return storage.Create(key, value)
	}
	return storage.Replace(key, value, at)
}

func (c *contestant) commit(ctx context.Context, store storage.Store, w storage.Write) error {
	one := call{client: c.number, write: w, begin: c.now()}
	result, err := store.Commit(ctx, w)
	one.end = c.now()
	one.revision, one.found = result.Revision, registerOf(result.Previous)
	switch {
	case err == nil:
		one.fate = fateDone
		c.believed[w.Key] = result.Revision
		if w.Delete {
			c.believed[w.Key] = 0
		}
	case errors.Is(err, storage.ErrConflict):
		one.fate = fateRefused
		c.believed[w.Key] = result.Previous.Revision
		err = nil
	default:
		one.end = never
	}
	c.history = append(c.history, one)
	return err
}

func (c *contestant) now() int64 { return int64(time.Since(c.start)) }

// contestSize is less in a short run.
func contestSize(full, short int) int {
	if testing.Short() {
		return short
	}
	return full
}

func openEmbedded(t *testing.T, o embedded.Options) storage.Store {
	t.Helper()
	store, err := embedded.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// closeInTime closes a store that is in use, and says so if that hangs.
func closeInTime(t *testing.T, store storage.Store) {
	t.Helper()
	closed := make(chan error, 1)
	go func() { closed <- store.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Fatalf("Close: %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("Close did not return within a minute")
	}
}

func TestLinearizabilityOfEmbedded(t *testing.T) {
	rounds(t, func(t *testing.T, seed uint64) {
		store := openEmbedded(t, embedded.Options{Memory: true})
		defer store.Close()
		c := newContest(t, seed, 8, 200*time.Microsecond, time.Minute)
		c.run([]storage.Store{store}, contestSize(1000, 200), func() {})
		c.check(store)
	})
}

// TestLinearizabilityOfEmbeddedReopened closes the store amid traffic and opens
// it anew, again and again: one history over all.
func TestLinearizabilityOfEmbeddedReopened(t *testing.T) {
	rounds(t, func(t *testing.T, seed uint64) {
		dir := t.TempDir()
		c := newContest(t, seed, 8, 2*time.Millisecond, time.Minute)
		rng := rand.New(rand.NewPCG(seed, 0))
		for range contestSize(25, 5) {
			store := openEmbedded(t, embedded.Options{Dir: dir})
			c.run([]storage.Store{store}, 1000, func() {
				c.await(rng.IntN(300))
				closeInTime(t, store)
			})
		}
		store := openEmbedded(t, embedded.Options{Dir: dir})
		defer store.Close()
		c.check(store)
	})
}

// TestLinearizabilityOfEtcd kills a member under clients of several stores, and
// brings it back. Every other round it is the leader.
func TestLinearizabilityOfEtcd(t *testing.T) {
	rounds(t, func(t *testing.T, seed uint64) {
		cluster := etcdtest.Start(t, 3)
		var stores []storage.Store
		for range 3 {
			store := openEtcd(t, etcd.Options{Endpoints: cluster.Endpoints()})
			defer store.Close()
			stores = append(stores, store)
		}
		c := newContest(t, seed, 9, 4*time.Millisecond, 2*time.Second)
		quarter := contestSize(75, 40)
		c.run(stores, 4*quarter, func() {
			c.await(quarter * len(c.clients))
			victim := (cluster.Leader() + int(seed%2)) % 3
			cluster.Kill(victim)
			c.await(quarter * len(c.clients))
			cluster.Restart(victim)
		})
		c.check(stores[0])
	})
}
