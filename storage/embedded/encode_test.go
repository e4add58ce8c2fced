package embedded

import (
	"bytes"
	"cmp"
	"testing"

	"github.com/even-keel/evenkeel/storage"
)

// FuzzVersionKeys checks that version keys sort by key, then newest first, and
// come apart again.
func FuzzVersionKeys(f *testing.F) {
	f.Add("", uint64(1), "\x00", uint64(1))
	f.Add("a", uint64(1), "a\x00", uint64(2))
	f.Add("a\x00\x01", uint64(1), "a\x00", uint64(1<<63))
	f.Add("a\xff", uint64(7), "a\xff\xff", uint64(7))
	f.Add("/pods/a", uint64(10), "/pods/a", uint64(9))
	f.Fuzz(func(t *testing.T, k1 string, r1 uint64, k2 string, r2 uint64) {
		v1 := appendVersion(nil, storage.Key(k1), storage.Revision(r1))
		v2 := appendVersion(nil, storage.Key(k2), storage.Revision(r2))
		if got, want := bytes.Compare(v1, v2), cmp.Or(cmp.Compare(k1, k2), cmp.Compare(r2, r1)); got != want {
			t.Errorf("%q@%d and %q@%d compare as %d, not %d", k1, r1, k2, r2, got, want)
		}
		shared, rev, err := splitVersion(v1)
		if err != nil || userKey(shared) != storage.Key(k1) || rev != storage.Revision(r1) {
			t.Errorf("%q@%d came back as %q@%d, %v", k1, r1, userKey(shared), rev, err)
		}
		prefix := appendPrefix(nil, storage.Key(k2))
		inside := bytes.Compare(v1, prefix) >= 0 && bytes.Compare(v1, prefixEnd(prefix)) < 0
		if has := len(k1) >= len(k2) && k1[:len(k2)] == k2; has != inside {
			t.Errorf("%q has prefix %q: %v; in its range: %v", k1, k2, has, inside)
		}
	})
}

// FuzzLogRecord feeds the parser anything, and itself what it wrote.
func FuzzLogRecord(f *testing.F) {
	f.Add([]byte{}, "", uint64(0), uint64(0), false)
	f.Add([]byte{0, 0x80}, "/k", uint64(3), uint64(99), true)
	f.Fuzz(func(t *testing.T, raw []byte, key string, prev, total uint64, deleted bool) {
		_, _ = parseLogRecord(raw)
		rec := logRecord{key: storage.Key(key), prev: storage.Revision(prev), total: total, deleted: deleted}
		if got, err := parseLogRecord(rec.append(nil)); err != nil || got != rec {
			t.Errorf("%+v came back as %+v, %v", rec, got, err)
		}
	})
}
