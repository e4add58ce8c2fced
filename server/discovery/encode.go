package discovery

import (
	"bytes"
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

// document is an object with its encodings, each made on first use.
type document struct {
	parameters string // of the media types
	jsonOnce   func() []byte
	protoOnce  func() []byte
	etagOnce   func() string
}

func newDocument(parameters string, obj runtime.Object) *document {
	d := &document{parameters: parameters}
	d.jsonOnce = sync.OnceValue(func() []byte { return encodeJSON(obj) })
	d.protoOnce = sync.OnceValue(func() []byte { return encodeProtobuf(obj) })
	d.etagOnce = sync.OnceValue(func() string { return fmt.Sprintf(`"%X"`, sha512.Sum512(d.jsonOnce())) })
	return d
}

func (d *document) json() ([]byte, string) { return d.jsonOnce(), "application/json" + d.parameters }

func (d *document) protobuf() ([]byte, string) {
	return d.protoOnce(), runtime.ContentTypeProtobuf + d.parameters
}

func (d *document) etag() string { return d.etagOnce() }

// The objects are made of strings, which always can be encoded.

func encodeJSON(obj runtime.Object) []byte {
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(obj); err != nil {
		panic(fmt.Sprintf("discovery: encode %T: %v", obj, err))
	}
	return b.Bytes()
}

func encodeProtobuf(obj runtime.Object) []byte {
	var b bytes.Buffer
	if err := protobuf.NewSerializer(nil, nil).Encode(obj, &b); err != nil {
		panic(fmt.Sprintf("discovery: encode %T: %v", obj, err))
	}
	return b.Bytes()
}
