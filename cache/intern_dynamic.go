package cache

import (
	"hash/maphash"
	"math"
	"reflect"
	"unsafe"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// dynamicLocked shares the content of an unstructured object: keys, strings,
// and equal maps and lists. It answers as run does.
func (in *interner) dynamicLocked(u *unstructured.Unstructured, old Object) (added int) {
	var was map[string]any
	if o, ok := old.(*unstructured.Unstructured); ok && o != u {
		was = o.Object
	}
	own := make(map[string]any, len(u.Object))
	for k, v := range u.Object {
		k, n := in.str(k)
		added += n
		own[k], n = in.dynamic(v, was[k])
		added += n
	}
	u.Object = own
	return added + mapBytes(len(own), 32) - in.gone(mapBytes(len(was), 32))
}

// dynamic returns a value that equals v, with all that can be shared; first of
// all with old, which was in its place.
func (in *interner) dynamic(v, old any) (shared any, added int) {
	switch v := v.(type) {
	case string:
		was, ok := old.(string)
		if ok && was == v {
			return old, 0
		}
		s, n := in.str(v)
		return s, n - in.gone(allocated(len(was)))
	case map[string]any:
		if v != nil {
			was, _ := old.(map[string]any)
			return in.dynamicMap(v, was)
		}
	case []any:
		if v != nil {
			was, _ := old.([]any)
			return in.dynamicList(v, was)
		}
	}
	return v, 0
}

func (in *interner) dynamicMap(m, was map[string]any) (any, int) {
	own, added := make(map[string]any, len(m)), mapBytes(len(m), 32)-in.gone(mapBytes(len(was), 32))
	for k, v := range m {
		k, n := in.str(k)
		added += n
		own[k], n = in.dynamic(v, was[k])
		added += n
	}
	switch {
	case len(own) > maxMap || !in.share:
		return own, added
	case was != nil && equalMaps(own, was, sameShallow):
		return was, 0
	}
	var h uint64
	for k, v := range own {
		h += mix(maphash.String(in.seed, k), in.shallowHash(v))
	}
	known := in.maps.find(h, func(k any) bool {
		other, ok := k.(map[string]any)
		return ok && equalMaps(own, other, sameShallow)
	})
	if known != nil {
		return *known, -in.gone(mapBytes(len(was), 32))
	}
	in.maps.add(h, own)
	return own, added
}

func (in *interner) dynamicList(list, was []any) (any, int) {
	own, added := make([]any, len(list)), 16*len(list)-in.gone(16*len(was))
	h := uint64(len(list))
	for i, v := range list {
		var before any
		if i < len(was) {
			before = was[i]
		}
		var n int
		own[i], n = in.dynamic(v, before)
		added += n
		h = mix(h, in.shallowHash(own[i]))
	}
	switch {
	case len(own) > maxMap || !in.share:
		return own, added
	case was != nil && sameElements(own, was):
		return was, 0
	}
	known := in.maps.find(h, func(k any) bool {
		other, ok := k.([]any)
		return ok && sameElements(own, other)
	})
	if known != nil {
		return *known, -in.gone(16 * len(was))
	}
	in.maps.add(h, own)
	return own, added
}

func sameElements(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !sameShallow(a[i], b[i]) {
			return false
		}
	}
	return true
}

// shallowHash hashes maps and lists by where they are, since equal ones are
// shared.
func (in *interner) shallowHash(v any) uint64 {
	switch v := v.(type) {
	case string:
		return maphash.String(in.seed, v)
	case int64:
		return uint64(v)
	case float64:
		return math.Float64bits(v)
	case bool:
		if v {
			return 1
		}
		return 2
	case map[string]any, []any:
		return uint64(reflect.ValueOf(v).Pointer())
	}
	return 3
}

func sameShallow(a, b any) bool {
	switch a := a.(type) {
	case string, int64, float64, bool, nil:
		return a == b
	case map[string]any:
		other, ok := b.(map[string]any)
		return ok && reflect.ValueOf(a).Pointer() == reflect.ValueOf(other).Pointer()
	case []any:
		other, ok := b.([]any)
		return ok && len(a) == len(other) && unsafe.SliceData(a) == unsafe.SliceData(other)
	}
	return false
}
