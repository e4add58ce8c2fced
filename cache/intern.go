package cache

import (
	"hash/maphash"
	"reflect"
	"runtime"
	"sync"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The bounds of what an interner looks at and remembers.
const (
	maxString = 128   // bytes of a string that is worth sharing
	maxPart   = 2048  // bytes of a part that is worth sharing
	maxMap    = 64    // entries of a map that is worth sharing
	maxSlots  = 16384 // strings, parts and maps that are remembered, each
)

// Interner makes equal strings and equal parts of objects one piece of memory:
// the pods of a replica set have their containers' environment, probes and
// labels in common. Objects in a cache are read-only, so nobody can tell; a deep
// copy has its own again.
//
// It works from the leaves up. Once all that a part points to is shared, equal
// parts are equal byte by byte, so that comparing them needs no reflection; how
// a type is laid out is found out once.
//
// Memory is bounded: it remembers a number of values, and forgets those that
// were seen once before those that were seen again. What it has forgotten is
// shared no more, and is freed with the objects that use it. It starts small,
// and grows with what it sees.
//
// An Interner is safe for concurrent use. It is several in one, so that as many
// goroutines as there are processors do not wait for each other: whoever comes
// takes the first that is free. What one of them knows another may learn anew.
type Interner struct {
	all []*interner
}

// maxInterners bounds the tables of one Interner.
const maxInterners = 8

type interner struct {
	mu      sync.Mutex
	seed    maphash.Seed
	strings table[string]
	parts   table[part]
	maps    table[any]
	plans   map[reflect.Type]*plan
	share   bool // parts, not only strings
	later   bool // the object that it is compared with goes when this one comes
}

// NewInterner returns an empty interner.
func NewInterner() *Interner {
	in := &Interner{all: make([]*interner, min(runtime.GOMAXPROCS(0), maxInterners))}
	for i := range in.all {
		in.all[i] = &interner{seed: maphash.MakeSeed(), plans: map[reflect.Type]*plan{}}
	}
	return in
}

// lock returns one that is free, which the caller unlocks.
func (in *Interner) lock() *interner {
	for _, one := range in.all {
		if one.mu.TryLock() {
			return one
		}
	}
	in.all[0].mu.Lock()
	return in.all[0]
}

// Share makes an object use what is known already, and returns an estimate of
// the bytes that it adds to those. It writes to the object, which nobody else
// may be reading.
func (in *Interner) Share(obj Object) int { return in.run(obj, nil, sharing) }

// Strings is Share for strings alone.
func (in *Interner) Strings(obj Object) int { return in.run(obj, nil, stringsOnly) }

// shareNear is Share for an object that is listed beside near: pods of one
// replica set are. What the two have in common is found by comparing, which is
// several times cheaper than looking it up.
func (in *Interner) shareNear(near, obj Object) int { return in.run(obj, near, sharing) }

// shareWith is Share for a later revision of old, in the same way. The answer is
// by how much the bytes differ from those of old.
func (in *Interner) shareWith(old, obj Object) int { return in.run(obj, old, revising) }

// mode is what run does.
type mode uint8

const (
	stringsOnly mode = iota
	sharing
	revising
)

func (in *Interner) run(obj, old Object, m mode) int {
	one := in.lock()
	defer one.mu.Unlock()
	return one.runLocked(obj, old, m)
}

func (in *interner) runLocked(obj, old Object, m mode) int {
	in.share, in.later = m != stringsOnly, m == revising
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return in.dynamicLocked(u, old)
	}
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return 0
	}
	p := in.planOf(v.Type().Elem())
	if o := reflect.ValueOf(old); old != nil && o.Type() == v.Type() && o.Pointer() != v.Pointer() {
		return in.without(int(p.size)) + in.walk(v.UnsafePointer(), o.UnsafePointer(), p)
	}
	return int(p.size) + in.walk(v.UnsafePointer(), nil, p)
}

// String returns the remembered string that equals s, or s, which it remembers.
func (in *Interner) String(s string) string {
	one := in.lock()
	defer one.mu.Unlock()
	shared, _ := one.str(s)
	return shared
}

// str returns a string and how many bytes it adds.
func (in *interner) str(s string) (string, int) {
	if len(s) == 0 || len(s) > maxString {
		return s, len(s)
	}
	h := maphash.String(in.seed, s)
	if known := in.strings.find(h, func(k string) bool { return k == s }); known != nil {
		return *known, 0
	}
	in.strings.add(h, s)
	return s, allocated(len(s))
}

