package etcd

import (
	"testing"

	"github.com/even-keel/evenkeel/storage"
)

func TestASpanHoldsTheKeysOfItsRange(t *testing.T) {
	s := &Store{prefix: "/p/"}
	for name, test := range map[string]struct {
		prefix, start storage.Key
		want          span
	}{
		"everything":                        {"", "", span{"/p/", "/p0"}},
		"a prefix":                          {"a/", "", span{"/p/a/", "/p/a0"}},
		"a start within the prefix":         {"a/", "a/b", span{"/p/a/b", "/p/a0"}},
		"a start at the prefix":             {"a/", "a/", span{"/p/a/", "/p/a0"}},
		"a start below the prefix":          {"b", "a", span{"/p/b", "/p/c"}},
		"a start that begins the prefix":    {"b/c", "b", span{"/p/b/c", "/p/b/d"}},
		"a prefix that ends in 0xff":        {"a\xff", "", span{"/p/a\xff", "/p/b"}},
		"a prefix of 0xff":                  {"\xff\xff", "", span{"/p/\xff\xff", "/p0"}},
		"a start within a prefix of 0xff":   {"\xff", "\xff\xff\x01", span{"/p/\xff\xff\x01", "/p0"}},
		"a prefix of zeros":                 {"\x00", "", span{"/p/\x00", "/p/\x01"}},
		"a start of zeros, where all count": {"", "\x00", span{"/p/\x00", "/p0"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := prefixSpan(s.name(test.prefix)).startAt(s.name(test.start))
			if got != test.want || got.empty() {
				t.Errorf("got %q, empty: %v; want %q", got, got.empty(), test.want)
			}
		})
	}
}

func TestASpanPastItsPrefixIsEmpty(t *testing.T) {
	s := &Store{prefix: "/p/"}
	for prefix, start := range map[storage.Key]storage.Key{
		"a/": "a0", "a": "b", "b": "\xff", "a\xff": "b\x00", "\x00": "\x01",
	} {
		if sp := prefixSpan(s.name(prefix)).startAt(s.name(start)); !sp.empty() {
			t.Errorf("prefix %q from %q: %q is not empty", prefix, start, sp)
		}
	}
}

func TestAChunkIsBoundedByKeysAndByBytes(t *testing.T) {
	for name, test := range map[string]struct{ bytes, n, want int }{
		"nothing seen":    {0, 0, maxChunk},
		"tiny values":     {1000, 100, maxChunk},
		"large values":    {100 << 20, 100, 4},
		"enormous values": {800 << 20, 100, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := chunkFor(test.bytes, test.n); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}
