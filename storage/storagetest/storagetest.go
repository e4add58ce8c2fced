// Package storagetest holds a storage engine to the contract of
// [storage.Store]. Every engine passes [Run]; what only one engine has (a disk
// that fails, a cluster that loses a member) is tested beside that engine.
//
// Reads are never checked against what a test hopes for but against the
// ledger: every commit that the store acknowledged, in the order of the
// revisions that it gave out.
package storagetest

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/even-keel/evenkeel/storage"
)

// patience is how long one behaviour may take before the store counts as hung.
const patience = 2 * time.Minute

// grace is how long a call may take to notice that its context has ended.
const grace = 10 * time.Second

// behaviours are named by what must be true. Each gets a store of its own.
type behaviours map[string]func(ctx context.Context, s *subject)

// Run runs the suite. Each call of open returns a fresh and empty store that
// shares no state with another, compacts only when asked to, and has no other
// user; the suite closes it. Random behaviours log their seed, which the
// environment variable EVENKEEL_SEED sets.
func Run(t *testing.T, open func(t *testing.T) storage.Store) {
	families := map[string]behaviours{
		"cancel":   cancelBehaviours,
		"close":    closeBehaviours,
		"commit":   commitBehaviours,
		"compact":  compactBehaviours,
		"edges":    edgeBehaviours,
		"guard":    guardBehaviours,
		"long":     longBehaviours,
		"progress": progressBehaviours,
		"read":     readBehaviours,
		"scan":     scanBehaviours,
		"traffic":  trafficBehaviours,
		"watch":    watchBehaviours,
	}
	for _, family := range slices.Sorted(maps.Keys(families)) {
		t.Run(family, func(t *testing.T) {
			for _, name := range slices.Sorted(maps.Keys(families[family])) {
				t.Run(name, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					families[family][name](ctx, newSubject(t, open))
				})
			}
		})
	}
}
