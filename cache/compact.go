package cache

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"github.com/klauspost/compress/s2"
)

// Codec turns objects into bytes and back, for a compact store.
type Codec[T Object] struct {
	// Encode returns the bytes of an object. One for which it fails is kept as
	// it is.
	Encode func(T) ([]byte, error)
	// Decode returns the object of such bytes, which it must not keep.
	Decode func([]byte) (T, error)
}

// Protobuf is the codec of generated types that have it, such as all of
// k8s.io/api: Protobuf[corev1.Pod](). It keeps no kind and apiVersion.
func Protobuf[V any, T interface {
	*V
	Object
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}]() *Codec[T] {
	return &Codec[T]{
		Encode: func(obj T) ([]byte, error) { return obj.Marshal() },
		Decode: func(b []byte) (T, error) {
			obj := T(new(V))
			return obj, obj.Unmarshal(b)
		},
	}
}

// JSON is the codec of all other types.
func JSON[V any, T interface {
	*V
	Object
}]() *Codec[T] {
	return &Codec[T]{
		Encode: func(obj T) ([]byte, error) { return json.Marshal(obj) },
		Decode: func(b []byte) (T, error) {
			obj := T(new(V))
			return obj, json.Unmarshal(b, obj)
		},
	}
}

// cold is an object that is kept encoded, and what is known of it all the same.
type cold struct {
	revision, uid string
	dict          *s2.Dict
	packed        bool
	body          []byte
}

// compactor encodes the objects of a store, and compresses them against a
// dictionary of objects that it saw before: to most objects little is new. The
// dictionary is made anew after 16 objects, after 256, and so on, in case the
// first ones were not like the others. A body knows its own.
type compactor[T Object] struct {
	codec *Codec[T]

	mu     sync.Mutex
	dict   *s2.Dict
	seen   int
	next   int // how many are to be seen when the next dictionary is made
	sample [][]byte
}

// The size of a dictionary, of how many objects it is made, and how many bytes
// of each are used.
const (
	dictBytes   = 32 << 10
	dictObjects = 16
	dictPart    = 4 << 10
)

// freeze encodes an object of a compact store that is set.
func (s *Store[T]) freeze(o *op[T]) {
	raw, err := s.bodies.codec.Encode(o.obj)
	if err != nil {
		s.keepHot(o, nil)
		return
	}
	s.bodies.freeze(o, raw)
	o.key.Namespace = s.opts.Interner.String(o.key.Namespace)
}

// freeze makes an entry cold, of which raw is the object.
func (c *compactor[T]) freeze(o *op[T], raw []byte) {
	frozen := c.pack(raw)
	uid := string(o.obj.GetUID())
	both := o.obj.GetResourceVersion() + uid // one piece of memory
	frozen.revision, frozen.uid = both[:len(both)-len(uid)], both[len(both)-len(uid):]
	o.entry.obj, o.entry.cold = nil, frozen
	o.entry.bytes = int(unsafe.Sizeof(*frozen)) + allocated(len(frozen.body)) + allocated(len(both))
}

// pack compresses a body, if that pays.
func (c *compactor[T]) pack(raw []byte) *cold {
	dict := c.learn(raw)
	var out []byte
	if dict != nil {
		out = dict.Encode(nil, raw)
	} else {
		out = s2.Encode(nil, raw)
	}
	if len(out) >= len(raw)*9/10 {
		return &cold{body: slices.Clip(slices.Clone(raw))}
	}
	return &cold{dict: dict, packed: true, body: append(make([]byte, 0, len(out)), out...)}
}

// learn looks at a body, and returns the dictionary for it.
func (c *compactor[T]) learn(raw []byte) *s2.Dict {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == 0 {
		c.next = dictObjects
	}
	if c.seen++; c.seen%(c.next/dictObjects) == 0 {
		c.sample = append(c.sample, slices.Clone(raw[:min(len(raw), dictPart)]))
	}
	if c.seen >= c.next {
		all := slices.Concat(c.sample...)
		c.dict = s2.MakeDict(all[:min(len(all), dictBytes)], nil) // nil if too short
		c.sample, c.next = nil, c.next*dictObjects
	}
	return c.dict
}

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// thaw decodes a cold object. What the store encoded itself always decodes.
func thaw[T Object](codec *Codec[T], e *entry) T {
	c := e.cold
	raw := c.body
	if c.packed {
		buffer := buffers.Get().(*[]byte)
		defer buffers.Put(buffer)
		*buffer = c.unpack((*buffer)[:cap(*buffer)])
		raw = *buffer
	}
	obj, err := codec.Decode(raw)
	if err != nil {
		panic(fmt.Errorf("cache: decode %s: %w", e.key, err))
	}
	return obj
}

func (c *cold) unpack(into []byte) []byte {
	var raw []byte
	var err error
	if c.dict != nil {
		raw, err = c.dict.Decode(into, c.body)
	} else {
		raw, err = s2.Decode(into, c.body)
	}
	if err != nil {
		panic(fmt.Errorf("cache: unpack: %w", err))
	}
	return raw
}
