package informer

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/cache"
	"github.com/even-keel/evenkeel/client"
)

// Option says what an informer watches, or how it keeps it.
type Option interface{ option(*config) }

type option func(*config)

func (f option) option(c *config) { f(c) }

// config is what the options of an informer come to.
type config struct {
	kind       schema.GroupVersionKind
	resource   schema.GroupVersionResource
	namespaces []string
	labels     []string
	fields     []string
	selections []Selection
	scope      *Scope

	anyVersion  bool
	noWatchList bool
	keepManaged bool
	compact     any            // *cache.Codec[T]
	transform   any            // func(T) T
	indexes     map[string]any // func(T) []string
}

// Kind names the kind: for unstructured and metadata-only informers, and for Go
// types that do not tell.
func Kind(k schema.GroupVersionKind) Option { return option(func(c *config) { c.kind = k }) }

// Resource is Kind for who knows the resource.
func Resource(r schema.GroupVersionResource) Option {
	return option(func(c *config) { c.resource = r })
}

// InNamespace watches these namespaces; without it, or with "", all.
func InNamespace(namespaces ...string) Option {
	return option(func(c *config) { c.namespaces = append(c.namespaces, namespaces...) })
}

// Labels watches objects that fit an expression such as "app=web,tier in (a,b)".
func Labels(expression string) Option {
	return option(func(c *config) { c.labels = append(c.labels, expression) })
}

// Fields watches objects that fit an expression such as "spec.nodeName=n1".
func Fields(expression string) Option {
	return option(func(c *config) { c.fields = append(c.fields, expression) })
}

// Select watches the union of several selections, in place of InNamespace, Labels
// and Fields.
func Select(selections ...Selection) Option {
	return option(func(c *config) { c.selections = append(c.selections, selections...) })
}

// AnyVersion lets the informer begin with a state that need not be the newest,
// which some servers have at hand. It catches up by watching.
func AnyVersion() Option { return option(func(c *config) { c.anyVersion = true }) }

// NoWatchList has the informer list in pages, and not stream the state.
func NoWatchList() Option { return option(func(c *config) { c.noWatchList = true }) }

// KeepManagedFields leaves metadata.managedFields in place.
func KeepManagedFields() Option { return option(func(c *config) { c.keepManaged = true }) }

// Compact keeps objects encoded, at a tenth of the memory; see package cache.
func Compact[T client.Object](codec *cache.Codec[T]) Option {
	return option(func(c *config) { c.compact = codec })
}

// Index adds a secondary index, which [cache.Index] reads. An informer that is
// shared gets the indexes of all who share it; the first of a name stays.
func Index[T client.Object](name string, values func(T) []string) Option {
	return option(func(c *config) {
		if c.indexes == nil {
			c.indexes = map[string]any{}
		}
		c.indexes[name] = values
	})
}

// Transform changes objects before anybody sees them, or returns others; their
// names must stay. It is called by several goroutines at once. An informer with
// a transformation is not shared.
func Transform[T client.Object](change func(T) T) Option {
	return option(func(c *config) { c.transform = change })
}

// parts returns what is selected.
func (c *config) parts() ([]Selection, error) {
	simple := len(c.namespaces)+len(c.labels)+len(c.fields) > 0
	switch {
	case c.scope != nil && (simple || c.selections != nil), simple && c.selections != nil:
		return nil, fmt.Errorf("a Scope, Select, and InNamespace with Labels and Fields exclude each other: %w", ErrOption)
	case c.scope != nil:
		return nil, nil // it comes by rescope
	}
	all := c.selections
	if c.selections == nil {
		s := Selection{Labels: strings.Join(c.labels, ","), Fields: strings.Join(c.fields, ",")}
		for _, ns := range c.namespaces {
			s.Namespace = ns
			all = append(all, s)
		}
		if c.namespaces == nil {
			all = append(all, s)
		}
	}
	all, err := canonical(all)
	return union(all), err
}

// identity is what informers must have in common to be one.
type identity struct {
	goType     reflect.Type
	kind       schema.GroupVersionKind
	resource   schema.GroupVersionResource
	selections string
	scope      *Scope
	how        string
	own        *config // if it is not shared
}

func identityOf[T client.Object](c *config, parts []Selection) identity {
	id := identity{goType: reflect.TypeFor[T](), kind: c.kind, resource: c.resource, scope: c.scope}
	texts := make([]string, len(parts))
	for i, s := range parts {
		texts[i] = s.String()
	}
	slices.Sort(texts)
	id.selections = strings.Join(texts, "; ")
	id.how = fmt.Sprint(c.anyVersion, c.noWatchList, c.keepManaged, c.compact != nil)
	if c.transform != nil {
		id.own = c
	}
	return id
}

// storeOptions are those of the informer's cache.
func storeOptions[T client.Object](c *config) (o cache.Options[T], err error) {
	o.KeepManagedFields = c.keepManaged
	if c.compact != nil {
		codec, ok := c.compact.(*cache.Codec[T])
		if !ok {
			return o, fmt.Errorf("%T for an informer of %s: %w", c.compact, reflect.TypeFor[T](), ErrOption)
		}
		o.Compact = codec
	}
	if _, ok := c.transform.(func(T) T); c.transform != nil && !ok {
		return o, fmt.Errorf("a transformation %T for an informer of %s: %w", c.transform, reflect.TypeFor[T](), ErrOption)
	}
	o.Indexes, err = indexesOf[T](c)
	return o, err
}

func indexesOf[T client.Object](c *config) (map[string]func(T) []string, error) {
	out := map[string]func(T) []string{}
	for _, name := range slices.Sorted(maps.Keys(c.indexes)) {
		values, ok := c.indexes[name].(func(T) []string)
		if !ok {
			return nil, fmt.Errorf("index %q, %T, for an informer of %s: %w", name, c.indexes[name], reflect.TypeFor[T](), ErrOption)
		}
		out[name] = values
	}
	return out, nil
}

// clientOf returns the client that an informer watches with.
func clientOf[T client.Object](from client.Source, c *config) *client.Client[T] {
	var opts []client.KindOption
	if !c.kind.Empty() {
		opts = append(opts, client.Kind(c.kind))
	}
	if c.resource.Resource != "" {
		opts = append(opts, client.OfResource(c.resource))
	}
	return client.Of[T](from.Conn(), opts...)
}
