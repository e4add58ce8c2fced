package cache

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Query narrows a list. An object is listed if it fits all queries.
type Query func(*query)

// query is what all queries of a list come to.
type query struct {
	nothing    bool
	reverse    bool
	namespaces []string // ordered; all if nil
	prefix     string
	name       string
	after      *Key
	until      *Key
	conditions []condition
	rest       []labels.Requirement // that no index answers
	writers    *writers             // before whom the walk gives way, if any
}

// condition is one that an index answers: the object has one of these terms.
type condition struct {
	kind  termKind
	field string
	// values are what the term may have, and prefix what its value may begin
	// with; from and to bound it. With none of these, any value does.
	values   []string
	prefix   string
	from, to string
}

// InNamespace lists the objects of these namespaces. As elsewhere in
// Kubernetes, the empty namespace stands for all.
func InNamespace(namespaces ...string) Query {
	return func(q *query) {
		if slices.Contains(namespaces, "") {
			return
		}
		wanted := slices.Compact(slices.Sorted(slices.Values(namespaces)))
		if q.namespaces != nil {
			wanted = slices.DeleteFunc(wanted, func(ns string) bool { return !slices.Contains(q.namespaces, ns) })
		}
		q.namespaces = wanted
		q.nothing = q.nothing || len(wanted) == 0
	}
}

// Label lists the objects that have a label with this value.
func Label(key, value string) Query {
	return func(q *query) {
		q.conditions = append(q.conditions, condition{kind: labelTerm, field: key, values: []string{value}})
	}
}

// Selector lists the objects that a label selector selects. Requirements of
// equality, in and exists are looked up; only the others look at objects.
func Selector(s labels.Selector) Query {
	return func(q *query) {
		requirements, selectable := s.Requirements()
		q.nothing = q.nothing || !selectable
		for _, r := range requirements {
			switch r.Operator() {
			case selection.Equals, selection.DoubleEquals, selection.In:
				q.conditions = append(q.conditions, condition{kind: labelTerm, field: r.Key(), values: r.ValuesUnsorted()})
			case selection.Exists:
				q.conditions = append(q.conditions, condition{kind: labelTerm, field: r.Key()})
			default:
				q.rest = append(q.rest, r)
			}
		}
	}
}

// Index lists the objects for which an index function returned one of these
// values. A list panics if the store has no index of this name.
func Index(name string, values ...string) Query {
	return func(q *query) {
		q.nothing = q.nothing || len(values) == 0
		q.conditions = append(q.conditions, condition{kind: indexTerm, field: name, values: values})
	}
}

// IndexPrefix lists the objects for which an index function returned a value
// that begins with prefix.
func IndexPrefix(name, prefix string) Query {
	return func(q *query) {
		q.conditions = append(q.conditions, condition{kind: indexTerm, field: name, prefix: prefix})
	}
}

// IndexRange lists the objects for which an index function returned a value from
// one on, and up to but without another; "" is no bound. Values are compared as
// strings.
func IndexRange(name, from, to string) Query {
	return func(q *query) {
		q.nothing = q.nothing || to != "" && from >= to
		q.conditions = append(q.conditions, condition{kind: indexTerm, field: name, from: from, to: to})
	}
}

// Field lists the objects whose field has this value: metadata.name and
// metadata.namespace, or any other for which there is an index of that name.
func Field(path, value string) Query {
	switch path {
	case "metadata.namespace":
		return func(q *query) {
			InNamespace(value)(q)
			q.nothing = q.nothing || value == ""
		}
	case "metadata.name":
		return func(q *query) {
			q.nothing = q.nothing || value == "" || q.name != "" && q.name != value
			q.name = value
		}
	}
	return Index(path, value)
}

// Prefix lists the objects whose name begins with prefix.
func Prefix(prefix string) Query {
	return func(q *query) {
		switch {
		case strings.HasPrefix(prefix, q.prefix):
			q.prefix = prefix
		case !strings.HasPrefix(q.prefix, prefix):
			q.nothing = true
		}
	}
}

// After lists the objects that come after a key in the order of the list: the
// next page, if the key is the last one of a page.
func After(k Key) Query {
	return func(q *query) { q.after = &k }
}

// Until ends the list before a key: with [After], a range of keys in the order of
// the list.
func Until(k Key) Query {
	return func(q *query) { q.until = &k }
}

// Descending lists from the last key to the first.
func Descending() Query {
	return func(q *query) { q.reverse = true }
}

func newQuery(queries []Query) *query {
	q := &query{}
	for _, narrow := range queries {
		narrow(q)
	}
	return q
}

// past reports whether a list in the query's order is to end at a key.
func (q *query) past(k Key) bool {
	if q.until == nil {
		return false
	}
	side := compareKeys(k, *q.until)
	return side == 0 || side > 0 != q.reverse
}

// check panics if the query names an index that is not there.
func (q *query) check(r *root) {
	for _, c := range q.conditions {
		if c.kind == indexTerm && !r.indexNamed(c.field) {
			panic(fmt.Errorf("cache: list by %q: %w", c.field, ErrNoIndex))
		}
	}
}

// fits reports whether an object in one of the query's spans fits it.
func (q *query) fits(e *ident) bool {
	if q.name != "" && e.key.Name != q.name || !strings.HasPrefix(e.key.Name, q.prefix) {
		return false
	}
	return q.fitsTerms(e)
}

func (q *query) fitsTerms(e *ident) bool {
	for i := range q.conditions {
		if !q.conditions[i].fits(e) {
			return false
		}
	}
	for i := range q.rest {
		if !q.rest[i].Matches(labelView(e.terms)) {
			return false
		}
	}
	return true
}

func (c *condition) fits(e *ident) bool {
	return slices.ContainsFunc(e.terms, c.has)
}

// has reports whether a term is one of those that the condition asks for.
func (c *condition) has(t *term) bool {
	if t.kind != c.kind || t.field != c.field {
		return false
	}
	if len(c.values) > 0 {
		return slices.Contains(c.values, t.value)
	}
	return strings.HasPrefix(t.value, c.prefix) && t.value >= c.from && (c.to == "" || t.value < c.to)
}
