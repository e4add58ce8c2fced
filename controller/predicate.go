package controller

import (
	"maps"
	"slices"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/informer"
)

// Change is what became of an object that a source watches.
type Change struct {
	Type informer.DeltaType
	// Old is nil for an object that is new, New for one that is gone. They are
	// shared and read-only.
	Old, New client.Object
}

// Predicate says of which changes a controller hears. Of several at one source all
// must be true.
type Predicate func(Change) bool

func (p Predicate) source(s *sourceConfig) { s.predicates = append(s.predicates, p) }

// update reports whether an object was there before and after, and something may
// differ. A resync is none: it is there to be heard.
func (c Change) update() bool {
	return c.Old != nil && c.New != nil && c.Type != informer.Sync
}

// GenerationChanged leaves out updates in which the specification is the same:
// those of the status, of labels and of annotations.
func GenerationChanged() Predicate {
	return func(c Change) bool { return !c.update() || c.Old.GetGeneration() != c.New.GetGeneration() }
}

// LabelsChanged leaves out updates in which the labels are the same.
func LabelsChanged() Predicate {
	return func(c Change) bool { return !c.update() || !maps.Equal(c.Old.GetLabels(), c.New.GetLabels()) }
}

// AnnotationsChanged leaves out updates in which the annotations are the same.
func AnnotationsChanged() Predicate {
	return func(c Change) bool {
		return !c.update() || !maps.Equal(c.Old.GetAnnotations(), c.New.GetAnnotations())
	}
}

// Where is a predicate of one's own. Old is nil for an object that is new, and now
// for one that is gone; in a resync they are the same.
func Where[T client.Object](wants func(old, now T) bool) Predicate {
	return func(c Change) bool {
		old, _ := c.Old.(T)
		now, _ := c.New.(T)
		return wants(old, now)
	}
}

// Any is true if one of the predicates is.
func Any(of ...Predicate) Predicate {
	return func(c Change) bool { return slices.ContainsFunc(of, func(p Predicate) bool { return p(c) }) }
}

// Not is true if the predicate is not.
func Not(p Predicate) Predicate { return func(c Change) bool { return !p(c) } }
