package informer

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/even-keel/evenkeel/client"
)

// Selection is a part of the objects of a kind: those of a namespace, or of all
// if that is "", that fit both selectors. An informer watches each of its
// selections by itself, and shows their union.
type Selection struct {
	Namespace string
	// Labels and Fields are expressions such as "app=web,tier in (a,b)".
	Labels, Fields string
}

func (s Selection) String() string {
	var parts []string
	if s.Namespace != "" {
		parts = append(parts, "namespace "+s.Namespace)
	}
	if s.Labels != "" {
		parts = append(parts, "labels "+s.Labels)
	}
	if s.Fields != "" {
		parts = append(parts, "fields "+s.Fields)
	}
	if len(parts) == 0 {
		return "all"
	}
	return strings.Join(parts, ", ")
}

// canonical returns the selection as it is written everywhere.
func (s Selection) canonical() (Selection, error) {
	l, err := labels.Parse(s.Labels)
	if err != nil {
		return s, fmt.Errorf("label selector %q: %w: %w", s.Labels, ErrOption, err)
	}
	f, err := fields.ParseSelector(s.Fields)
	if err != nil {
		return s, fmt.Errorf("field selector %q: %w: %w", s.Fields, ErrOption, err)
	}
	s.Labels, s.Fields = l.String(), f.String()
	return s, nil
}

// covers reports whether all that o selects is certain to be selected by s.
func (s Selection) covers(o Selection) bool {
	return (s.Namespace == "" || s.Namespace == o.Namespace) &&
		(s.Labels == "" || s.Labels == o.Labels) && (s.Fields == "" || s.Fields == o.Fields)
}

// meets reports whether an object may be in both.
func (s Selection) meets(o Selection) bool {
	return s.Namespace == "" || o.Namespace == "" || s.Namespace == o.Namespace
}

// options are what a client is asked with.
func (s Selection) options() client.ReadOption {
	o := client.ReadOptions{Namespace: s.Namespace}
	if s.Labels != "" {
		o.Labels, _ = labels.Parse(s.Labels) // canonical
	}
	if s.Fields != "" {
		o.Fields, _ = fields.ParseSelector(s.Fields)
	}
	return client.Options(o)
}

// canonical returns each selection once, as it is written everywhere.
func canonical(all []Selection) ([]Selection, error) {
	var out []Selection
	for _, s := range all {
		s, err := s.canonical()
		if err != nil {
			return nil, err
		}
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out, nil
}

// union leaves out the selections that others cover. All are canonical, and no
// two are equal.
func union(all []Selection) []Selection {
	return slices.DeleteFunc(slices.Clone(all), func(s Selection) bool {
		return slices.ContainsFunc(all, func(o Selection) bool { return o != s && o.covers(s) })
	})
}

// Scope is what informers watch, and can be changed while they run: what stays
// selected stays in their caches, and handlers hear of the rest. All informers of
// a set that are made with one scope change together, whatever their kinds. It is
// an [Option], in place of [InNamespace], [Labels], [Fields] and [Select].
type Scope struct {
	turn sync.Mutex // of the one who changes the scope

	mu    sync.Mutex
	given []Selection
	users map[scoped]struct{}
}

// scoped is an informer, as its scope knows it.
type scoped interface{ rescope([]Selection) }

// NewScope returns a scope of these selections; without any, nothing is selected.
func NewScope(selections ...Selection) (*Scope, error) {
	given, err := canonical(selections)
	return &Scope{given: given, users: map[scoped]struct{}{}}, err
}

func (s *Scope) option(c *config) { c.scope = s }

// Selections returns what is selected.
func (s *Scope) Selections() []Selection {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.given)
}

// Set replaces the selections.
func (s *Scope) Set(selections ...Selection) error {
	return s.change(func([]Selection) []Selection { return selections })
}

// Add selects more.
func (s *Scope) Add(selections ...Selection) error {
	return s.change(func(now []Selection) []Selection { return slices.Concat(now, selections) })
}

// Remove takes selections back that are in the scope just as they are given.
func (s *Scope) Remove(selections ...Selection) error {
	return s.change(func(now []Selection) []Selection {
		gone, _ := canonical(selections)
		return slices.DeleteFunc(slices.Clone(now), func(s Selection) bool { return slices.Contains(gone, s) })
	})
}

func (s *Scope) change(to func([]Selection) []Selection) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	next, err := canonical(to(s.Selections()))
	if err != nil {
		return err
	}
	for _, user := range s.replace(next) {
		user.rescope(union(next))
	}
	return nil
}

func (s *Scope) replace(next []Selection) []scoped {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.given = next
	users := make([]scoped, 0, len(s.users))
	for u := range s.users {
		users = append(users, u)
	}
	return users
}

// join has an informer follow the scope from now on.
func (s *Scope) join(u scoped) {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.mu.Lock()
	s.users[u] = struct{}{}
	now := s.given
	s.mu.Unlock()
	u.rescope(union(now))
}

func (s *Scope) leave(u scoped) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.users, u)
}
