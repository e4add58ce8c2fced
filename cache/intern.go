package cache

import (
	"hash/maphash"
	"reflect"
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
// An Interner is safe for concurrent use.
type Interner struct {
	mu      sync.Mutex
	seed    maphash.Seed
	strings table[string]
	parts   table[part]
	maps    table[any]
	plans   map[reflect.Type]*plan
	share   bool // parts, not only strings
}

// NewInterner returns an empty interner.
func NewInterner() *Interner {
	return &Interner{seed: maphash.MakeSeed(), plans: map[reflect.Type]*plan{}}
}

// Share makes an object use what is known already, and returns an estimate of
// the bytes that it adds to those. It writes to the object, which nobody else
// may be reading.
func (in *Interner) Share(obj Object) int { return in.run(obj, nil, true) }

// Strings is Share for strings alone.
func (in *Interner) Strings(obj Object) int { return in.run(obj, nil, false) }

// shareWith is Share for a later revision of old, with which it has most in
// common: that is found by comparing, which is cheaper than looking it up. The
// answer is by how much the bytes differ from those of old.
func (in *Interner) shareWith(old, obj Object) int { return in.run(obj, old, true) }

func (in *Interner) run(obj, old Object, share bool) int {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.share = share
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return in.dynamicLocked(u, old)
	}
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return 0
	}
	p := in.planOf(v.Type().Elem())
	if o := reflect.ValueOf(old); old != nil && o.Type() == v.Type() && o.Pointer() != v.Pointer() {
		return in.walk(v.UnsafePointer(), o.UnsafePointer(), p)
	}
	return int(p.size) + in.walk(v.UnsafePointer(), nil, p)
}

// String returns the remembered string that equals s, or s, which it remembers.
func (in *Interner) String(s string) string {
	in.mu.Lock()
	defer in.mu.Unlock()
	shared, _ := in.str(s)
	return shared
}

// str returns a string and how many bytes it adds.
func (in *Interner) str(s string) (string, int) {
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
func (in *Interner) walk(p, old unsafe.Pointer, pl *plan) (added int) {
	for i := range pl.steps {
		s := &pl.steps[i]
		at, was := unsafe.Add(p, s.offset), old
		if old != nil {
			was = unsafe.Add(old, s.offset)
		}
		switch s.kind {
		case stringStep:
			added += in.walkString((*string)(at), (*string)(was))
		case pointerStep:
			added += in.walkPointer((*unsafe.Pointer)(at), (*unsafe.Pointer)(was), s.plan)
		case sliceStep:
			added += in.walkSlice((*sliceHeader)(at), (*sliceHeader)(was), s.plan)
		case stringMapStep:
			added += in.walkStrings((*map[string]string)(at), (*map[string]string)(was))
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

func (in *Interner) walkPointer(ptr, was *unsafe.Pointer, pl *plan) int {
	if *ptr == nil {
		return 0
	}
	p, old := part{pl, *ptr, 1}, part{plan: pl}
	if was != nil && *was != nil {
		old = part{pl, *was, 1}
	}
	shared, added := in.walkPart(p, old, 1)
	if shared != *ptr {
		*ptr = shared
	}
	return added
}

func (in *Interner) walkSlice(h, was *sliceHeader, pl *plan) int {
	if h.len == 0 {
		return 0
	}
	p, old := part{pl, h.data, h.len}, part{plan: pl}
	if was != nil {
		old = part{pl, was.data, was.len}
	}
	shared, added := in.walkPart(p, old, h.cap)
	if shared != h.data {
		h.data, h.cap = shared, h.len
	}
	return added
}

type sliceHeader struct {
	data     unsafe.Pointer
	len, cap int
}

func (in *Interner) walkString(s, was *string) int {
	if was != nil && *s == *was {
		if unsafe.StringData(*s) != unsafe.StringData(*was) {
			*s = *was
		}
		return 0
	}
	shared, added := in.str(*s)
	if unsafe.StringData(shared) != unsafe.StringData(*s) {
		*s = shared
	}
	if was != nil {
		added -= allocated(len(*was))
	}
	return added
}

// walkPart shares what a part points to, and then the part itself. A part that is
// new loses the room that decoders leave at the end of slices.
func (in *Interner) walkPart(p, old part, room int) (unsafe.Pointer, int) {
	if p.at == old.at {
		return p.at, 0
	}
	added := allocated(p.len*int(p.plan.size)) - allocated(old.len*int(p.plan.size))
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
	h := maphash.Bytes(in.seed, raw)
	known := in.parts.find(h, func(k part) bool {
		return k.plan == p.plan && k.len == p.len && string(k.bytes()) == string(raw)
	})
	if known != nil {
		return known.at, -allocated(old.len * int(p.plan.size))
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
	exact := reflect.MakeSlice(reflect.SliceOf(p.plan.of), p.len, p.len)
	reflect.Copy(exact, reflect.SliceAt(p.plan.of, p.at, p.len))
	return exact.UnsafePointer()
}

func (in *Interner) walkStrings(m, was *map[string]string) int {
	before := 0
	if was != nil {
		before = mapBytes(len(*was), 32)
		if in.share && equalMaps(*m, *was, sameString) && (*m == nil) == (*was == nil) {
			*m = *was
			return 0
		}
	}
	if len(*m) == 0 || len(*m) > maxMap {
		return mapBytes(len(*m), 32) - before
	}
	var h uint64
	for k, v := range *m {
		h += mix(maphash.String(in.seed, k), maphash.String(in.seed, v))
	}
	known := in.maps.find(h, func(k any) bool {
		other, ok := k.(map[string]string)
		return ok && equalMaps(*m, other, sameString)
	})
	if known != nil && in.share {
		*m = (*known).(map[string]string)
		return -before
	}
	own, added := make(map[string]string, len(*m)), mapBytes(len(*m), 32)-before
	for k, v := range *m {
		k, more := in.str(k)
		added += more
		v, more = in.str(v)
		added += more
		own[k] = v
	}
	in.maps.add(h, own)
	*m = own
	return added
}

func (in *Interner) walkQuantities(m, was *map[string]resource.Quantity) int {
	const entry = 16 + int(unsafe.Sizeof(resource.Quantity{}))
	added, before := mapBytes(len(*m), entry), 0
	if was != nil {
		before = mapBytes(len(*was), entry)
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
