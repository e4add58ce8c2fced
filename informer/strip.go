package informer

import (
	"reflect"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
)

// The fields of built-in kinds, and of the metadata that is their first.
const (
	metadataField      = 1
	managedFieldsField = 17
)

// knownWire reports whether objects of T have their metadata in the field of a
// message where all built-in kinds have it.
func knownWire[T client.Object]() bool {
	t := reflect.TypeFor[T]()
	return t.Kind() == reflect.Pointer && strings.HasPrefix(t.Elem().PkgPath(), "k8s.io/api/") ||
		t == reflect.TypeFor[*metav1.PartialObjectMetadata]()
}

// stripManaged returns a message without the managed fields of its metadata, which
// the store would drop once they are decoded. It writes to the message, and returns a part of it. Where they are not
// at the end of the metadata, as every server writes them, nothing is done.
func stripManaged(message []byte) []byte {
	field, kind, n := protowire.ConsumeTag(message)
	if n < 0 || field != metadataField || kind != protowire.BytesType {
		return message
	}
	metadata, m := protowire.ConsumeBytes(message[n:])
	if m < 0 {
		return message
	}
	start := n + m - len(metadata)
	kept := beforeManaged(metadata)
	gap := len(metadata) - kept
	if gap == 0 {
		return message
	}
	putLength(message[n:start], kept)
	copy(message[gap:], message[:start+kept])
	return message[gap:]
}

// beforeManaged is how many bytes of metadata there are before managed fields, if
// nothing is behind them.
func beforeManaged(metadata []byte) int {
	kept := -1
	for at := 0; at < len(metadata); {
		field, kind, n := protowire.ConsumeTag(metadata[at:])
		if n < 0 {
			return len(metadata)
		}
		size := protowire.ConsumeFieldValue(field, kind, metadata[at+n:])
		if size < 0 {
			return len(metadata)
		}
		switch {
		case field == managedFieldsField && kept < 0:
			kept = at
		case field != managedFieldsField && kept >= 0:
			return len(metadata)
		}
		at += n + size
	}
	if kept < 0 {
		return len(metadata)
	}
	return kept
}

// putLength writes a varint in as many bytes as there are, which are enough.
func putLength(into []byte, n int) {
	for i := range into {
		into[i] = byte(n&0x7f) | 0x80
		n >>= 7
	}
	into[len(into)-1] &= 0x7f
}
