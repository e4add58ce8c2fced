package informer

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/even-keel/evenkeel/cache"
	"github.com/even-keel/evenkeel/client"
)

func TestEndsAreThoseOfTheNewestRevision(t *testing.T) {
	key := client.Key{Name: "a"}
	for name, test := range map[string]struct {
		noted []cache.Revision
		asked cache.Revision
		after bool
	}{
		"nothing is known":         {nil, "5", false},
		"an older state":           {[]cache.Revision{"10"}, "9", true},
		"the state of its going":   {[]cache.Revision{"10"}, "10", false},
		"a newer state":            {[]cache.Revision{"10"}, "11", false},
		"the newest counts":        {[]cache.Revision{"10", "8"}, "9", true},
		"revisions are no numbers": {[]cache.Revision{"x"}, "y", false},
	} {
		t.Run(name, func(t *testing.T) {
			var e ends
			for _, r := range test.noted {
				e.note(key, r)
			}
			if got := e.after(key, test.asked); got != test.after {
				t.Errorf("after %s: %v", test.asked, got)
			}
		})
	}
}

// TestEndsAreBounded: what all parts have passed is dropped, and so is everything
// if a part does not come along.
func TestEndsAreBounded(t *testing.T) {
	for name, lag := range map[string]int{"with a lag of a hundred": 100, "with a part that stays behind": 1 << 30} {
		t.Run(name, func(t *testing.T) {
			var e ends
			most := 0
			for i := range 100_000 {
				e.note(client.Key{Name: fmt.Sprint(i)}, cache.Revision(strconv.Itoa(i+1)))
				e.passed(cache.Revision(strconv.Itoa(max(1, i-lag))))
				most = max(most, len(e.at))
			}
			bound := 2*lag + 70
			if lag > maxEnds {
				bound = 2 * maxEnds
			}
			if most > bound {
				t.Errorf("%d are remembered, more than %d", most, bound)
			}
		})
	}
}
