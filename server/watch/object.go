package watch

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/even-keel/evenkeel/storage"
)

// Key returns where an object is stored. Cluster-scoped ones have no namespace.
func Key(resource, namespace, name string) storage.Key {
	return storage.Key(resource + "/" + namespace + "/" + name)
}

// Prefix returns what the keys of a resource begin with.
func Prefix(resource string) storage.Key { return storage.Key(resource + "/") }

// splitKey takes a key apart; ok is false for keys that are no object's.
func splitKey(key storage.Key) (resource, namespace, name string, ok bool) {
	resource, rest, ok1 := strings.Cut(string(key), "/")
	namespace, name, ok2 := strings.Cut(rest, "/")
	return resource, namespace, name, ok1 && ok2
}

// Object is one object as it stood at one revision. It is immutable.
type Object struct {
	Namespace, Name string
	Revision        storage.Revision

	// The object's JSON is head, the revision in decimal, and tail.
	head, tail []byte
	version    string

	derived sync.Map // of what [Object.Derive] was asked for
}

// The stored form is one byte for the format, the length of head, head, tail. One
// with a note is another byte, the length of the note, the note, the stored form.
const (
	storedFormat = 1
	notedFormat  = 2
)

// Placeholder is the resourceVersion to encode an object with for [Stored]. It
// is random, so that nobody can put a second one into an object.
var Placeholder = rand.Text()

var quotedPlaceholder = []byte(`"resourceVersion":"` + Placeholder + `"`)

// Stored turns an object's JSON, with [Placeholder] as its resourceVersion,
// into the form in which it is stored.
func Stored(json []byte) ([]byte, error) {
	at := bytes.Index(json, quotedPlaceholder)
	if at < 0 {
		return nil, fmt.Errorf("the object has no place for its revision")
	}
	split := at + len(quotedPlaceholder) - len(Placeholder) - 1
	out := make([]byte, 0, len(json)+8)
	out = append(out, storedFormat)
	out = binary.AppendUvarint(out, uint64(split))
	out = append(out, json[:split]...)
	return append(out, json[split+len(Placeholder):]...), nil
}

// WithNote returns a stored form that has a note with it. It is no part of the
// object: [NoteOf] alone sees it.
func WithNote(stored, note []byte) []byte {
	out := make([]byte, 0, 1+binary.MaxVarintLen64+len(note)+len(stored))
	out = append(out, notedFormat)
	out = binary.AppendUvarint(out, uint64(len(note)))
	out = append(out, note...)
	return append(out, stored...)
}

// NoteOf returns the note of a stored value, nil if it has none.
func NoteOf(value []byte) []byte {
	note, _ := splitNote(value)
	return note
}

// splitNote takes the note off a stored value; rest is nil if it is malformed.
func splitNote(value []byte) (note, rest []byte) {
	if len(value) == 0 || value[0] != notedFormat {
		return nil, value
	}
	size, n := binary.Uvarint(value[1:])
	body := value[1+max(n, 0):]
	if n <= 0 || size > uint64(len(body)) {
		return nil, nil
	}
	return body[:size:size], body[size:]
}

// NewObject returns the object of a stored value.
func NewObject(key storage.Key, value []byte, rev storage.Revision) (*Object, error) {
	_, namespace, name, ok := splitKey(key)
	if !ok {
		return nil, fmt.Errorf("%q is no object's key: %w", key, storage.ErrCorrupt)
	}
	if _, value = splitNote(value); len(value) == 0 || value[0] != storedFormat {
		return nil, fmt.Errorf("%q is not stored in a form that this version reads: %w", key, storage.ErrCorrupt)
	}
	split, n := binary.Uvarint(value[1:])
	body := value[1+max(n, 0):]
	if n <= 0 || split > uint64(len(body)) {
		return nil, fmt.Errorf("%q is stored malformed: %w", key, storage.ErrCorrupt)
	}
	return &Object{
		Namespace: namespace, Name: name, Revision: rev,
		head: body[:split], tail: body[split:], version: strconv.FormatUint(uint64(rev), 10),
	}, nil
}

// At returns the object as if it had been written at another revision: what a
// deleted object looks like.
func (o *Object) At(rev storage.Revision) *Object {
	return &Object{
		Namespace: o.Namespace, Name: o.Name, Revision: rev,
		head: o.head, tail: o.tail, version: strconv.FormatUint(uint64(rev), 10),
	}
}

// Len is the length of the object's JSON.
func (o *Object) Len() int { return len(o.head) + len(o.version) + len(o.tail) }

// AppendJSON appends the object's JSON.
func (o *Object) AppendJSON(dst []byte) []byte {
	dst = append(dst, o.head...)
	dst = append(dst, o.version...)
	return append(dst, o.tail...)
}

// WriteJSON writes the object's JSON without its first skip bytes, which must
// come before the revision.
func (o *Object) WriteJSON(w io.Writer, skip int) error {
	if _, err := w.Write(o.head[skip:]); err != nil {
		return err
	}
	if _, err := io.WriteString(w, o.version); err != nil {
		return err
	}
	_, err := w.Write(o.tail)
	return err
}

// HasPrefix reports whether the object's JSON begins with prefix.
func (o *Object) HasPrefix(prefix []byte) bool { return bytes.HasPrefix(o.head, prefix) }

// Equal reports whether the object's JSON is the given one.
func (o *Object) Equal(json []byte) bool {
	return len(json) == o.Len() && bytes.HasPrefix(json, o.head) && bytes.HasSuffix(json, o.tail) &&
		string(json[len(o.head):len(json)-len(o.tail)]) == o.version
}

// Keep attaches a value to the object, in place of one kept under the same key.
// Kept returns it, or nil.
func (o *Object) Keep(key, value any) { o.derived.Store(key, value) }

// Kept returns what was last kept under a key.
func (o *Object) Kept(key any) any {
	v, _ := o.derived.Load(key)
	return v
}

// Forget drops what was kept or derived under a key, which may be derived again.
func (o *Object) Forget(key any) { o.derived.Delete(key) }

// Derive returns what make makes of the object, made once for each kind of key.
// Everybody shares it: it must not be changed.
func (o *Object) Derive(key any, make func(*Object) (any, error)) (any, error) {
	if v, ok := o.derived.Load(key); ok {
		return v, nil
	}
	v, err := make(o)
	if err != nil {
		return nil, err
	}
	v, _ = o.derived.LoadOrStore(key, v)
	return v, nil
}
