package cache

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// seeded returns a generator whose seed is in the log of a failed test.
func seeded(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func at(n int) probe[int] { return func(item int) int { return cmp.Compare(item, n) } }

func TestTreeIsASortedSetWhoseCopiesNeverChange(t *testing.T) {
	random := seeded(t)
	type copied struct {
		tree tree[int]
		want []int
	}
	var (
		now    tree[int]
		model  []int
		copies []copied
		batch  = newEdit()
	)
	for step := range 40_000 {
		n := random.IntN(4000)
		i, has := slices.BinarySearch(model, n)
		growing := step/8000%2 == 0
		if (random.IntN(4) > 0) == growing {
			if _, replaced := now.set(batch, n, at(n)); replaced != has {
				t.Fatalf("set %d replaced: %t", n, replaced)
			}
			if !has {
				model = slices.Insert(model, i, n)
			}
		} else {
			if _, ok := now.delete(batch, at(n)); ok != has {
				t.Fatalf("delete %d found it: %t", n, ok)
			}
			if has {
				model = slices.Delete(model, i, i+1)
			}
		}
		if random.IntN(50) == 0 {
			batch = newEdit()
			if random.IntN(10) == 0 {
				copies = append(copies, copied{now, slices.Clone(model)})
			}
		}
	}
	copies = append(copies, copied{now, model})
	for _, c := range copies {
		checkTree(t, c.tree, c.want)
	}
}

func TestTreeIsBuiltFromAnyNumberOfItems(t *testing.T) {
	for n := range 3000 {
		items := make([]int, n)
		for i := range items {
			items[i] = i * 2
		}
		checkTree(t, buildTree(newEdit(), items), items)
	}
}

func TestTreeIsDenseWhenKeysComeInOrder(t *testing.T) {
	var now tree[int]
	e := newEdit()
	const items = 10_000
	for i := range items {
		now.set(e, i, at(i))
	}
	if nodes := countNodes(now.root); nodes > items/maxItems*12/10 {
		t.Errorf("%d items lie in %d nodes of %d", items, nodes, maxItems)
	}
}

func countNodes(n *node[int]) int {
	total := 1
	for _, kid := range n.kids {
		total += countNodes(kid)
	}
	return total
}

// checkTree compares all ways to read a tree with a sorted slice.
func checkTree(t *testing.T, got tree[int], want []int) {
	t.Helper()
	if got.root != nil {
		checkNode(t, got.root, true)
	}
	if got.len() != len(want) {
		t.Fatalf("len %d, want %d", got.len(), len(want))
	}
	for _, from := range []int{-1, 0, 1, 777, 1024, 3999, 5000} {
		i, has := slices.BinarySearch(want, from)
		if _, ok := got.get(at(from)); ok != has {
			t.Fatalf("get %d: %t", from, ok)
		}
		if rank := got.rank(at(from)); rank != i {
			t.Fatalf("rank of %d is %d, want %d", from, rank, i)
		}
		if up := collectInts(got.ascend, at(from)); !slices.Equal(up, want[i:]) {
			t.Fatalf("ascend from %d: %v, want %v", from, up, want[i:])
		}
		down := collectInts(got.descend, at(from))
		if slices.Reverse(down); !slices.Equal(down, want[:i]) {
			t.Fatalf("descend from %d: %v, want %v", from, down, want[:i])
		}
	}
	if all := collectInts(got.ascend, nil); !slices.Equal(all, want) {
		t.Fatalf("all: %v, want %v", all, want)
	}
}

func collectInts(walk func(probe[int], func(int) bool) bool, p probe[int]) (out []int) {
	walk(p, func(n int) bool {
		out = append(out, n)
		return true
	})
	return out
}

// checkNode checks the invariants and returns the height.
func checkNode(t *testing.T, n *node[int], root bool) int {
	t.Helper()
	if len(n.items) > maxItems || len(n.items) == 0 && !root {
		t.Fatalf("a node has %d items", len(n.items))
	}
	if n.kids == nil {
		if n.size != len(n.items) {
			t.Fatalf("a leaf of %d items says %d", len(n.items), n.size)
		}
		return 0
	}
	if len(n.kids) != len(n.items)+1 {
		t.Fatalf("a node has %d items and %d kids", len(n.items), len(n.kids))
	}
	size, height := len(n.items), checkNode(t, n.kids[0], false)
	for _, kid := range n.kids {
		size += kid.size
		if h := checkNode(t, kid, false); h != height {
			t.Fatalf("leaves at height %d and %d", h, height)
		}
	}
	if n.size != size {
		t.Fatalf("a subtree of %d items says %d", size, n.size)
	}
	return height + 1
}
