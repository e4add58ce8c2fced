package workqueue

import "hash/maphash"

// table finds entries by key. It is there because a map hashes a key for each
// access, and while the queue's lock is held; here that is once, and before.
// Like a map it does not shrink.
type table[K comparable] struct {
	seed    maphash.Seed
	buckets []*entry[K] // chains, half of them empty; the length is a power of two
	n       int
}

// minBuckets is the least length of a table, which it starts with.
const minBuckets = 64

func newTable[K comparable]() table[K] {
	return table[K]{seed: maphash.MakeSeed(), buckets: make([]*entry[K], minBuckets)}
}

// hash needs no lock.
func (t *table[K]) hash(key K) uint64 { return maphash.Comparable(t.seed, key) }

func (t *table[K]) bucket(hash uint64) **entry[K] {
	return &t.buckets[hash&uint64(len(t.buckets)-1)]
}

// get returns the entry of a key, or nil.
func (t *table[K]) get(key K, hash uint64) *entry[K] {
	e := *t.bucket(hash)
	for e != nil && (e.hash != hash || e.key != key) {
		e = e.chain
	}
	return e
}

// put adds an entry whose key is not in the table.
func (t *table[K]) put(e *entry[K]) {
	if t.n >= len(t.buckets)/2 {
		t.resize(2 * len(t.buckets))
	}
	b := t.bucket(e.hash)
	e.chain, *b = *b, e
	t.n++
}

// remove takes out an entry that is in the table.
func (t *table[K]) remove(e *entry[K]) {
	p := t.bucket(e.hash)
	for *p != e {
		p = &(*p).chain
	}
	*p, e.chain = e.chain, nil
	t.n--
}

func (t *table[K]) resize(n int) {
	old := t.buckets
	t.buckets = make([]*entry[K], n)
	for _, e := range old {
		for e != nil {
			next := e.chain
			b := t.bucket(e.hash)
			e.chain, *b = *b, e
			e = next
		}
	}
}
