package client

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"reflect"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Encoding is how an object is written down.
type Encoding uint8

// The encodings that servers answer in.
const (
	JSON Encoding = iota
	Protobuf
)

func (e Encoding) String() string {
	if e == Protobuf {
		return "protobuf"
	}
	return "JSON"
}

const (
	mediaJSON  = "application/json"
	mediaProto = "application/vnd.kubernetes.protobuf"
)

// MaxObject is the size in bytes of the largest object that is read.
const MaxObject = 64 << 20

func encodingOf(resp *http.Response) Encoding {
	media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err == nil && media == mediaProto {
		return Protobuf
	}
	return JSON
}

// Raw is an object as the server sent it, not yet decoded. The bytes of protobuf
// are the object's message alone.
type Raw struct {
	Encoding Encoding
	Bytes    []byte
}

// message is what the generated types of built-in kinds can do.
type message interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// codec knows how objects of one Go type are sent and read.
type codec[T Object] struct {
	make func() T
	// kind is what objects are marked as; nil until the server has told.
	kind atomic.Pointer[marking]
	// proto says that answers may be protobuf, builtin that requests may.
	proto, builtin bool
	partial        bool
}

// marking is a kind as objects have it.
type marking struct {
	gvk              schema.GroupVersionKind
	apiVersion, kind string
}

// learn sets the kind, which only the first time makes a difference.
func (c *codec[T]) learn(gvk schema.GroupVersionKind) {
	if gvk.Empty() || c.kind.Load() != nil {
		return
	}
	m := &marking{gvk: gvk}
	m.apiVersion, m.kind = gvk.ToAPIVersionAndKind()
	c.kind.Store(m)
}

func newCodec[T Object](conn *Conn, kind schema.GroupVersionKind) *codec[T] {
	t := reflect.TypeFor[T]()
	c := &codec[T]{partial: t == metadataType}
	c.learn(kind)
	if t.Kind() != reflect.Pointer {
		return c // refused by kindOf
	}
	c.make = func() T { return reflect.New(t.Elem()).Interface().(T) }
	if _, ok := any(c.make()).(message); ok && !conn.json {
		c.proto = true
		_, c.builtin = builtinKind(t.Elem())
	}
	return c
}

// accept is what answers may be; list says that the answer is a list.
func (c *codec[T]) accept(list bool) string {
	form := ""
	if c.partial {
		form = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
		if list {
			form = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
		}
	}
	accept := mediaJSON + form
	if c.proto {
		accept = mediaProto + form + "," + accept
	}
	if c.partial {
		accept += "," + mediaJSON // of which the rest is skipped
	}
	return accept
}

// decode makes an object of its bytes and keeps none of them.
func (c *codec[T]) decode(raw Raw) (T, error) {
	obj := c.make()
	if err := c.decodeInto(raw, obj); err != nil {
		var none T
		return none, fmt.Errorf("decode %s as %T: %w", raw.Encoding, obj, err)
	}
	c.mark(obj)
	return obj, nil
}

func (c *codec[T]) decodeInto(raw Raw, obj T) error {
	switch o := any(obj).(type) {
	case *unstructured.Unstructured:
		if raw.Encoding == Protobuf {
			return fmt.Errorf("%w: protobuf was not asked for", ErrMalformed)
		}
		fields, err := parseObject(raw.Bytes)
		o.Object = fields
		return err
	case message:
		if raw.Encoding == Protobuf {
			return o.Unmarshal(raw.Bytes)
		}
	}
	if raw.Encoding == Protobuf {
		return fmt.Errorf("%w: protobuf was not asked for", ErrMalformed)
	}
	return decodeJSON(raw.Bytes, obj)
}

// mark writes its kind into an object: lists leave it out of their items.
func (c *codec[T]) mark(obj T) {
	m := c.kind.Load()
	if m == nil {
		return
	}
	switch k := obj.GetObjectKind().(type) {
	case *metav1.TypeMeta:
		k.APIVersion, k.Kind = m.apiVersion, m.kind
	case *unstructured.Unstructured:
		k.Object["apiVersion"], k.Object["kind"] = m.apiVersion, m.kind
	default:
		k.SetGroupVersionKind(m.gvk)
	}
}

// answer decodes a whole answer that is one object.
func (c *codec[T]) answer(b *body) (T, error) {
	raw := Raw{Encoding: b.encoding, Bytes: b.bytes}
	if b.encoding == Protobuf {
		message, _, err := unwrap(b.bytes)
		if err != nil {
			var none T
			return none, err
		}
		raw.Bytes = message
	}
	return c.decode(raw)
}

// encode makes the body of a request; obj is not changed.
func (c *codec[T]) encode(obj T) (data []byte, media string, err error) {
	if c.partial {
		return nil, "", fmt.Errorf("write %T: %w", obj, ErrMetadataOnly)
	}
	kind := c.kind.Load()
	if m, ok := any(obj).(message); ok && c.builtin && kind != nil {
		data, err := m.Marshal()
		if err != nil {
			return nil, "", fmt.Errorf("encode %T: %w", obj, err)
		}
		return wrap(kind.apiVersion, kind.kind, data), mediaProto, nil
	}
	data, err = c.encodeJSON(obj)
	return data, mediaJSON, err
}

// encodeJSON writes an object with its kind, which Go objects often lack.
func (c *codec[T]) encodeJSON(obj T) ([]byte, error) {
	if kind := c.kind.Load(); kind != nil {
		switch has := obj.GetObjectKind().GroupVersionKind(); has {
		case kind.gvk:
		case schema.GroupVersionKind{}:
			obj = obj.DeepCopyObject().(T)
			if u, ok := any(obj).(*unstructured.Unstructured); ok && u.Object == nil {
				u.Object = map[string]any{}
			}
			c.mark(obj)
		default:
			return nil, fmt.Errorf("the client is for %s, but the object is a %s: %w", kind.gvk, has, ErrWrongKind)
		}
	}
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", obj, err)
	}
	return data, nil
}
