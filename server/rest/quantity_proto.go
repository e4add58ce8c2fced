package rest

import (
	"bytes"
	"reflect"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
)

// protoPrefix begins each protobuf body; a runtime.Unknown follows, with the
// object in its field 2.
var protoPrefix = []byte("k8s\x00")

// checkProtoQuantities is checkQuantities for a protobuf body. It refuses what it
// cannot read: decoders are more lenient with fields' numbers.
func checkProtoQuantities(body []byte, obj runtime.Object) error {
	envelope, ok := bytes.CutPrefix(body, protoPrefix)
	if !ok {
		return nil // the decoder will refuse it
	}
	return eachProtoField(envelope, func(n protowire.Number, raw []byte) error {
		if n != 2 {
			return nil
		}
		return walkProtoQuantities(raw, reflect.TypeOf(obj))
	})
}

// walkProtoQuantities is walkQuantities for an encoded message.
func walkProtoQuantities(message []byte, t reflect.Type) error {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return eachProtoField(message, func(n protowire.Number, value []byte) error {
		if t == quantityType {
			if n == 1 && hasLongNumber(value) {
				return errLongQuantity(string(value))
			}
			return nil
		}
		if inner := protoMemberType(t, n); inner != nil && holdsQuantity(inner) {
			return walkProtoQuantities(value, inner)
		}
		return nil
	})
}

// protoMemberType is the type of a field of a message, or nil. A map is a list
// of messages whose field 2 is the value.
func protoMemberType(t reflect.Type, n protowire.Number) reflect.Type {
	switch {
	case t.Kind() == reflect.Map && n == 2:
		return t.Elem()
	case t.Kind() == reflect.Struct:
		want := strconv.Itoa(int(n))
		for i := range t.NumField() {
			_, tag, _ := strings.Cut(t.Field(i).Tag.Get("protobuf"), ",")
			if number, _, _ := strings.Cut(tag, ","); number == want {
				return t.Field(i).Type
			}
		}
	}
	return nil
}

// eachProtoField calls f with those fields of a message that have a length,
// until f fails.
func eachProtoField(message []byte, f func(n protowire.Number, value []byte) error) error {
	for len(message) > 0 {
		n, kind, size := protowire.ConsumeTag(message)
		if size < 0 {
			return apierrors.NewBadRequest(protowire.ParseError(size).Error())
		}
		message = message[size:]
		if size = protowire.ConsumeFieldValue(n, kind, message); size < 0 {
			return apierrors.NewBadRequest(protowire.ParseError(size).Error())
		}
		if kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(message)
			if err := f(n, value); err != nil {
				return err
			}
		}
		message = message[size:]
	}
	return nil
}
