package workqueue

import "testing"

// TestTableKeepsKeysOfOneHash apart, through growth and removal.
func TestTableKeepsKeysOfOneHash(t *testing.T) {
	const n = 3 * minBuckets
	tab := newTable[int]()
	for i := range n {
		tab.put(&entry[int]{key: i, hash: uint64(i % 2)})
	}
	for i := range n {
		if i%3 == 0 {
			tab.remove(tab.get(i, uint64(i%2)))
		}
	}
	for i := range n {
		e := tab.get(i, uint64(i%2))
		if found := e != nil && e.key == i; found == (i%3 == 0) {
			t.Errorf("key %d: found %v", i, e)
		}
	}
	if tab.n != n-n/3 {
		t.Errorf("%d keys, want %d", tab.n, n-n/3)
	}
}