// without returns the bytes that something adds whose place in the last revision
// took as many, or 0.
func (in *interner) without(n int) int {
	if in.later {
		return 0
	}
	return n
}

// gone returns bytes that the last revision took, and this one does not.
func (in *interner) gone(n int) int {
	if in.later {
		return n
	}
	return 0
}

// allocated estimates what the allocator takes for n bytes.
func allocated(n int) int { return (n + 15) &^ 15 }

// part is a piece of memory of a known type: a pointer's target, or the elements
// of a slice.
type part struct {
	plan *plan
	at   unsafe.Pointer
	len  int
}

func (p part) bytes() []byte {
	return unsafe.Slice((*byte)(p.at), p.len*int(p.plan.size))
}

// walk shares what the memory at p points to, and returns what that adds to what
// the memory at old, if there is one, points to.
func (in *interner) walk(p, old unsafe.Pointer, pl *plan) (added int) {
	for i := range pl.steps {
		s := &pl.steps[i]
		at, was := unsafe.Add(p, s.offset), old
		if old != nil {
			was = unsafe.Add(old, s.offset)
		}
		if old != nil && s.same(at, was) {
			continue
		}
		switch s.kind {
		case stringStep:
			added += in.walkString((*string)(at), (*string)(was), s)
		case pointerStep:
			added += in.walkPointer((*unsafe.Pointer)(at), (*unsafe.Pointer)(was), s)
		case sliceStep:
			added += in.walkSlice((*sliceHeader)(at), (*sliceHeader)(was), s)
		case stringMapStep:
			added += in.walkStrings((*map[string]string)(at), (*map[string]string)(was), s)
		case quantityMapStep:
			added += in.walkQuantities((*map[string]resource.Quantity)(at), (*map[string]resource.Quantity)(was))
		case quantityStep:
			walkQuantity((*resource.Quantity)(at), (*resource.Quantity)(was))
		}
	}
	return added
}

// walkQuantity makes a quantity ready to be read: String remembers its answer in
// it, which is a write, and so a race, if the first to ask is a reader.
func walkQuantity(q, was *resource.Quantity) {
	_ = q.String()
	if was != nil && sameQuantity(*q, *was) {
		*q = *was
	}
}

func (in *interner) walkPointer(ptr, was *unsafe.Pointer, s *planStep) int {
	if *ptr == nil {
		return 0
	}
	p, old := part{s.plan, *ptr, 1}, part{plan: s.plan}
	if was != nil && *was != nil {
		old = part{s.plan, *was, 1}
	}
	shared, added := in.walkPart(p, old, 1, &s.luck)
	if shared != *ptr {
		*ptr = shared
	}
	return added
}

func (in *interner) walkSlice(h, was *sliceHeader, s *planStep) int {
	if h.len == 0 {
		return 0
	}
	p, old := part{s.plan, h.data, h.len}, part{plan: s.plan}
	if was != nil {
		old = part{s.plan, was.data, was.len}
	}
	shared, added := in.walkPart(p, old, h.cap, &s.luck)
	if shared != h.data {
		h.data, h.cap = shared, h.len
	}
	return added
}

type sliceHeader struct {
	data     unsafe.Pointer
	len, cap int
}

func (in *interner) walkString(s, was *string, step *planStep) int {
	if was != nil && *s == *was {
		if unsafe.StringData(*s) != unsafe.StringData(*was) {
			*s = *was
		}
		return 0
	}
	if len(*s) == 0 {
		return 0 - in.lost(was)
	}
	added := allocated(len(*s))
	if step.luck.try() {
		var shared string
		shared, added = in.str(*s)
		if step.luck.note(added == 0); added == 0 {
			*s = shared
		}
	}
	return added - in.lost(was)
}

// lost is what a string of the last revision took.
func (in *interner) lost(was *string) int {
	if was == nil {
		return 0
	}
	return in.gone(allocated(len(*was)))
}

// walkPart shares what a part points to, and then the part itself. A part that is
// new loses the room that decoders leave at the end of slices.
func (in *interner) walkPart(p, old part, room int, luck *luck) (unsafe.Pointer, int) {
	if p.at == old.at {
		return p.at, 0
	}
	gone := in.gone(allocated(old.len * int(p.plan.size)))
	added := allocated(p.len*int(p.plan.size)) - gone
	for i := 0; i < p.len && len(p.plan.steps) > 0; i++ {
		offset := uintptr(i) * p.plan.size
		var was unsafe.Pointer
		if i < old.len {
			was = unsafe.Add(old.at, offset)
		}
		added += in.walk(unsafe.Add(p.at, offset), was, p.plan)
	}
	raw := p.bytes()
	if !in.share || p.plan.opaque || len(raw) > maxPart || len(raw) == 0 {
		return p.trim(room), added
	}
	if p.len == old.len && string(raw) == string(old.bytes()) {
		return old.at, 0
	}
	if !luck.try() {
		return p.trim(room), added
	}
	h := maphash.Bytes(in.seed, raw)
	known := in.parts.find(h, func(k part) bool {
		return k.plan == p.plan && k.len == p.len && string(k.bytes()) == string(raw)
	})
	if luck.note(known != nil); known != nil {
		return known.at, -gone
	}
	p.at = p.trim(room)
	in.parts.add(h, p)
	return p.at, added
}

