package garbage

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestDecide(t *testing.T) {
	const background, inForeground, leaving = metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan
	of := func(states ...ownerState) (out []owner) {
		for i, s := range states {
			out = append(out, owner{uid: types.UID(fmt.Sprint(i)), state: s})
		}
		return out
	}
	unheard := []owner{{uid: "0", unheard: true}}
	for name, test := range map[string]struct {
		seen seen
		want plan
	}{
		"no owners":                          {seen{}, plan{}},
		"an owner":                           {seen{owners: of(solid)}, plan{}},
		"an owner of which no event told":    {seen{owners: unheard}, plan{verb: later}},
		"no owner is left":                   {seen{owners: of(absent, absent)}, plan{verb: remove, policy: background}},
		"none is left, and it is to orphan":  {seen{owners: of(absent), orphaning: true}, plan{verb: remove, policy: leaving}},
		"none is left, and it is to wait":    {seen{owners: of(absent), foreground: true}, plan{verb: remove, policy: inForeground}},
		"one of two is left":                 {seen{owners: of(absent, solid)}, plan{verb: drop, uids: []types.UID{"0"}}},
		"one goes, one waits, one is left":   {seen{owners: of(absent, waiting, solid)}, plan{verb: drop, uids: []types.UID{"0", "1"}}},
		"its owner waits":                    {seen{owners: of(waiting)}, plan{verb: remove, policy: background}},
		"its owner waits, and it owns":       {seen{owners: of(waiting), dependents: true}, plan{verb: remove, policy: inForeground}},
		"owners in a circle":                 {seen{owners: of(waiting), dependents: true, circle: true}, plan{verb: remove, unblock: true, policy: inForeground}},
		"its owner left it behind":           {seen{owners: of(released)}, plan{verb: drop, uids: []types.UID{"0"}}},
		"an owner of no known kind":          {seen{owners: of(absent, unknown)}, plan{verb: later}},
		"an owner in a namespace it is not":  {seen{owners: of(absent, misplaced)}, plan{}},
		"deleted already":                    {seen{deleting: true, owners: of(absent)}, plan{}},
		"orphans":                            {seen{deleting: true, orphaning: true}, plan{verb: orphan}},
		"orphans, but not all is known":      {seen{deleting: true, orphaning: true, unsettled: true}, plan{verb: later}},
		"foreground, blocked":                {seen{deleting: true, foreground: true, blocked: true}, plan{}},
		"foreground, blocked by news":        {seen{deleting: true, foreground: true, blocked: true, unheard: true}, plan{verb: later}},
		"foreground, free":                   {seen{deleting: true, foreground: true}, plan{verb: finish}},
		"foreground, but not all is known":   {seen{deleting: true, foreground: true, unsettled: true}, plan{verb: later}},
		"deleted, for whom others are to go": {seen{deleting: true, blocked: true, unsettled: true}, plan{}},
	} {
		if got := decide(test.seen); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

// TestDecisionsAreSafe checks what must be true of whatever is decided.
func TestDecisionsAreSafe(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	flip := func() bool { return r.IntN(2) == 0 }
	for range 100_000 {
		s := seen{deleting: flip(), orphaning: flip(), foreground: flip(), dependents: flip(), circle: flip(), blocked: flip(), unheard: flip(), unsettled: flip()}
		for i := range r.IntN(4) {
			s.owners = append(s.owners, owner{uid: types.UID(fmt.Sprint(i)), state: ownerState(r.IntN(6)), unheard: flip()})
		}
		if problem := unsafe(s, decide(s)); problem != "" {
			t.Fatalf("%s: of %+v came %+v", problem, s, decide(s))
		}
	}
}

func unsafe(s seen, p plan) string {
	state := map[types.UID]ownerState{}
	all := func(wanted ...ownerState) bool {
		return !slices.ContainsFunc(s.owners, func(o owner) bool { return !slices.Contains(wanted, o.state) })
	}
	for _, o := range s.owners {
		state[o.uid] = o.state
	}
	switch p.verb {
	case remove:
		switch {
		case s.deleting || len(s.owners) == 0 || !all(absent, waiting):
			return "deletes what has an owner"
		case p.unblock && !s.circle:
			return "lets an owner go first without need"
		}
	case drop:
		for _, uid := range p.uids {
			if st := state[uid]; st != absent && st != waiting && st != released {
				return "removes a reference that is good"
			}
		}
		if len(p.uids) == 0 {
			return "changes nothing"
		}
	case finish:
		if !s.deleting || !s.foreground || s.blocked || s.unsettled {
			return "does not wait for dependents"
		}
	case orphan:
		if !s.deleting || !s.orphaning || s.unsettled {
			return "orphans without being asked"
		}
	case nothing:
		if !s.deleting && len(s.owners) > 0 && all(absent, waiting) {
			return "leaves garbage"
		}
	}
	return ""
}

func TestRecentForgetsTheOldest(t *testing.T) {
	var r recent
	of := func(i int) claim { return claim{uid: types.UID(fmt.Sprint(i))} }
	for i := range recentSize + 10 {
		r.add(of(i))
		r.add(of(i))
	}
	if len(r.all) != recentSize || r.has(of(9)) || !r.has(of(10)) || !r.has(of(recentSize+9)) {
		t.Errorf("%d are remembered; the tenth: %t, the eleventh: %t", len(r.all), r.has(of(9)), r.has(of(10)))
	}
}
