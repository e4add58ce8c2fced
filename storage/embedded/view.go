package embedded

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/even-keel/evenkeel/storage"
)

// view reads the state of all keys at one revision.
type view struct {
	iter *pebble.Iterator
	at   storage.Revision
	seek []byte
}

// view opens the state at a revision; zero means the newest. Close it.
func (s *Store) view(at storage.Revision) (*view, error) {
	for {
		head := s.tail.head()
		rev := at
		if rev == 0 {
			rev = head
		}
		if rev > head {
			return nil, fmt.Errorf("revision %d, the newest is %d: %w", rev, head, storage.ErrFuture)
		}
		iter, err := s.db.NewIter(&pebble.IterOptions{UpperBound: valueEnd})
		if err != nil {
			return nil, s.diskError(err)
		}
		// After the iterator, see the invariants in doc.go.
		if compacted := s.compactedRevision(); rev < compacted {
			_ = iter.Close()
			if at == 0 {
				continue // the head moved on, and so did compaction
			}
			return nil, compactedError(rev, compacted)
		}
		return &view{iter: iter, at: rev}, nil
	}
}

func compactedError(rev, compacted storage.Revision) error {
	return fmt.Errorf("revision %d, the oldest kept is %d: %w", rev, compacted, storage.ErrCompacted)
}

func (v *view) close() { _ = v.iter.Close() }

// get returns the key's entry, the zero one if it does not exist. Its value is
// the iterator's until the next call.
func (v *view) get(key storage.Key) (storage.Entry, error) {
	v.seek = appendVersion(v.seek[:0], key, v.at)
	if !v.iter.SeekPrefixGE(v.seek) {
		return storage.Entry{}, v.iter.Error()
	}
	_, rev, err := splitVersion(v.iter.Key())
	if err != nil {
		return storage.Entry{}, err
	}
	value, tombstone, err := v.value()
	if err != nil || tombstone {
		return storage.Entry{}, err
	}
	return storage.Entry{Key: key, Value: value, Revision: rev}, nil
}

func (v *view) value() ([]byte, bool, error) {
	raw, err := v.iter.ValueAndErr()
	if err != nil {
		return nil, false, err
	}
	return splitValue(raw)
}

// scan calls visit for every entry from start on with the prefix, in order,
// until visit returns false. The entry's value is the iterator's.
func (v *view) scan(prefix, start storage.Key, visit func(storage.Entry) bool) error {
	lower := appendPrefix(nil, prefix)
	v.iter.SetBounds(lower, prefixEnd(lower))
	v.seek = append(v.seek[:0], lower...)
	if start > prefix {
		v.seek = append(appendPrefix(v.seek[:0], start), escape, terminator)
	}
	for ok := v.iter.SeekGE(v.seek); ok; {
		shared, rev, err := splitVersion(v.iter.Key())
		if err != nil {
			return err
		}
		v.seek = append(v.seek[:0], shared...)
		if rev > v.at {
			ok = v.iter.SeekGE(binary.BigEndian.AppendUint64(v.seek, ^uint64(v.at)))
			continue
		}
		value, tombstone, err := v.value()
		if err != nil {
			return err
		}
		if !tombstone && !visit(storage.Entry{Key: userKey(shared), Value: value, Revision: rev}) {
			return nil
		}
		ok = v.skip(v.seek)
	}
	return v.iter.Error()
}

// skip moves past the remaining versions of a key: most have few.
func (v *view) skip(shared []byte) bool {
	for range 4 {
		if !v.iter.Next() {
			return false
		}
		if !bytes.HasPrefix(v.iter.Key(), shared) {
			return true
		}
	}
	return v.iter.SeekGE(prefixEnd(shared))
}
