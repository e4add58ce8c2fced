package cache

import "unsafe"

// Stats say what a store holds. Bytes are estimates, to be watched over time.
type Stats struct {
	Objects int
	// ObjectBytes is the memory of the objects, each without what it had in
	// common with objects that were stored before it. Objects kept AsIs count by
	// their encoded size, or not at all if they do not know it.
	ObjectBytes int
	// TreeBytes is the memory of the trees: objects by key, and the indexes.
	TreeBytes int
	// InternerBytes is the memory of the interner's tables, which stores may
	// share, without the values.
	InternerBytes int
	// Labels and Indexes have one value per label key, and per index.
	Labels, Indexes map[string]IndexStats
}

// Bytes is the sum of all.
func (s Stats) Bytes() int { return s.ObjectBytes + s.TreeBytes + s.InternerBytes }

// IndexStats say how big an index is.
type IndexStats struct {
	Values  int // different ones
	Entries int // how many times an object has a value
}

// Stats walks the indexes, not the objects.
func (s *Store[T]) Stats() Stats {
	r := s.current()
	stats := Stats{
		Objects:       r.objects.len(),
		ObjectBytes:   r.bytes + r.objects.len()*int(unsafe.Sizeof(entry{})+unsafe.Sizeof(ident{})),
		TreeBytes:     treeBytes(r.objects) + treeBytes(r.terms),
		InternerBytes: s.opts.Interner.tableBytes(),
		Labels:        map[string]IndexStats{},
		Indexes:       map[string]IndexStats{},
	}
	for _, x := range r.indexes {
		stats.Indexes[x.name] = IndexStats{}
	}
	r.terms.ascend(nil, func(b bucket) bool {
		of := stats.Labels
		if b.term.kind == indexTerm {
			of = stats.Indexes
		}
		n := of[b.term.field]
		n.Values, n.Entries = n.Values+1, n.Entries+b.set.len()
		of[b.term.field] = n
		// Each object points to its terms besides.
		stats.TreeBytes += treeBytes(b.set) + int(unsafe.Sizeof(term{})) + 8*b.set.len()
		return true
	})
	return stats
}

func treeBytes[I any](t tree[I]) int {
	if t.root == nil {
		return 0
	}
	return t.root.bytes()
}

func (n *node[I]) bytes() int {
	var item I
	total := int(unsafe.Sizeof(*n)) + cap(n.items)*int(unsafe.Sizeof(item)) + cap(n.kids)*8
	for _, kid := range n.kids {
		total += kid.bytes()
	}
	return total
}

func (in *Interner) tableBytes() int {
	total := 0
	for _, one := range in.all {
		one.mu.Lock()
		total += tableSize(&one.strings) + tableSize(&one.parts) + tableSize(&one.maps)
		one.mu.Unlock()
	}
	return total
}

func tableSize[V any](t *table[V]) int {
	return len(t.slots) * int(unsafe.Sizeof(slot[V]{}))
}
