package informer

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/even-keel/evenkeel/cache"
	"github.com/even-keel/evenkeel/client"
)

// List yields the objects that fit, ordered by key, as the cache has them at one
// moment and with what has been written since.
func (l *Layer[T]) List(ctx context.Context, o client.ReadOptions) iter.Seq2[client.Object, error] {
	return func(yield func(client.Object, error) bool) {
		if !answerable(o) {
			yield(nil, client.ErrUncached)
			return
		}
		if err := l.in.WaitForSync(ctx); err != nil {
			yield(nil, err)
			return
		}
		now := l.in.Snapshot()
		hidden, shown := l.changes(now, o)
		for obj := range merged(now.List(queriesOf(o)...), hidden, shown) {
			if nameFits(o.Fields, obj) && !yield(obj, nil) {
				return
			}
		}
	}
}

// answerable reports whether the cache can tell what is asked for.
func answerable(o client.ReadOptions) bool {
	if o.Revision != "" || o.Match != "" {
		return false
	}
	if o.Fields == nil {
		return true
	}
	return !slices.ContainsFunc(o.Fields.Requirements(), func(r fields.Requirement) bool {
		return r.Field != "metadata.name" && r.Field != "metadata.namespace"
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
	return queries
}

// nameFits judges the fields of which the cache knows.
func nameFits(f fields.Selector, obj client.Object) bool {
	return f == nil || f.Matches(fields.Set{"metadata.name": obj.GetName(), "metadata.namespace": obj.GetNamespace()})
}

// changes returns the writes of which the cache does not know: whose objects it
// must not show, and what is shown of them, in order.
func (l *Layer[T]) changes(now cache.Snapshot[T], o client.ReadOptions) (hidden map[client.Key]bool, shown []T) {
	l.mu.Lock()
	defer l.mu.Unlock()
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
			(o.Labels == nil || o.Labels.Matches(labels.Set(e.obj.GetLabels()))) {
			shown = append(shown, e.obj)
		}
	}
	slices.SortFunc(shown, byKey)
	return hidden, shown
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
