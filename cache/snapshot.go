package cache

import (
	"iter"
	"slices"
	"strings"
)

// Snapshot is the state of a store at one point in time. It never changes, and
// costs nothing to take or to keep but the memory of what has since gone.
type Snapshot[T Object] struct {
	root  *root
	codec *Codec[T]
}

// Revision returns up to which revision the snapshot is complete.
func (s Snapshot[T]) Revision() Revision { return s.root.revision }

// Get returns the object of a name. It is shared and read-only.
func (s Snapshot[T]) Get(namespace, name string) (T, bool) {
	e := s.Entry(namespace, name)
	return e.Object(), e.Exists()
}

// Entry returns the entry of a name, which does not exist if there is none.
func (s Snapshot[T]) Entry(namespace, name string) Entry[T] {
	e, _ := s.root.objects.get(keyProbe[*entry](Key{Namespace: namespace, Name: name}))
	return Entry[T]{e, s.codec}
}

// List yields the objects that fit all queries, ordered by key. The objects are
// shared and read-only; those of a compact store are decoded one by one.
func (s Snapshot[T]) List(queries ...Query) iter.Seq[T] {
	entries := s.Entries(queries...)
	return func(yield func(T) bool) {
		entries(func(e Entry[T]) bool { return yield(e.Object()) })
	}
}

// Entries is List without decoding anything.
func (s Snapshot[T]) Entries(queries ...Query) iter.Seq[Entry[T]] {
	q := newQuery(queries)
	q.check(s.root)
	q.writers = s.root.writers
	return func(yield func(Entry[T]) bool) {
		s.root.entries(q, func(e *entry) bool { return yield(Entry[T]{e, s.codec}) })
	}
}

// Count returns how many objects fit all queries. Namespaces, prefixes, and a
// single label or index value are counted without a walk.
func (s Snapshot[T]) Count(queries ...Query) int {
	q := newQuery(queries)
	q.check(s.root)
	count := 0
	switch set, whole := s.root.counted(q); {
	case q.nothing:
	case len(q.conditions) == 0 && whole:
		count = countSpans(s.root.objects, q)
	case whole:
		count = countSpans(set, q)
	default:
		s.root.list(q, func(*ident) bool {
			count++
			return true
		})
	}
	return count
}

// counted returns the set of the one condition that a query may have, if all that
// is in the query's spans fits.
func (r *root) counted(q *query) (set tree[*ident], whole bool) {
	switch {
	case q.prefix != "" && q.namespaces == nil, q.name != "", q.after != nil, q.until != nil, len(q.rest) > 0, len(q.conditions) > 1:
		return set, false
	case len(q.conditions) == 0:
		return set, true
	}
	c := q.conditions[0]
	if len(c.values) != 1 { // of several, some may be of one object
		return set, false
	}
	b, _ := r.terms.get(termProbe(&term{c.kind, c.field, c.values[0]}))
	return b.set, true
}

// list yields what fits a query, in its order. It reads the smallest set that
// holds it all: one or several buckets of one condition, or all objects; of that
// set only the namespaces that are asked for.
func (r *root) list(q *query, yield func(*ident) bool) {
	switch sets, scan := r.smallest(q); {
	case q.nothing:
	case scan:
		walk(r.objects, q, func(e *entry) bool { return yield(e.ident) })
	default:
		walkBuckets(sets, q, yield)
	}
}

// entries is list for entries. Those that a bucket names are looked up.
func (r *root) entries(q *query, yield func(*entry) bool) {
	switch sets, scan := r.smallest(q); {
	case q.nothing:
	case scan:
		walk(r.objects, q, yield)
	default:
		walkBuckets(sets, q, func(i *ident) bool {
			e, _ := r.objects.get(keyProbe[*entry](i.key))
			return yield(e)
		})
	}
}

func walkBuckets(sets []tree[*ident], q *query, yield func(*ident) bool) {
	if len(sets) == 1 {
		walk(sets[0], q, yield)
	} else {
		walk(union(q, sets), q, yield)
	}
}

// What it costs to read an entry of a bucket, which has to be looked up, and of
// several, which have to be put in order besides; one of all objects costs 1.
const (
	bucketCost = 3
	unionCost  = 6
)

// smallest returns the buckets that together hold all that fits, and as little
// else as can be known; or tells to scan all objects, if that is cheaper.
func (r *root) smallest(q *query) (best []tree[*ident], scan bool) {
	cost, scan := r.objects.len(), true
	for i := range q.conditions {
		if sets, c := r.lookUp(&q.conditions[i], cost); c < cost {
			best, cost, scan = sets, c, false
		}
	}
	return best, scan
}

