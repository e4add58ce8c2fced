package cache

import "slices"

// spare is by how many items a full slice grows: doubling would leave a third
// of a big tree empty.
const spare = 8

// own returns the node itself if this edit made it, else a copy that has room
// for extra items.
func (n *node[I]) own(e edit, extra int) *node[I] {
	if n.edit == e {
		return n
	}
	owned := newNode[I](e, len(n.items)+extra, n.kids != nil)
	owned.size = n.size
	owned.items = append(owned.items, n.items...)
	owned.kids = append(owned.kids, n.kids...)
	return owned
}

// leafRoom and innerRoom are nodes with room for all that they can ever hold, in
// one piece of memory.
type leafRoom[I any] struct {
	node[I]
	items [maxItems]I
}

type innerRoom[I any] struct {
	node[I]
	items [maxItems]I
	kids  [maxItems + 1]*node[I]
}

// newNode returns an empty node for so many items: in one piece if it will be
// nearly full, as most nodes of a big tree are, else with no more room than that.
func newNode[I any](e edit, items int, inner bool) *node[I] {
	nearlyFull := items > maxItems-spare
	switch {
	case nearlyFull && inner:
		room := &innerRoom[I]{}
		room.node = node[I]{edit: e, items: room.items[:0], kids: room.kids[:0]}
		return &room.node
	case nearlyFull:
		room := &leafRoom[I]{}
		room.node = node[I]{edit: e, items: room.items[:0]}
		return &room.node
	}
	n := &node[I]{edit: e, items: make([]I, 0, items)}
	if inner {
		n.kids = make([]*node[I], 0, items+1)
	}
	return n
}

// insertAt is slices.Insert of one value with slower growth.
func insertAt[V any](s []V, i int, v V) []V {
	if len(s) == cap(s) {
		grown := make([]V, len(s), len(s)+spare)
		copy(grown, s)
		s = grown
	}
	s = s[:len(s)+1]
	copy(s[i+1:], s[i:])
	s[i] = v
	return s
}

// place returns the item that the probe finds, to be written through, or nil.
// The pointer is good until the next change of the tree. The new item must
// compare as the old one did.
func (t *tree[I]) place(e edit, p probe[I]) *I {
	if t.root == nil {
		return nil
	}
	t.root = t.root.own(e, 0)
	for n := t.root; ; {
		i, found := n.search(p)
		if found {
			return &n.items[i]
		}
		if n.kids == nil {
			return nil
		}
		if n.kids[i].edit != e {
			n.kids[i] = n.kids[i].own(e, 0)
		}
		n = n.kids[i]
	}
}

// set puts an item, for which the probe looks, and returns the one it replaced.
func (t *tree[I]) set(e edit, item I, p probe[I]) (old I, replaced bool) {
	if at := t.place(e, p); at != nil {
		old, *at = *at, item
		return old, true
	}
	t.insert(e, item, p)
	return old, false
}

// insert adds an item that is not in the tree. Full nodes are split on the way
// down, so that there is room for what a split below sends up.
func (t *tree[I]) insert(e edit, item I, p probe[I]) {
	if t.root == nil {
		t.root = &node[I]{edit: e, size: 1, items: []I{item}}
		return
	}
	t.root = t.root.own(e, 1)
	if len(t.root.items) >= maxItems {
		t.root = &node[I]{edit: e, size: t.root.size, kids: []*node[I]{t.root}}
		t.root.splitKid(0, p)
	}
	for n := t.root; ; {
		n.size++
		i, _ := n.search(p)
		if n.kids == nil {
			n.items = insertAt(n.items, i, item)
			return
		}
		n.kids[i] = n.kids[i].own(e, 1)
		if len(n.kids[i].items) >= maxItems {
			n.splitKid(i, p)
			if p(n.items[i]) < 0 {
				i++
			}
		}
		n = n.kids[i]
	}
}

