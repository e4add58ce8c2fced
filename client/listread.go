package client

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// listReader takes a list apart while it arrives: of the list, it holds no more
// than one item.
type listReader interface {
	// next appends an item to into; io.EOF is after the last.
	next(into []byte) ([]byte, error)
	// about is what the list says of itself, once it has been read.
	about() *listHead
}

// listHead is a list without its items.
type listHead struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
}

func newListReader(e Encoding, from io.Reader) listReader {
	if e == Protobuf {
		return &protoList{from: bufio.NewReaderSize(from, scanBuffer)}
	}
	return &jsonList{scanner: newScanner(from, scanBuffer)}
}

// jsonList reads {"kind":..., "metadata":{...}, "items":[...]} in any order.
type jsonList struct {
	*scanner
	head    listHead
	state   listState
	started bool // the object, or the array of items, has had an element
}

type listState uint8

const (
	beforeList listState = iota
	inFields
	inItems
	afterList
)

func (l *jsonList) about() *listHead { return &l.head }

func (l *jsonList) next(into []byte) ([]byte, error) {
	for {
		switch l.state {
		case beforeList:
			if err := l.expect('{'); err != nil {
				return into, err
			}
			l.state = inFields
		case inFields:
			if err := l.readField(); err != nil {
				return into, err
			}
		case inItems:
			more, err := l.element()
			if err != nil {
				return into, err
			}
			if more {
				return l.value(into)
			}
			l.state, l.started = inFields, true
		case afterList:
			return into, io.EOF
		}
	}
}

// element goes to the next item; at the end of the array it is past it.
func (l *jsonList) element() (more bool, err error) {
	c, err := l.peek()
	if err != nil {
		return false, cut(err)
	}
	if c == ']' {
		l.at++
		return false, nil
	}
	if l.started {
		err = l.expect(',')
	}
	l.started = true
	return true, err
}

func (l *jsonList) readField() error {
	name, more, err := l.field(!l.started)
	if err != nil {
		return err
	}
	l.started = true
	if !more {
		l.state = afterList
		return nil
	}
	switch string(name) {
	case "items":
		return l.openItems()
	case "metadata":
		return l.read(&l.head.ListMeta)
	case "kind":
		return l.read(&l.head.Kind)
	case "apiVersion":
		return l.read(&l.head.APIVersion)
	}
	return l.skip()
}

func (l *jsonList) openItems() error {
	c, err := l.peek()
	if err != nil {
		return cut(err)
	}
	if c != '[' {
		return l.skip() // null
	}
	l.at++
	l.state, l.started = inItems, false
	return nil
}

func (s *scanner) read(into any) error {
	data, err := s.value(nil)
	if err != nil {
		return err
	}
	if err := decodeJSON(data, into); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}

// protoList reads an envelope around a message of which field 1 is the metadata
// and each field 2 an item; all lists of Kubernetes are so.
type protoList struct {
	from  *bufio.Reader
	head  listHead
	state listState
	// left is how much of the list's message has not been read; seen says that
	// it has begun.
	left int64
	seen bool
}

func (l *protoList) about() *listHead { return &l.head }

func (l *protoList) next(into []byte) ([]byte, error) {
	for {
		switch l.state {
		case beforeList:
			if err := l.open(); err != nil {
				return into, err
			}
		case inFields: // of the envelope
			if err := l.envelopeField(); err != nil {
				return into, err
			}
		case inItems:
			if l.left <= 0 {
				l.state = inFields
				continue
			}
			item, found, err := l.listField(into)
			if found || err != nil {
				return item, err
			}
		case afterList:
			return into, io.EOF
		}
	}
}

func (l *protoList) open() error {
	var start [len(magic)]byte
	if _, err := io.ReadFull(l.from, start[:]); err != nil {
		return cut(err)
	}
	if string(start[:]) != magic {
		return fmt.Errorf("%w: protobuf without its first bytes", ErrMalformed)
	}
	l.state = inFields
	return nil
}

func (l *protoList) envelopeField() error {
	field, size, _, err := l.tag()
	if errors.Is(err, io.EOF) && l.seen {
		l.state = afterList
		return nil
	}
	if err != nil {
		return cut(err)
	}
	switch field {
	case 1:
		data, err := readBytes(l.from, nil, size)
		if err != nil {
			return err
		}
		m, err := typeMetaOf(data)
		l.head.APIVersion, l.head.Kind = m.APIVersion, m.Kind
		return err
	case 2:
		l.left, l.state, l.seen = size, inItems, true
		return nil
	}
	return discard(l.from, size)
}

// listField reads one field of the list; found says that it was an item.
func (l *protoList) listField(into []byte) (item []byte, found bool, err error) {
	field, size, n, err := l.tag()
	if err != nil {
		return into, false, cut(err)
	}
	if l.left -= n + size; l.left < 0 {
		return into, false, fmt.Errorf("%w: protobuf: a field longer than its list", ErrMalformed)
	}
	switch field {
	case 1:
		data, err := readBytes(l.from, nil, size)
		if err == nil {
			err = l.head.ListMeta.Unmarshal(data)
		}
		return into, false, err
	case 2:
		item, err = readBytes(l.from, into, size)
		return item, true, err
	}
	return into, false, discard(l.from, size)
}

// tag reads the start of a field, and how long its value is. Values that are not
// bytes are read and count as empty. io.EOF is only before a field.
func (l *protoList) tag() (field protowire.Number, size, read int64, err error) {
	counted := &countedReader{from: l.from}
	tag, err := binary.ReadUvarint(counted)
	if err != nil {
		if counted.n > 0 {
			err = cut(err)
		}
		return 0, 0, 0, err
	}
	field, kind := protowire.DecodeTag(tag)
	if kind == protowire.BytesType {
		var u uint64
		u, err = binary.ReadUvarint(counted)
		if err == nil && u > maxList {
			err = fmt.Errorf("%w: protobuf: a length of %d", ErrMalformed, u)
		}
		return field, int64(u), counted.n, cut(err)
	}
	return 0, 0, counted.n, cut(counted.skip(kind))
}

// maxList is more than any list can have.
const maxList = 1 << 48

// countedReader reads single bytes and counts them.
type countedReader struct {
	from *bufio.Reader
	n    int64
}

func (c *countedReader) ReadByte() (byte, error) {
	b, err := c.from.ReadByte()
	if err == nil {
		c.n++
	}
	return b, err
}

func (c *countedReader) skip(kind protowire.Type) error {
	size := 0
	switch kind {
	case protowire.VarintType:
		_, err := binary.ReadUvarint(c)
		return err
	case protowire.Fixed32Type:
		size = 4
	case protowire.Fixed64Type:
		size = 8
	default:
		return fmt.Errorf("%w: protobuf: wire type %d", ErrMalformed, kind)
	}
	n, err := c.from.Discard(size)
	c.n += int64(n)
	return err
}

func discard(r *bufio.Reader, size int64) error {
	_, err := io.CopyN(io.Discard, r, size)
	return cut(err)
}

// readBytes appends size bytes to into. What a length claims is not believed:
// memory grows as bytes arrive.
func readBytes(r *bufio.Reader, into []byte, size int64) ([]byte, error) {
	if size > MaxObject {
		return into, ErrTooLarge
	}
	for size > 0 {
		n := int(min(size, scanBuffer))
		start := len(into)
		into = append(into, make([]byte, n)...)
		if _, err := io.ReadFull(r, into[start:]); err != nil {
			return into[:start], cut(err)
		}
		size -= int64(n)
	}
	return into, nil
}
