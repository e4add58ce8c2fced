package cache

import (
	"fmt"
	"slices"
)

// AddIndex adds a secondary index, built from what the store holds. Snapshots
// from before do not have it. The function must not write to the store.
func (s *Store[T]) AddIndex(name string, values func(T) []string) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	old := s.current()
	if old.indexNamed(name) {
		return fmt.Errorf("add index %q: %w", name, ErrIndexExists)
	}
	d := newDraft(old)
	d.indexes = append(slices.Clip(old.indexes), indexOf(name, values))
	entries := make([]*entry, 0, old.objects.len())
	old.objects.ascend(nil, func(e *entry) bool {
		terms := slices.Clone(e.terms)
		for _, value := range values(Entry[T]{e, s.opts.Compact}.Object()) {
			terms = append(terms, &term{indexTerm, name, value})
		}
		copied := *e
		copied.ident = &ident{e.key, slices.Clip(sortTerms(terms))}
		entries = append(entries, &copied)
		return true
	})
	d.rebuild(entries)
	s.group.Load().publish(&s.member, &d.root)
	return nil
}

// index is a secondary index of a store.
type index struct {
	name   string
	values func(Object) []string
}

func indexOf[T Object](name string, values func(T) []string) index {
	return index{name, func(obj Object) []string { return values(obj.(T)) }}
}

func (r *root) indexNamed(name string) bool {
	return slices.ContainsFunc(r.indexes, func(x index) bool { return x.name == name })
}

// identOf returns what an object is found by. Mostly that is what its last
// revision was found by: then it is the same. If there is none, near may be the
// ident of an object that is like it. SameLabels says that the labels are known to
// be those of the last revision.
func identOf(key Key, obj Object, indexes []index, old *entry, sameLabels bool, near *ident) *ident {
	if old != nil {
		near = old.ident
	}
	var room [16]*term
	terms := room[:0]
	if sameLabels {
		terms = append(terms, old.labels()...)
	} else {
		for key, value := range obj.GetLabels() {
			terms = append(terms, near.term(labelTerm, key, value))
		}
	}
	for _, x := range indexes {
		for _, value := range x.values(obj) {
			terms = append(terms, near.term(indexTerm, x.name, value))
		}
	}
	if old != nil && slices.Equal(terms, old.terms) {
		return old.ident
	}
	if terms = sortTerms(terms); old != nil && slices.Equal(terms, old.terms) {
		return old.ident
	}
	return &ident{key, slices.Clone(terms)}
}

// term returns a term of an ident, or a new one if the ident does not have it.
func (i *ident) term(kind termKind, field, value string) *term {
	if i != nil {
		for _, t := range i.terms {
			if t.kind == kind && t.value == value && t.field == field {
				return t
			}
		}
	}
	return &term{kind, field, value}
}

// labels are those terms of an ident that are labels: the first ones.
func (i *ident) labels() []*term {
	n := 0
	for n < len(i.terms) && i.terms[n].kind == labelTerm {
		n++
	}
	return i.terms[:n]
}

func sortTerms(terms []*term) []*term {
	slices.SortFunc(terms, (*term).compare)
	return slices.CompactFunc(terms, func(a, b *term) bool { return a.compare(b) == 0 })
}
