package client

import (
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/runtime"
)

// magic is before every object in protobuf; a runtime.Unknown follows.
const magic = "k8s\x00"

// wrap puts a message into the envelope that says its kind.
func wrap(apiVersion, kind string, message []byte) []byte {
	typeMeta := protowire.AppendTag(nil, 1, protowire.BytesType)
	typeMeta = protowire.AppendString(typeMeta, apiVersion)
	typeMeta = protowire.AppendTag(typeMeta, 2, protowire.BytesType)
	typeMeta = protowire.AppendString(typeMeta, kind)

	out := make([]byte, 0, len(magic)+len(typeMeta)+len(message)+4*binary.MaxVarintLen32)
	out = append(out, magic...)
	out = protowire.AppendTag(out, 1, protowire.BytesType)
	out = protowire.AppendBytes(out, typeMeta)
	out = protowire.AppendTag(out, 2, protowire.BytesType)
	return protowire.AppendBytes(out, message)
}

// unwrap returns the message in an envelope, as a part of data, and its kind.
func unwrap(data []byte) (message []byte, kind runtime.TypeMeta, err error) {
	if len(data) < len(magic) || string(data[:len(magic)]) != magic {
		return nil, kind, fmt.Errorf("%w: protobuf without its first bytes", ErrMalformed)
	}
	err = eachField(data[len(magic):], func(field protowire.Number, value []byte) error {
		switch field {
		case 1:
			kind, err = typeMetaOf(value)
			return err
		case 2:
			message = value
		}
		return nil
	})
	return message, kind, err
}

func typeMetaOf(data []byte) (m runtime.TypeMeta, err error) {
	err = eachField(data, func(field protowire.Number, value []byte) error {
		switch field {
		case 1:
			m.APIVersion = string(value)
		case 2:
			m.Kind = string(value)
		}
		return nil
	})
	return m, err
}

// eachField calls f with the fields of a message that are bytes, and skips others.
func eachField(data []byte, f func(protowire.Number, []byte) error) error {
	for len(data) > 0 {
		field, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return badWire(n)
		}
		data = data[n:]
		if kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(field, kind, data); n < 0 {
				return badWire(n)
			}
			data = data[n:]
			continue
		}
		value, n := protowire.ConsumeBytes(data)
		if n < 0 {
			return badWire(n)
		}
		if err := f(field, value); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

func badWire(n int) error {
	return fmt.Errorf("%w: protobuf: %w", ErrMalformed, protowire.ParseError(n))
}
