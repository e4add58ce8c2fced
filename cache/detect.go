package cache

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	kruntime "k8s.io/apimachinery/pkg/runtime"
)

// Bounds of what the detector remembers.
const (
	maxSites    = 4   // places at which one object was handed out
	maxFields   = 8   // fields of one mutation
	maxMutated  = 100 // mutations of objects that have left the store
	siteFrames  = 3   // callers that describe a place
	packageName = "github.com/even-keel/evenkeel/cache."
)

// Mutation is the error for an object that a reader changed.
type Mutation struct {
	Key    Key
	Object string // its Go type
	// Fields are the paths that changed, with the values before and after.
	Fields []string
	// HandedOut are the last places that got the object from the store, each
	// with its callers.
	HandedOut []string
}

func (m *Mutation) Error() string {
	return fmt.Sprintf("%s %s: %v: %s; handed out at %s",
		m.Object, m.Key, ErrMutated, strings.Join(m.Fields, ", "), strings.Join(m.HandedOut, ", "))
}

// Unwrap makes errors.Is find ErrMutated.
func (m *Mutation) Unwrap() error { return ErrMutated }

// Verify returns a Mutation for each object that was changed since it was
// stored, joined to one error: those in the store, and those that have left it
// since the last call. It finds nothing without Options.DetectMutations, and in
// compact stores, whose readers have objects of their own.
func (s *Store[T]) Verify() error {
	s.turn.Lock()
	gone := s.mutated
	s.mutated = nil
	now := s.current()
	s.turn.Unlock()
	var found []error
	for _, m := range gone {
		found = append(found, m)
	}
	now.objects.ascend(nil, func(e *entry) bool {
		if m := e.mutation(); m != nil {
			found = append(found, m)
		}
		return true
	})
	return errors.Join(found...)
}

// noteMutationLocked checks an object that leaves the store.
func (s *Store[T]) noteMutationLocked(e *entry) {
	if e == nil || len(s.mutated) >= maxMutated {
		return
	}
	if m := e.mutation(); m != nil {
		s.mutated = append(s.mutated, m)
	}
}

// watched is what the detector knows of an object.
type watched struct {
	copy kruntime.Object

	mu    sync.Mutex
	sites []string // the latest last
}

// handOut remembers who gets the object.
func (w *watched) handOut() {
	at := callers()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sites = slices.DeleteFunc(w.sites, func(s string) bool { return s == at })
	if len(w.sites) == maxSites {
		w.sites = w.sites[1:]
	}
	w.sites = append(w.sites, at)
}

// callers describes the nearest callers outside of this package.
func callers() string {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	var at []string
	for more := true; more && len(at) < siteFrames; {
		var f runtime.Frame
		f, more = frames.Next()
		if f.File != "" && !strings.HasPrefix(f.Function, packageName) {
			at = append(at, fmt.Sprintf("%s:%d", f.File, f.Line))
		}
	}
	return strings.Join(at, " < ")
}

func (e *entry) mutation() *Mutation {
	if e.watch == nil {
		return nil
	}
	fields := changedFields(e.watch.copy, e.obj)
	if len(fields) == 0 {
		return nil
	}
	e.watch.mu.Lock()
	defer e.watch.mu.Unlock()
	return &Mutation{Key: e.key, Object: fmt.Sprintf("%T", e.obj), Fields: fields, HandedOut: slices.Clone(e.watch.sites)}
}
