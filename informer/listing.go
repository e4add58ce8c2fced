package informer

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/even-keel/evenkeel/cache"
	"github.com/even-keel/evenkeel/client"
)

// List yields the objects that fit, ordered by key, as the cache has them at one
// moment and with what has been written since.
func (l *Layer[T]) List(ctx context.Context, o client.ReadOptions) iter.Seq2[client.Object, error] {
	return func(yield func(client.Object, error) bool) {
		if !l.answerable(o) {
			yield(nil, client.ErrUncached)
			return
		}
		if err := l.in.WaitForSync(ctx); err != nil {
			yield(nil, err)
			return
		}
		now, hidden, shown := l.changes(o)
		for obj := range merged(now.List(queriesOf(o)...), hidden, shown) {
			if !yield(obj, nil) {
				return
			}
		}
	}
}

// answerable reports whether the cache can tell what is asked for. It knows fields
// by objects' names, and by indexes that are called as a field is.
func (l *Layer[T]) answerable(o client.ReadOptions) bool {
	if covers, _ := l.Covers(o.Namespace); !covers && o.Namespace != "" || o.Revision != "" || o.Match != "" {
		return false
	}
	if o.Fields == nil {
		return true
	}
	return !slices.ContainsFunc(o.Fields.Requirements(), func(r fields.Requirement) bool {
		_, indexed := l.in.of.index(r.Field)
		return !(r.Field == "metadata.name" || r.Field == "metadata.namespace" || indexed) || r.Operator == selection.NotEquals
	})
}

func queriesOf(o client.ReadOptions) []cache.Query {
	var queries []cache.Query
	if o.Namespace != "" {
		queries = append(queries, cache.InNamespace(o.Namespace))
	}
	if o.Labels != nil && !o.Labels.Empty() {
		queries = append(queries, cache.Selector(o.Labels))
	}
	if o.Fields != nil {
		for _, r := range o.Fields.Requirements() {
			queries = append(queries, cache.Field(r.Field, r.Value))
		}
	}
	return queries
}

// hasFields judges an object that the cache does not have.
func (l *Layer[T]) hasFields(f fields.Selector, obj T) bool {
	if f == nil {
		return true
	}
	return !slices.ContainsFunc(f.Requirements(), func(r fields.Requirement) bool {
		if value, known := nameField(obj, r.Field); known {
			return value != r.Value
		}
		values, ok := l.in.of.index(r.Field)
		return !ok || !slices.Contains(values(obj), r.Value)
	})
}

// changes returns the state of the cache, and the writes of which that does not know:
// whose objects it must not show, and what is shown of them, in order.
func (l *Layer[T]) changes(o client.ReadOptions) (now cache.Snapshot[T], hidden map[client.Key]bool, shown []T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now = l.in.Snapshot() // with the lock, as in written
	for key, e := range l.wrote {
		if over(now, key, e) {
			delete(l.wrote, key)
			continue
		}
		if hidden == nil {
			hidden = map[client.Key]bool{}
		}
		hidden[key] = true
		if !e.hidden && (o.Namespace == "" || o.Namespace == key.Namespace) &&
			(o.Labels == nil || o.Labels.Matches(labels.Set(e.obj.GetLabels()))) && l.hasFields(o.Fields, e.obj) {
			shown = append(shown, e.obj)
		}
	}
	slices.SortFunc(shown, byKey)
	return now, hidden, shown
}

func byKey[T client.Object](a, b T) int {
	return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
}

// merged yields what the cache has but for what is hidden, and what is shown
// instead, in order.
func merged[T client.Object](cached iter.Seq[T], hidden map[client.Key]bool, shown []T) iter.Seq[T] {
	if len(hidden) == 0 {
		return cached
	}
	return func(yield func(T) bool) {
		for obj := range cached {
			for len(shown) > 0 && byKey(shown[0], obj) < 0 {
				if !yield(shown[0]) {
					return
				}
				shown = shown[1:]
			}
			if !hidden[client.KeyOf(obj)] && !yield(obj) {
				return
			}
		}
		for _, obj := range shown {
			if !yield(obj) {
				return
			}
		}
	}
}