// trim returns a copy of the elements of a slice if it has room for more.
func (p part) trim(room int) unsafe.Pointer {
	if room == p.len {
		return p.at
	}
	exact := reflect.MakeSlice(p.plan.slice, p.len, p.len)
	reflect.Copy(exact, reflect.SliceAt(p.plan.of, p.at, p.len))
	return exact.UnsafePointer()
}

func (in *interner) walkStrings(m, was *map[string]string, step *planStep) int {
	var near map[string]string
	if was != nil {
		near = *was
		if in.share && (*m == nil) == (near == nil) && equalMaps(*m, near, sameString) {
			*m = near
			return 0
		}
	}
	added := mapBytes(len(*m), 32) - in.gone(mapBytes(len(near), 32))
	if len(*m) == 0 || len(*m) > maxMap {
		return added
	}
	if !in.share || !step.luck.try() {
		return added + in.mapStrings(m, near)
	}
	var h uint64
	for k, v := range *m {
		h += mix(maphash.String(in.seed, k), maphash.String(in.seed, v))
	}
	known := in.maps.find(h, func(k any) bool {
		other, ok := k.(map[string]string)
		return ok && equalMaps(*m, other, sameString)
	})
	if step.luck.note(known != nil); known != nil {
		*m = (*known).(map[string]string)
		return added - mapBytes(len(*m), 32)
	}
	added += in.mapStrings(m, near)
	in.maps.add(h, *m)
	return added
}

// mapStrings shares the strings of a map. They are written into a new map: one
// that was decoded may have room for twice as many.
func (in *interner) mapStrings(m *map[string]string, near map[string]string) (added int) {
	own, shared := make(map[string]string, len(*m)), 0
	for k, w := range near {
		if v, ok := (*m)[k]; ok && v == w {
			own[k] = w
			shared++
		}
	}
	for k, v := range *m {
		if shared > 0 && own[k] == v {
			if _, ok := own[k]; ok {
				continue
			}
		}
		k, n := in.str(k)
		v, more := in.str(v)
		added += n + more
		own[k] = v
	}
	*m = own
	return added
}

func (in *interner) walkQuantities(m, was *map[string]resource.Quantity) int {
	const entry = 16 + int(unsafe.Sizeof(resource.Quantity{}))
	added, before := mapBytes(len(*m), entry), 0
	if was != nil {
		before = in.gone(mapBytes(len(*was), entry))
	}
	if len(*m) == 0 || len(*m) > maxMap || !in.share {
		return added - before
	}
	if was != nil && equalMaps(*m, *was, sameQuantity) {
		*m = *was
		return 0
	}
	var h uint64
	for k, v := range *m {
		h += mix(maphash.String(in.seed, k), uint64(v.MilliValue()))
	}
	known := in.maps.find(h, func(k any) bool {
		other, ok := k.(map[string]resource.Quantity)
		return ok && equalMaps(*m, other, sameQuantity)
	})
	if known != nil {
		*m = (*known).(map[string]resource.Quantity)
		return -before
	}
	in.maps.add(h, *m)
	return added - before
}

func sameString(a, b string) bool { return a == b }

// sameQuantity says whether two quantities are written alike, which depends on
// their value and format alone.
func sameQuantity(a, b resource.Quantity) bool {
	return a.Format == b.Format && a.Cmp(b) == 0
}

func equalMaps[V any](a, b map[string]V, same func(V, V) bool) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || !same(v, w) {
			return false
		}
	}
	return true
}

// mapBytes estimates the memory of a map: groups of eight, and a header.
func mapBytes(entries, entry int) int {
	if entries == 0 {
		return 0
	}
	return 48 + (entries+7)/8*8*(entry+1)
}

// mix makes one hash of two, for which the order matters.
func mix(a, b uint64) uint64 {
	h := a*0x9e3779b97f4a7c15 ^ b
	h ^= h >> 32
	return h * 0xd6e8feb86659fd93
}
