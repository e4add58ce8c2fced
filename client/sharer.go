package client

import (
	"encoding/binary"
	"errors"
	"hash/maphash"
	"math"
	"reflect"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Sharer decodes objects that nobody is going to change, such as those of a
// cache: parts that are equal in several objects, say the containers' probes of
// the pods of a replica set, are decoded once, and all of them point to it.
//
// What is equal is found on the wire, by comparing the bytes of a part with those
// of the last few in its place; then there is nothing to decode. Objects that are
// alike should come one after the other, as they do in a list. Only protobuf of
// built-in kinds is read so; from anything else objects are made as by
// [Client.Decode], that share nothing.
//
// A Sharer is for one goroutine at a time. It remembers a bounded number of parts.
type Sharer[T Object] struct {
	codec *codec[T]
	plan  *protoPlan
	sharing
}

// Sharer returns a decoder for read-only objects. With strip it leaves out their
// managed fields, if it shares.
func (c *Client[T]) Sharer(strip bool) *Sharer[T] {
	s := &Sharer[T]{codec: c.codec}
	if t := reflect.TypeFor[T](); c.codec.proto && t.Kind() == reflect.Pointer {
		plans := protoPlans{made: map[reflect.Type]*protoPlan{}, strip: strip}
		s.plan = plans.of(t.Elem())
	}
	return s
}

// Decode decodes an object, and returns how many bytes of memory it has for itself;
// 0 if nothing of it is shared. It keeps none of the bytes of raw.
func (s *Sharer[T]) Decode(raw Raw) (T, int, error) {
	if s.plan == nil || raw.Encoding != Protobuf {
		obj, err := s.codec.decode(raw)
		return obj, 0, err
	}
	obj := s.codec.make()
	s.bytes = int(s.plan.of.Size())
	if err := s.message(raw.Bytes, reflect.ValueOf(obj).UnsafePointer(), s.plan); err != nil {
		// Something is not as servers write it. The type's own decoder decides.
		obj, err := s.codec.decode(raw)
		return obj, 0, err
	}
	s.codec.mark(obj)
	return obj, s.bytes, nil
}

// luck is how often something was found in one place. Where that is seldom, most
// of the looking is left out.
type luck struct{ tries, found, passed uint16 }

const (
	luckTries = 128  // before it is judged
	luckShare = 16   // one in so many has to be found; else one in so many is tried
	luckTerm  = 1024 // tries after which half of them is forgotten
)

func (l *luck) try() bool {
	if l.tries < luckTries || l.found >= l.tries/luckShare {
		return true
	}
	l.passed++
	return l.passed%luckShare == 0
}

func (l *luck) note(found bool) {
	if l.tries >= luckTerm {
		l.tries, l.found = l.tries/2, l.found/2
	}
	l.tries++
	if found {
		l.found++
	}
}

// The bounds of what a Sharer remembers.
const (
	maxPart     = 2048 // bytes of a part on the wire
	maxRecent   = 16   // parts of one place
	maxText     = 128  // bytes of a string
	rememberedN = 4096 // hashes of strings
)

// recentPart is a part that was decoded, and its bytes on the wire.
type recentPart struct {
	raw []byte
	at  unsafe.Pointer
	len int
}

// errUnusual is of a message that is left to the type's own decoder.
var errUnusual = errors.New("unusual protobuf")

// sharing is what a Sharer knows, whatever its type.
type sharing struct {
	bytes int // that the present object takes for itself
	seed  maphash.Seed
	// texts are strings by hash; none until the first. Of the two places of a hash,
	// the second is for newcomers, so that strings that are seen once push out only
	// each other.
	texts [][2]string
}

// message reads a message into the memory at a place, which is zero.
func (s *sharing) message(b []byte, at unsafe.Pointer, p *protoPlan) error {
	var had uint64
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if n <= 0 || tag < 1<<3 || tag > math.MaxInt32 {
			return errUnusual
		}
		number, wire := tag>>3, protowire.Type(tag&7)
		var step *protoStep
		if number < uint64(len(p.steps)) {
			step = p.steps[number]
		}
		var err error
		switch {
		case step == nil, step.kind == skipped:
			size := protowire.ConsumeFieldValue(protowire.Number(number), wire, b[n:])
			if size < 0 {
				return errUnusual
			}
			b = b[n+size:]
			continue
		case step.kind.varint():
			if wire != protowire.VarintType {
				return errUnusual
			}
			v, size := binary.Uvarint(b[n:])
			if size <= 0 {
				return errUnusual
			}
			s.number(v, unsafe.Add(at, step.offset), step)
			b = b[n+size:]
			continue
		case wire != protowire.BytesType, had&step.bit != 0:
			return errUnusual // two fields, or two runs of them, would have to be merged
		}
		had |= step.bit
		if step.kind.repeated() {
			b, err = s.run(b, b[:n], unsafe.Add(at, step.offset), step)
		} else {
			value, size := lengthDelimited(b[n:])
			if size < 0 {
				return errUnusual
			}
			err = s.single(value, unsafe.Add(at, step.offset), step)
			b = b[n+size:]
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lengthDelimited returns a value and how many bytes it has with its length, or
// -1.
func lengthDelimited(b []byte) ([]byte, int) {
	if len(b) > 0 && b[0] < 0x80 && int(b[0]) < len(b) {
		size := 1 + int(b[0])
		return b[1:size], size
	}
	v, n := binary.Uvarint(b)
	if n <= 0 || v > uint64(len(b)-n) {
		return nil, -1
	}
	return b[n : n+int(v)], n + int(v)
}

func (s *sharing) number(v uint64, at unsafe.Pointer, step *protoStep) {
	switch step.kind {
	case boolField:
		*(*bool)(at) = v != 0
	case int32Field:
		*(*int32)(at) = int32(v)
	case int64Field:
		*(*int64)(at) = int64(v)
	default:
		*(*unsafe.Pointer)(at) = s.numberPointer(v, step)
	}
}

// numberPointer returns a pointer to a number, which the last few objects may have
// had in the same place.
func (s *sharing) numberPointer(v uint64, step *protoStep) unsafe.Pointer {
	for i := range step.recent {
		if r := &step.recent[i]; r.at != nil && uint64(r.len) == v {
			return r.at
		}
	}
	made := reflect.New(step.elem).UnsafePointer()
	switch step.kind {
	case boolPointer:
		*(*bool)(made) = v != 0
	case int32Pointer:
		*(*int32)(made) = int32(v)
	case int64Pointer:
		*(*int64)(made) = int64(v)
	}
	s.bytes += 8
	r := step.replace()
	r.at, r.len = made, int(v)
	return made
}

// single reads a field that a message has once.
func (s *sharing) single(value []byte, at unsafe.Pointer, step *protoStep) error {
	switch step.kind {
	case textField:
		*(*string)(at) = s.text(value, &step.luck)
	case bytesField:
		*(*[]byte)(at) = append([]byte{}, value...)
		s.bytes += len(value)
	case messageField:
		return s.value(value, at, step)
	case textPointer, messagePointer:
		known, look := step.find(value)
		if known == nil {
			made := reflect.New(step.elem).UnsafePointer()
			s.bytes += allocated(int(step.elem.Size()))
			if step.kind == textPointer {
				*(*string)(made) = s.text(value, &step.luck)
			} else if err := s.value(value, made, step); err != nil {
				return err
			}
			known = step.remember(value, made, 1, look)
		}
		*(*unsafe.Pointer)(at) = known.at
	}
	return nil
}

// value reads a message, by its plan or by its own means.
func (s *sharing) value(value []byte, at unsafe.Pointer, step *protoStep) error {
	if step.plan != nil {
		if step.plan.steps == nil {
			return errUnusual // a type that holds itself and cannot be read
		}
		return s.message(value, at, step.plan)
	}
	own := reflect.NewAt(step.elem, at).Interface()
	if err := own.(interface{ Unmarshal([]byte) error }).Unmarshal(value); err != nil {
		return err
	}
	if q, ok := own.(*resource.Quantity); ok {
		_ = q.String() // remembers its answer, which is a write that no reader may make
	}
	s.bytes += len(value)
	return nil
}

// run reads consecutive fields of one number, and returns what follows them.
func (s *sharing) run(b, tag []byte, at unsafe.Pointer, step *protoStep) ([]byte, error) {
	size, count := 0, 0
	for len(b)-size >= len(tag) && string(b[size:size+len(tag)]) == string(tag) {
		_, n := lengthDelimited(b[size+len(tag):])
		if n < 0 {
			return nil, errUnusual
		}
		size += len(tag) + n
		count++
	}
	raw, rest := b[:size], b[size:]
	known, look := step.find(raw)
	if known == nil {
		made, err := s.make(raw, len(tag), count, step)
		if err != nil {
			return nil, err
		}
		known = step.remember(raw, made, count, look)
	}
	if step.kind == textMap || step.kind == quantityMap {
		*(*unsafe.Pointer)(at) = known.at
	} else {
		*(*sliceHeader)(at) = sliceHeader{known.at, count, count}
	}
	return rest, nil
}

type sliceHeader struct {
	data     unsafe.Pointer
	len, cap int
}

// make makes a slice or a map of a run of fields.
func (s *sharing) make(raw []byte, tag, count int, step *protoStep) (unsafe.Pointer, error) {
	next := func() []byte {
		value, n := lengthDelimited(raw[tag:])
		raw = raw[tag+n:]
		return value
	}
	switch step.kind {
	case textSlice:
		all := make([]string, count)
		for i := range all {
			all[i] = s.text(next(), &step.luck)
		}
		s.bytes += 16 * count
		return unsafe.Pointer(unsafe.SliceData(all)), nil
	case messageSlice:
		size := step.elem.Size()
		all := reflect.MakeSlice(reflect.SliceOf(step.elem), count, count).UnsafePointer()
		s.bytes += allocated(count * int(size))
		for i := range count {
			if err := s.value(next(), unsafe.Add(all, uintptr(i)*size), step); err != nil {
				return nil, err
			}
		}
		return all, nil
	case textMap:
		made := reflect.MakeMapWithSize(step.elem, count)
		at := made.UnsafePointer()
		m := *(*map[string]string)(unsafe.Pointer(&at))
		for range count {
			key, value, err := mapEntry(next())
			if err != nil {
				return nil, err
			}
			m[s.text(key, nil)] = s.text(value, nil)
		}
		s.bytes += mapBytes(count, 32)
		return at, nil
	default:
		made := reflect.MakeMapWithSize(step.elem, count)
		at := made.UnsafePointer()
		m := *(*map[string]resource.Quantity)(unsafe.Pointer(&at))
		for range count {
			key, value, err := mapEntry(next())
			if err != nil {
				return nil, err
			}
			var q resource.Quantity
			if err := q.Unmarshal(value); err != nil {
				return nil, err
			}
			m[s.text(key, nil)] = q
		}
		s.bytes += mapBytes(count, 16+int(unsafe.Sizeof(resource.Quantity{})))
		return at, nil
	}
}

// mapEntry takes the message of an entry of a map apart: a key and a value, in
// this order, as all servers write it.
func mapEntry(b []byte) (key, value []byte, err error) {
	if len(b) == 0 || b[0] != 1<<3|byte(protowire.BytesType) {
		return nil, nil, errUnusual
	}
	key, n := lengthDelimited(b[1:])
	if n < 0 {
		return nil, nil, errUnusual
	}
	if b = b[1+n:]; len(b) == 0 || b[0] != 2<<3|byte(protowire.BytesType) {
		return nil, nil, errUnusual
	}
	value, n = lengthDelimited(b[1:])
	if n < 0 || len(b) != 1+n {
		return nil, nil, errUnusual
	}
	return key, value, nil
}

// find returns a part with these bytes, of those that were lately in this place;
// look says whether it is worth while to remember one that is not known.
func (step *protoStep) find(raw []byte) (known *recentPart, look bool) {
	if len(raw) > maxPart || !step.luck.try() {
		return nil, false
	}
	for i := range step.recent {
		if r := &step.recent[i]; r.at != nil && string(r.raw) == string(raw) {
			step.luck.note(true)
			return r, true
		}
	}
	step.luck.note(false)
	return nil, true
}

// remember returns a part that was made, and keeps it.
func (step *protoStep) remember(raw []byte, at unsafe.Pointer, n int, keep bool) *recentPart {
	if !keep {
		return &recentPart{at: at, len: n}
	}
	r := step.replace()
	r.raw, r.at, r.len = append(r.raw[:0], raw...), at, n
	return r
}

// replace returns the part that has been remembered for longest.
func (step *protoStep) replace() *recentPart {
	if len(step.recent) < maxRecent {
		step.recent = append(step.recent, recentPart{})
		return &step.recent[len(step.recent)-1]
	}
	r := &step.recent[step.next]
	step.next = (step.next + 1) % maxRecent
	return r
}

// text makes a string. One that is remembered is used again.
func (s *sharing) text(b []byte, l *luck) string {
	if len(b) == 0 {
		return ""
	}
	if len(b) > maxText || l != nil && !l.try() {
		s.bytes += allocated(len(b))
		return string(b)
	}
	if s.texts == nil {
		s.texts, s.seed = make([][2]string, rememberedN), maphash.MakeSeed()
	}
	slot := &s.texts[maphash.Bytes(s.seed, b)%rememberedN]
	if l != nil {
		l.note(slot[0] == string(b) || slot[1] == string(b))
	}
	switch string(b) {
	case slot[0]:
		return slot[0]
	case slot[1]:
		slot[0], slot[1] = slot[1], slot[0]
		return slot[0]
	}
	slot[1] = string(b)
	s.bytes += allocated(len(b))
	return slot[1]
}

// allocated estimates what the allocator takes for n bytes.
func allocated(n int) int { return (n + 15) &^ 15 }

// mapBytes estimates the memory of a map: groups of eight, and a header.
func mapBytes(entries, entry int) int { return 48 + (entries+7)/8*8*(entry+1) }
