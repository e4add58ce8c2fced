package leader_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/even-keel/evenkeel/evenkeeltest"
)

// TestTwoNeverLeadAtOnce breaks the ways of three candidates in seeded ways, with
// clocks that are wrong and work that takes its time to end. EVENKEEL_ROUNDS is how
// many elections of half an hour there are, EVENKEEL_SEED the seed of the first.
func TestTwoNeverLeadAtOnce(t *testing.T) {
	rounds, seed := 4, rand.Uint64N(1<<40)
	if v := os.Getenv("EVENKEEL_ROUNDS"); v != "" {
		rounds, _ = strconv.Atoi(v)
	}
	if v := os.Getenv("EVENKEEL_SEED"); v != "" {
		seed, _ = strconv.ParseUint(v, 10, 64)
	}
	for i := range rounds {
		t.Run(fmt.Sprintf("EVENKEEL_SEED=%d", seed+uint64(i)), func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *evenkeeltest.Env) { chaos(t, c, rand.New(rand.NewPCG(seed+uint64(i), 1))) })
		})
	}
}

func chaos(t *testing.T, c *evenkeeltest.Env, random *rand.Rand) {
	modes := []mode{open, hangs, deaf, refuses, fails, loses, slow, noWatch, conflict}
	r := newRace(t, c)
	var all []*runner
	for _, name := range []string{"a", "b", "d"} {
		all = append(all, r.enter(entry{
			name: name, again: true,
			skew:     time.Duration(random.IntN(7)-3) * 10 * time.Minute,
			windDown: time.Duration(random.Int64N(int64(leaseDuration - renewDeadline - 100*time.Millisecond))),
		}))
	}
	for end := time.Now().Add(30 * time.Minute); time.Now().Before(end); {
		all[random.IntN(len(all))].road.set(modes[random.IntN(len(modes))])
		time.Sleep(time.Duration(random.Int64N(int64(12 * time.Second))))
	}
	for _, candidate := range all {
		candidate.road.set(open)
	}
	time.Sleep(2*time.Minute + leaseDuration)
	if r.leader() == "" {
		t.Errorf("nobody leads after all was well again: %v", r.terms)
	}
	r.end(all...)
	t.Logf("%d terms", len(r.terms))
}
