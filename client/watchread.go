package client

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// frameReader reads the events of a watch one by one.
type frameReader interface {
	// next appends the event's object to into; the frame's bytes are a part of
	// what it returns. io.EOF is between events.
	next(into []byte) (Frame, []byte, error)
}

func newFrameReader(e Encoding, from io.Reader) frameReader {
	if e == Protobuf {
		return &protoFrames{from: bufio.NewReaderSize(from, watchBuffer)}
	}
	return &jsonFrames{scanner: newScanner(from, watchBuffer)}
}

// jsonFrames reads {"type":"ADDED","object":{...}} one after the other.
type jsonFrames struct {
	*scanner
	kind []byte
}

func (f *jsonFrames) next(into []byte) (Frame, []byte, error) {
	if _, err := f.peek(); err != nil {
		return Frame{}, into, err
	}
	if err := f.expect('{'); err != nil {
		return Frame{}, into, err
	}
	start, end := len(into), len(into)
	f.kind = f.kind[:0]
	for first := true; ; first = false {
		name, more, err := f.field(first)
		if err != nil {
			return Frame{}, into, err
		}
		if !more {
			break
		}
		switch string(name) {
		case "type":
			f.kind, err = f.value(f.kind[:0])
		case "object":
			into, err = f.value(into[:start])
			end = len(into)
		default:
			err = f.skip()
		}
		if err != nil {
			return Frame{}, into, err
		}
	}
	if len(f.kind) < 2 {
		return Frame{}, into, fmt.Errorf("%w: an event without a type", ErrMalformed)
	}
	t, err := eventType(f.kind[1 : len(f.kind)-1])
	return Frame{Type: t, Object: Raw{JSON, into[start:end:end]}}, into, err
}

// protoFrames reads WatchEvents, each behind its length in four bytes.
type protoFrames struct {
	from *bufio.Reader
}

func (f *protoFrames) next(into []byte) (Frame, []byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(f.from, size[:]); err != nil {
		return Frame{}, into, err // io.EOF if there was nothing, unexpected otherwise
	}
	start := len(into)
	into, err := readBytes(f.from, into, int64(binary.BigEndian.Uint32(size[:])))
	if err != nil {
		return Frame{}, into, err
	}
	var kind, envelope []byte
	err = eachField(into[start:], func(field protowire.Number, value []byte) error {
		switch field {
		case 1:
			kind = value
		case 2:
			return eachField(value, func(field protowire.Number, raw []byte) error {
				if field == 1 {
					envelope = raw
				}
				return nil
			})
		}
		return nil
	})
	if err != nil {
		return Frame{}, into, err
	}
	t, err := eventType(kind)
	if err != nil {
		return Frame{}, into, err
	}
	object, _, err := unwrap(envelope)
	return Frame{Type: t, Object: Raw{Protobuf, object[:len(object):len(object)]}}, into, err
}

func eventType(name []byte) (EventType, error) {
	switch EventType(name) {
	case Added:
		return Added, nil
	case Modified:
		return Modified, nil
	case Deleted:
		return Deleted, nil
	case Bookmark:
		return Bookmark, nil
	case failed:
		return failed, nil
	}
	return "", fmt.Errorf("%w: an event of type %q", ErrMalformed, name)
}

// failure is the error that an event of type ERROR carries.
func (f Frame) failure() error {
	var s metav1.Status
	var err error
	if f.Object.Encoding == Protobuf {
		err = s.Unmarshal(f.Object.Bytes)
	} else {
		err = decodeJSON(f.Object.Bytes, &s)
	}
	if err != nil {
		return fmt.Errorf("%w: an error in a watch: %w", ErrMalformed, err)
	}
	return apierrors.FromObject(runtime.Object(&s))
}