// splitKid halves the kid at i, which n owns. Where the new item goes behind all
// others the left half stays full: keys that come in order fill their nodes.
func (n *node[I]) splitKid(i int, p probe[I]) {
	kid := n.kids[i]
	at := len(kid.items) / 2
	if p(kid.items[len(kid.items)-1]) < 0 {
		at = len(kid.items) - 2
	}
	middle := kid.items[at]
	right := &node[I]{edit: kid.edit, items: slices.Clone(kid.items[at+1:])}
	left := &node[I]{edit: kid.edit, items: slices.Clone(kid.items[:at])}
	if kid.kids != nil {
		right.kids = slices.Clone(kid.kids[at+1:])
		left.kids = slices.Clone(kid.kids[:at+1])
	}
	left.count()
	right.count()
	n.items = insertAt(n.items, i, middle)
	n.kids[i] = left
	n.kids = insertAt(n.kids, i+1, right)
}

func (n *node[I]) count() {
	n.size = len(n.items)
	for _, kid := range n.kids {
		n.size += kid.size
	}
}

// delete takes out the item that the probe finds.
func (t *tree[I]) delete(e edit, p probe[I]) (old I, ok bool) {
	if old, ok = t.get(p); !ok {
		return old, false
	}
	t.root = t.root.own(e, 0)
	t.root.delete(e, p)
	switch {
	case t.root.size == 0:
		t.root = nil
	case len(t.root.items) == 0:
		t.root = t.root.kids[0]
	}
	return old, true
}

// delete takes out an item that is in the subtree of n, which e owns.
func (n *node[I]) delete(e edit, p probe[I]) {
	n.size--
	i, found := n.search(p)
	if n.kids == nil {
		n.items = slices.Delete(n.items, i, i+1)
		return
	}
	n.kids[i] = n.kids[i].own(e, 0)
	if found {
		n.items[i] = n.kids[i].deleteLast(e)
	} else {
		n.kids[i].delete(e, p)
	}
	n.fill(e, i)
}

func (n *node[I]) deleteLast(e edit) I {
	n.size--
	last := len(n.items) - 1
	if n.kids == nil {
		item := n.items[last]
		n.items = slices.Delete(n.items, last, last+1)
		return item
	}
	n.kids[last+1] = n.kids[last+1].own(e, 0)
	item := n.kids[last+1].deleteLast(e)
	n.fill(e, last+1)
	return item
}

// fill gives the kid at i items of a neighbour when it has few: the two become
// one if they fit, else they share evenly.
func (n *node[I]) fill(e edit, i int) {
	if len(n.kids[i].items) >= minItems {
		return
	}
	if i == len(n.items) {
		i--
	}
	left, right := n.kids[i], n.kids[i+1]
	both := &node[I]{edit: e, items: slices.Concat(left.items, []I{n.items[i]}, right.items)}
	if left.kids != nil {
		both.kids = slices.Concat(left.kids, right.kids)
	}
	both.count()
	n.kids[i] = both
	n.items = slices.Delete(n.items, i, i+1)
	n.kids = slices.Delete(n.kids, i+1, i+2)
	if len(both.items) >= maxItems {
		n.splitKid(i, func(I) int { return 1 })
	}
}

// buildTree makes a tree of items that are in order, with full nodes.
func buildTree[I any](e edit, items []I) tree[I] {
	if len(items) == 0 {
		return tree[I]{}
	}
	below := []int{0} // how many items a subtree of each height holds
	for below[len(below)-1] < len(items) {
		below = append(below, (below[len(below)-1]+1)*(maxItems+1)-1)
	}
	return tree[I]{root: buildNode(e, items, below[:len(below)-1])}
}

func buildNode[I any](e edit, items []I, below []int) *node[I] {
	n := &node[I]{edit: e, size: len(items)}
	room := below[len(below)-1]
	if room == 0 {
		n.items = slices.Clone(items)
		return n
	}
	kids := (len(items) + 1 + room) / (room + 1)
	n.items, n.kids = make([]I, 0, kids-1), make([]*node[I], 0, kids)
	for left := kids; left > 0; left-- {
		take := (len(items) - (left - 1)) / left
		n.kids = append(n.kids, buildNode(e, items[:take], below[:len(below)-1]))
		if items = items[take:]; left > 1 {
			n.items = append(n.items, items[0])
			items = items[1:]
		}
	}
	return n
}
