package cache

// table remembers a bounded number of values by hash. A hash has a set of places:
// a newcomer gets the last one, and moves up by one each time it is found again.
// So values that are seen once push out only each other.
type table[V any] struct {
	slots []slot[V]
	added int // since it last grew
}

type slot[V any] struct {
	hash  uint64
	used  bool
	value V
}

const (
	places     = 4 // of one hash
	firstSlots = 256
)

// find returns the value of a hash for which same holds. The pointer is good
// until the next call.
func (t *table[V]) find(hash uint64, same func(V) bool) *V {
	if len(t.slots) == 0 {
		return nil
	}
	set := t.set(hash)
	for i := range set {
		if !set[i].used || set[i].hash != hash || !same(set[i].value) {
			continue
		}
		if i > 0 {
			set[i], set[i-1] = set[i-1], set[i]
			i--
		}
		return &set[i].value
	}
	return nil
}

func (t *table[V]) set(hash uint64) []slot[V] {
	i := int(hash%uint64(len(t.slots)/places)) * places
	return t.slots[i : i+places : i+places]
}

// add remembers a value that find did not find.
func (t *table[V]) add(hash uint64, v V) {
	if t.added >= len(t.slots)/2 && len(t.slots) < maxSlots {
		t.grow()
	}
	t.added++
	t.put(slot[V]{hash, true, v})
}

// put takes the first place that is free, or else the last one.
func (t *table[V]) put(s slot[V]) {
	set := t.set(s.hash)
	for i := range set {
		if !set[i].used || i == places-1 {
			set[i] = s
			return
		}
	}
}

// grow keeps the order in which values of one set were found.
func (t *table[V]) grow() {
	old := t.slots
	t.slots, t.added = make([]slot[V], max(firstSlots, 2*len(old))), 0
	for _, s := range old {
		if s.used {
			t.put(s)
		}
	}
}
