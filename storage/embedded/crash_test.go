package embedded

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/even-keel/evenkeel/storage"
)

// TestPowerLossLosesNothing cuts the power under writers: what was not synced
// is lost, wholly or in part. Each disk is cut a hundred times.
func TestPowerLossLosesNothing(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	cuts, acks := rounds(t, "EVENKEEL_KILLS", 100), 0
	for left := cuts; left > 0; left -= 100 {
		acks += cutOneDisk(t, min(left, 100), seed+uint64(left), rng)
	}
	t.Logf("%d power cuts, %d acknowledged writes", cuts, acks)
}

// cutOneDisk returns how many writes were acknowledged.
func cutOneDisk(t *testing.T, cuts int, seed uint64, rng *rand.Rand) (acks int) {
	t.Helper()
	fs := vfs.NewCrashableMem()
	books := newLedger()
	for round := range cuts {
		acked, after := cutPower(t, fs, books, round, seed, rng)
		s := openOn(t, after)
		books.check(t, s, acked)
		if round%3 == 2 {
			if err := s.Compact(t.Context(), books.seen); err != nil {
				t.Fatal(err)
			}
		}
		fs = after
		if round%2 == 1 { // the next round starts from the wreck, else cleanly
			fs = after.CrashClone(vfs.CrashCloneCfg{})
		}
		mustClose(t, s)
		acks += len(acked)
	}
	return acks
}

func openOn(t *testing.T, fs vfs.FS) *Store {
	t.Helper()
	s, err := Open(Options{Dir: "data", fs: fs, HistoryBytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// cutPower writes until a random number of acknowledgements and returns what
// had been acknowledged and the disk as the crash left it.
func cutPower(t *testing.T, fs *vfs.MemFS, books *ledger, round int, seed uint64, rng *rand.Rand) (map[storage.Revision]string, *vfs.MemFS) {
	t.Helper()
	s := openOn(t, fs)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	heard := &countingBooks{ledger: books, left: 1 + rng.IntN(200), reached: make(chan struct{})}
	var wg sync.WaitGroup
	for writer := range 8 {
		wg.Go(func() { traffic(ctx, s, heard, writer, strconv.Itoa(round), seed+uint64(round)) })
	}
	<-heard.reached
	acked := books.ackedNow()
	after := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
	stop()
	wg.Wait()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return acked, after
}

// countingBooks closes reached after a number of acknowledgements.
type countingBooks struct {
	*ledger
	mu      sync.Mutex
	left    int
	reached chan struct{}
}

func (c *countingBooks) ack(rev storage.Revision, op string) {
	c.ledger.ack(rev, op)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left--; c.left == 0 {
		close(c.reached)
	}
}
