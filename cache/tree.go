package cache

import "sync/atomic"

// maxItems bounds the items of one node. Docs/adr/0011 has the figures.
const (
	maxItems = 31
	minItems = maxItems / 4
)

// tree is a persistent B-tree. It is a value: a copy of it is a snapshot that
// never changes, whatever is done to the original.
//
// Invariants: items are in strict order, all leaves are equally deep, size
// counts the items of a subtree, and a node is written only by the edit that
// made it. An edit is a number that one writer takes for one batch; nodes of
// older edits are copied before they are changed, those of its own are changed
// in place, so that a batch copies every node at most once. A finished edit's
// number is never used again, which is what makes published nodes immutable.
//
// The tree knows no order. Each operation takes a probe, which compares an item
// with what is looked for; so a look-up by key needs no item to compare with.
type tree[I any] struct {
	root *node[I]
}

type node[I any] struct {
	edit  edit
	size  int
	items []I
	kids  []*node[I] // none in a leaf, else one more than items
}

// edit names a batch of changes.
type edit uint64

var lastEdit atomic.Uint64

func newEdit() edit { return edit(lastEdit.Add(1)) }

// probe says where an item lies from what is looked for: below 0 before it,
// 0 at it, above 0 behind it.
type probe[I any] func(item I) int

func (t tree[I]) len() int {
	if t.root == nil {
		return 0
	}
	return t.root.size
}

// search returns the first place whose item does not lie before the target, and
// whether it is the target.
func (n *node[I]) search(p probe[I]) (int, bool) {
	low, high := 0, len(n.items)
	for low < high {
		mid := int(uint(low+high) >> 1)
		switch c := p(n.items[mid]); {
		case c == 0:
			return mid, true
		case c < 0:
			low = mid + 1
		default:
			high = mid
		}
	}
	return low, false
}

func (t tree[I]) get(p probe[I]) (item I, ok bool) {
	for n := t.root; n != nil; {
		i, found := n.search(p)
		if found {
			return n.items[i], true
		}
		if n.kids == nil {
			break
		}
		n = n.kids[i]
	}
	return item, false
}

// rank counts the items that lie before the target.
func (t tree[I]) rank(p probe[I]) int {
	before := 0
	for n := t.root; n != nil; {
		i, found := n.search(p)
		before += i
		if n.kids == nil {
			break
		}
		for _, kid := range n.kids[:i] {
			before += kid.size
		}
		if found {
			before += n.kids[i].size
			break
		}
		n = n.kids[i]
	}
	return before
}

// ascend yields the items that do not lie before the target, in order.
func (t tree[I]) ascend(p probe[I], yield func(I) bool) bool {
	return t.root == nil || t.root.ascend(p, yield)
}

func (n *node[I]) ascend(p probe[I], yield func(I) bool) bool {
	if p == nil {
		return n.all(yield)
	}
	i, found := n.search(p)
	if n.kids != nil && !found && !n.kids[i].ascend(p, yield) {
		return false
	}
	return n.allFrom(i, yield)
}

func (n *node[I]) all(yield func(I) bool) bool {
	if n.kids != nil && !n.kids[0].all(yield) {
		return false
	}
	return n.allFrom(0, yield)
}

// allFrom yields the item at i and all that follow it in the subtree.
func (n *node[I]) allFrom(i int, yield func(I) bool) bool {
	for ; i < len(n.items); i++ {
		if !yield(n.items[i]) {
			return false
		}
		if n.kids != nil && !n.kids[i+1].all(yield) {
			return false
		}
	}
	return true
}

// descend yields the items that lie before the target, from the last to the
// first; without a probe, all.
func (t tree[I]) descend(p probe[I], yield func(I) bool) bool {
	return t.root == nil || t.root.descend(p, yield)
}

func (n *node[I]) descend(p probe[I], yield func(I) bool) bool {
	i, found := len(n.items), false
	if p != nil {
		i, found = n.search(p)
	}
	if n.kids != nil {
		rest := p
		if found {
			rest = nil // all below the item's left kid lies before it
		}
		if !n.kids[i].descend(rest, yield) {
			return false
		}
	}
	for i--; i >= 0; i-- {
		if !yield(n.items[i]) {
			return false
		}
		if n.kids != nil && !n.kids[i].descend(nil, yield) {
			return false
		}
	}
	return true
}
