package embedded

import (
	"github.com/cockroachdb/pebble/v2"
)

// comparer orders keys by bytes, and tells Pebble which part of a version's key
// all versions share, so that its filters can rule out tables without a key.
var comparer = func() *pebble.Comparer {
	c := *pebble.DefaultComparer
	c.Name = "evenkeel.versions.1"
	c.Split = sharedBytes
	// Shortened keys would not split as versions do.
	c.Separator = func(dst, a, _ []byte) []byte { return append(dst, a...) }
	c.Successor = func(dst, a []byte) []byte { return append(dst, a...) }
	return &c
}()

// sharedBytes returns the length of the part that a version's key shares with
// the key's other versions; all of it for anything but a version. Because 0x00
// in a user key is followed by 0xff, the terminator is found where it is or
// nowhere.
func sharedBytes(key []byte) int {
	n := len(key) - revBytes
	if n < 1+endBytes || key[0] != valueSpace || key[n-2] != escape || key[n-1] != terminator {
		return len(key)
	}
	return n
}
