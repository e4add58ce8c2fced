package workqueue

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestListIsAQueueWithGaps compares a list with a slice, from which entries go at
// the front, at the back and between.
func TestListIsAQueueWithGaps(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	l := list[int]{by: byAge}
	var want []*entry[int]
	for step := range 100_000 {
		if n := len(want); n == 0 || n < 20 && random.IntN(2) == 0 {
			e := &entry[int]{key: step}
			l.push(e)
			want = append(want, e)
		} else {
			i := []int{0, n - 1, random.IntN(n)}[random.IntN(3)]
			l.remove(want[i])
			want = slices.Delete(want, i, i+1)
		}
		var got []*entry[int]
		for e := l.front; e != nil; e = e.age.next {
			got = append(got, e)
		}
		if !slices.Equal(got, want) || l.n != len(want) || l.back != last(want) {
			t.Fatalf("seed %d, step %d: %d entries of %d", seed, step, len(got), len(want))
		}
	}
}

func last(all []*entry[int]) *entry[int] {
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1]
}

// TestRunnersAreListedByAge, whichever slots they have.
func TestRunnersAreListedByAge(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	var r runners[int]
	var want []*entry[int]
	for run := range uint64(10_000) {
		if n := len(want); n == 0 || n < 8 && random.IntN(2) == 0 {
			e := &entry[int]{run: run}
			r.add(e)
			want = append(want, e)
		} else {
			i := random.IntN(n)
			r.remove(want[i])
			want = slices.Delete(want, i, i+1)
		}
		if !slices.Equal(r.byAge(), want) || r.len() != len(want) {
			t.Fatalf("seed %d, run %d: %d run, want %d", seed, run, r.len(), len(want))
		}
		if first := r.oldest(); len(want) > 0 && first != want[0] || len(want) == 0 && first != nil {
			t.Fatalf("seed %d, run %d: not the oldest", seed, run)
		}
		if len(r.slots) > 8 {
			t.Fatalf("seed %d, run %d: %d slots for 8", seed, run, len(r.slots))
		}
	}
}
