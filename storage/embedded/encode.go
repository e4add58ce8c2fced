package embedded

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/even-keel/evenkeel/storage"
)

// Keys order by bytes. In a user key 0x00 becomes 0x00 0xff and the end is
// 0x00 0x01, so that a key sorts before all longer ones and no key's versions
// are split by another's. The revision follows inverted: newest first.
const (
	valueSpace = 'k'
	logSpace   = 'l'
	factSpace  = 'm'

	escape     = 0x00
	escaped00  = 0xff
	terminator = 0x01
	revBytes   = 8
	endBytes   = 2
)

var (
	layoutFact    = []byte{factSpace, 'l'}
	compactedFact = []byte{factSpace, 'c'}
	logStart      = []byte{logSpace}
	logEnd        = []byte{logSpace + 1}
	valueEnd      = []byte{valueSpace + 1}
)

// appendPrefix appends what all versions of all keys with the prefix begin with.
func appendPrefix(dst []byte, prefix storage.Key) []byte {
	dst = append(dst, valueSpace)
	for i := range len(prefix) {
		dst = append(dst, prefix[i])
		if prefix[i] == escape {
			dst = append(dst, escaped00)
		}
	}
	return dst
}

// appendVersion appends the key of one version. Seeking it finds the newest
// version at or below rev.
func appendVersion(dst []byte, key storage.Key, rev storage.Revision) []byte {
	dst = append(appendPrefix(dst, key), escape, terminator)
	return binary.BigEndian.AppendUint64(dst, ^uint64(rev))
}

// splitVersion takes the key of a version apart; key is the part that all
// versions of one user key share.
func splitVersion(raw []byte) (key []byte, rev storage.Revision, err error) {
	n := len(raw) - revBytes
	if n < 1+endBytes || raw[0] != valueSpace {
		return nil, 0, fmt.Errorf("malformed version key %x: %w", raw, storage.ErrCorrupt)
	}
	return raw[:n], storage.Revision(^binary.BigEndian.Uint64(raw[n:])), nil
}

// userKey undoes appendPrefix on the shared part of a version key.
func userKey(shared []byte) storage.Key {
	body := shared[1 : len(shared)-endBytes]
	if bytes.IndexByte(body, escape) < 0 {
		return storage.Key(body)
	}
	out := make([]byte, 0, len(body))
	for i := 0; i < len(body); i++ {
		out = append(out, body[i])
		if body[i] == escape {
			i++
		}
	}
	return storage.Key(out)
}

// prefixEnd returns the first byte string after all that begin with prefix.
// A prefix never consists of 0xff alone: it begins with a space byte.
func prefixEnd(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	for i := len(end) - 1; ; i-- {
		if end[i] != 0xff {
			end[i]++
			return end[:i+1]
		}
	}
}

// A version is its value behind one byte that tells a value from a tombstone, whose
// value is the note of the deletion.
const (
	valueMark     = 0
	tombstoneMark = 1
)

func appendValue(dst []byte, w storage.Write) []byte {
	mark := byte(valueMark)
	if w.Delete {
		mark = tombstoneMark
	}
	return append(append(dst, mark), w.Value...)
}

func splitValue(raw []byte) (value []byte, tombstone bool, err error) {
	if len(raw) == 0 || raw[0] > tombstoneMark {
		return nil, false, fmt.Errorf("malformed value: %w", storage.ErrCorrupt)
	}
	return raw[1:], raw[0] == tombstoneMark, nil
}

func logKey(rev storage.Revision) []byte {
	return binary.BigEndian.AppendUint64([]byte{logSpace}, uint64(rev))
}

func logRevision(raw []byte) (storage.Revision, error) {
	if len(raw) != 1+revBytes || raw[0] != logSpace {
		return 0, fmt.Errorf("malformed log key %x: %w", raw, storage.ErrCorrupt)
	}
	return storage.Revision(binary.BigEndian.Uint64(raw[1:])), nil
}

// logRecord says what one revision did.
type logRecord struct {
	key storage.Key
	// prev is the revision that it replaced or removed; zero for none.
	prev    storage.Revision
	deleted bool
	// total counts the bytes of all events ever, this one included.
	total uint64
}

func (r logRecord) append(dst []byte) []byte {
	mark := byte(valueMark)
	if r.deleted {
		mark = tombstoneMark
	}
	dst = append(dst, mark)
	dst = binary.AppendUvarint(dst, uint64(r.prev))
	dst = binary.AppendUvarint(dst, r.total)
	return append(dst, r.key...)
}

func parseLogRecord(raw []byte) (logRecord, error) {
	key, deleted, err := splitValue(raw)
	if err != nil {
		return logRecord{}, err
	}
	r := logRecord{deleted: deleted}
	for _, field := range []*uint64{(*uint64)(&r.prev), &r.total} {
		v, n := binary.Uvarint(key)
		if n <= 0 {
			return logRecord{}, fmt.Errorf("malformed log record: %w", storage.ErrCorrupt)
		}
		*field, key = v, key[n:]
	}
	r.key = storage.Key(key)
	return r, nil
}

// eventBytes is what an event counts for in the history's budget.
func eventBytes(w storage.Write) uint64 {
	const bookkeeping = 32
	return uint64(len(w.Key) + len(w.Value) + bookkeeping)
}

// mark is a revision and the log's running total there.
type mark struct {
	rev   storage.Revision
	total uint64
}

func (m mark) encode() []byte {
	out := binary.BigEndian.AppendUint64(nil, uint64(m.rev))
	return binary.BigEndian.AppendUint64(out, m.total)
}

func parseMark(raw []byte) (mark, error) {
	if len(raw) != 2*revBytes {
		return mark{}, fmt.Errorf("malformed compaction mark: %w", storage.ErrCorrupt)
	}
	return mark{
		rev:   storage.Revision(binary.BigEndian.Uint64(raw)),
		total: binary.BigEndian.Uint64(raw[revBytes:]),
	}, nil
}