// lookUp returns the buckets that a condition asks for, and what it costs to
// read them. It gives up when they cost as much as enough.
func (r *root) lookUp(c *condition, enough int) (sets []tree[*ident], cost int) {
	total := 0
	add := func(b bucket) bool {
		sets = append(sets, b.set)
		total += b.set.len()
		cost = total * bucketCost
		if len(sets) > 1 {
			cost = total * unionCost
		}
		return cost < enough
	}
	if len(c.values) > 0 {
		for i, value := range c.values {
			b, ok := r.terms.get(termProbe(&term{c.kind, c.field, value}))
			if ok && !slices.Contains(c.values[:i], value) && !add(b) {
				break
			}
		}
		return sets, cost
	}
	r.terms.ascend(termProbe(&term{c.kind, c.field, max(c.prefix, c.from)}), func(b bucket) bool {
		return c.has(b.term) && add(b)
	})
	return sets, cost
}

// union puts together what the query wants of several buckets.
func union(q *query, sets []tree[*ident]) tree[*ident] {
	var all []*ident
	for _, set := range sets {
		walk(set, q, func(i *ident) bool {
			all = append(all, i)
			return true
		})
	}
	slices.SortFunc(all, func(a, b *ident) int { return compareKeys(a.key, b.key) })
	return buildTree(newEdit(), slices.Compact(all))
}

// span is a run of keys: a namespace and a beginning of the name, or all.
type span struct {
	all       bool
	namespace string
	prefix    string
}

// spans returns the runs of keys that can fit a query, in order.
func (q *query) spans() []span {
	if q.namespaces == nil {
		return []span{{all: true}}
	}
	prefix := q.prefix
	if len(q.name) > len(prefix) {
		prefix = q.name
	}
	spans := make([]span, len(q.namespaces))
	for i, ns := range q.namespaces {
		spans[i] = span{namespace: ns, prefix: prefix}
	}
	return spans
}

// side says where a key lies from the span: before it, in it, or behind it.
func (s *span) side(k Key) int {
	switch {
	case s.all:
		return 0
	case k.Namespace != s.namespace:
		return strings.Compare(k.Namespace, s.namespace)
	case strings.HasPrefix(k.Name, s.prefix):
		return 0
	}
	return strings.Compare(k.Name, s.prefix)
}

// walk yields what fits a query of a set, in the query's order.
func walk[I keyed](set tree[I], q *query, yield func(I) bool) {
	spans := q.spans()
	if q.reverse {
		slices.Reverse(spans)
	}
	for i := range spans {
		if !walkSpan(set, &spans[i], q, yield) {
			return
		}
	}
}

func walkSpan[I keyed](set tree[I], s *span, q *query, yield func(I) bool) bool {
	more, read := true, 0
	visit := func(item I) bool {
		i := item.id()
		if read++; read%longRead == 0 {
			q.writers.giveWay()
		}
		if s.side(i.key) != 0 {
			return false
		}
		if q.past(i.key) {
			more = false
			return false
		}
		if q.fits(i) {
			more = yield(item)
		}
		return more
	}
	if q.reverse {
		set.descend(spanEnd[I](s, q.after), visit)
	} else {
		set.ascend(spanStart[I](s, q.after), visit)
	}
	return more
}

// countSpans counts what lies in the query's spans.
func countSpans[I keyed](set tree[I], q *query) (count int) {
	for _, s := range q.spans() {
		if s.all {
			return set.len()
		}
		count += set.rank(spanEnd[I](&s, nil)) - set.rank(spanStart[I](&s, nil))
	}
	return count
}

// spanStart finds the first item of the span that lies behind a key.
func spanStart[I keyed](s *span, after *Key) probe[I] {
	if s.all && after == nil {
		return nil
	}
	return func(item I) int {
		if k := item.id().key; s.side(k) < 0 || after != nil && compareKeys(k, *after) <= 0 {
			return -1
		}
		return 1
	}
}

// spanEnd finds the first item behind the span, or at or behind a key.
func spanEnd[I keyed](s *span, before *Key) probe[I] {
	if s.all && before == nil {
		return nil
	}
	return func(item I) int {
		if k := item.id().key; s.side(k) > 0 || before != nil && compareKeys(k, *before) >= 0 {
			return 1
		}
		return -1
	}
}
