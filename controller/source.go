package controller

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/informer"
)

// SourceOption changes what a source watches, and of what it tells.
type SourceOption interface{ source(*sourceConfig) }

type sourceOption func(*sourceConfig)

func (f sourceOption) source(s *sourceConfig) { f(s) }

// sourceConfig is what all sources of informers have in common.
type sourceConfig struct {
	kind       []client.KindOption
	informer   []informer.Option
	predicates []Predicate
	resync     time.Duration
	anyOwner   bool
	quiet      bool // nothing is told
}

// With passes options to the source's informer: namespaces, selectors, indexes and
// others. Sources with equal options share one cache.
func With(opts ...informer.Option) SourceOption {
	return sourceOption(func(s *sourceConfig) { s.informer = append(s.informer, opts...) })
}

// Kind names the kind, for sources of *unstructured.Unstructured and
// *metav1.PartialObjectMetadata.
func Kind(k schema.GroupVersionKind) SourceOption {
	return sourceOption(func(s *sourceConfig) {
		s.kind = append(s.kind, client.Kind(k))
		s.informer = append(s.informer, informer.Kind(k))
	})
}

// Resync has the source tell of every object again and again, each time this long
// after the last. Nothing is read from the server. Predicates are asked.
func Resync(every time.Duration) SourceOption {
	return sourceOption(func(s *sourceConfig) { s.resync = every })
}

// AnyOwner has [Owns] map objects to all their owners of the kind, and not only to
// the one that is their controller.
func AnyOwner() SourceOption { return sourceOption(func(s *sourceConfig) { s.anyOwner = true }) }

// For has a controller hear of the objects of its own kind. A controller has one
// For, and keys are those of its objects.
func For[T client.Object](opts ...SourceOption) Option {
	return func(c *Controller) {
		s := newSource[T](opts)
		s.role = "for"
		s.keys = func(_ context.Context, obj T) []Key { return []Key{client.KeyOf(obj)} }
		if c.primary != nil {
			c.refuse("two kinds are given by For: %s and %s; use Owns or Watches", c.primary.about(), s.about())
		}
		c.primary = s
		c.sources = append(c.sources, s)
	}
}

// Owns has a controller hear of objects whose controller reference names one of its
// own kind: the key is that of the owner.
func Owns[T client.Object](opts ...SourceOption) Option {
	return func(c *Controller) {
		s := newSource[T](opts)
		s.role = "owns"
		s.keys = func(ctx context.Context, obj T) []Key { return c.owners(ctx, obj, s.config.anyOwner) }
		c.sources = append(c.sources, s)
	}
}

// Watches has a controller hear of objects of another kind. The function says which
// keys they concern; of an object that changed it is asked before and after. It may
// read from the base's clients.
func Watches[T client.Object](keys func(ctx context.Context, obj T) []Key, opts ...SourceOption) Option {
	return func(c *Controller) {
		s := newSource[T](opts)
		s.role = "watches"
		s.keys = keys
		c.sources = append(c.sources, s)
	}
}

// Reads has objects of a kind be in the cache, so that clients read them from there,
// and the controller not hear of them.
func Reads[T client.Object](opts ...SourceOption) Option {
	return func(c *Controller) {
		s := newSource[T](opts)
		s.role = "reads"
		s.config.quiet = true
		c.sources = append(c.sources, s)
	}
}

// Notice asks for a key to be looked at.
type Notice struct {
	Key Key
	// Note is why, for people to read.
	Note string
}

// Channel has a controller hear of what happens outside of the cluster. It reads
// the channel while it runs, and until that is closed; the name tells where a
// notice is from.
func Channel(name string, notices <-chan Notice) Option {
	return Feed(name, func(ctx context.Context, tell func(Notice)) {
		for {
			select {
			case <-ctx.Done():
				return
			case n, ok := <-notices:
				if !ok {
					return
				}
				tell(n)
			}
		}
	})
}

// Feed is a source of one's own, such as informers of kinds that come and go: run
// is called when the controller starts, and returns when its context ends, which the
// controller waits for. It may call tell from any of its goroutines until then. The
// reconciler is called meanwhile: what it needs of the feed, it has to wait for.
func Feed(name string, run func(ctx context.Context, tell func(Notice))) Option {
	return func(c *Controller) { c.feeds = append(c.feeds, feed{name, run}) }
}

type feed struct {
	name string
	run  func(ctx context.Context, tell func(Notice))
}

func (f feed) start(ctx context.Context, tell func(Key, Cause, int)) {
	f.run(ctx, func(n Notice) {
		tell(n.Key, Cause{Reason: eventReason, Kind: f.name, Object: n.Key.String(), Note: n.Note}, 0)
	})
}

// source tells a controller of the objects of a kind.
type source[T client.Object] struct {
	config sourceConfig
	role   string
	keys   func(ctx context.Context, obj T) []Key
	id     layerID
	in     *informer.Informer[T]
	client *client.Client[T]
}

func newSource[T client.Object](opts []SourceOption) *source[T] {
	s := &source[T]{}
	for _, o := range opts {
		o.source(&s.config)
	}
	return s
}

func (s *source[T]) about() string {
	var none T
	if s.id.kind.Empty() {
		return fmt.Sprintf("%T", none)
	}
	return s.id.kind.Kind
}

func (s *source[T]) kind() schema.GroupVersionKind { return s.id.kind }

// attach makes the informer, and has clients read from it.
func (s *source[T]) attach(b *Base) error {
	s.id = kindOf[T](b.conn, s.config.kind)
	if s.id.kind.Empty() {
		var none T
		return fmt.Errorf("%s %T: %w: name its kind with controller.Kind, or register the type: %w", s.role, none, ErrOption, client.ErrUnknownType)
	}
	s.in = informer.For[T](b.set, s.config.informer...)
	if err := s.in.Status().Err; err != nil {
		return fmt.Errorf("%s %s: %w", s.role, s.id.kind.Kind, err)
	}
	layerOver(b.layer(s.id), s.in)
	s.client = client.Of[T](b, s.config.kind...)
	return nil
}

// handle has the controller be told from now on, beginning with what there is. The
// registration is nil if there is nothing to tell.
func (s *source[T]) handle(ctx context.Context, t teller) informer.Registration {
	if s.config.quiet {
		return nil
	}
	// What else maps keys may wait: for whatever it likes, or for another cache.
	prompt := s.role == "for" || s.role == "owns"
	o := informer.HandlerOptions[T]{Resync: s.config.resync, Brief: true, Prompt: prompt}
	return s.in.HandleWith(o, func(d informer.Delta[T]) {
		defer t.recovered(s.id.kind.Kind, d.Key)
		s.tell(ctx, d, t)
	})
}

func (s *source[T]) waitForSync(ctx context.Context) error { return s.in.WaitForSync(ctx) }
func (s *source[T]) status() informer.Status               { return s.in.Status() }

// tell maps what became of an object to keys.
func (s *source[T]) tell(ctx context.Context, d informer.Delta[T], t teller) {
	change, old, now := Change{Type: d.Type}, d.Old(), d.Object()
	if d.Type != informer.Added {
		change.Old = old
	}
	if d.Type == informer.Sync {
		change.Old = now
	}
	if d.Type != informer.Deleted {
		change.New = now
	} else {
		change.Old = now // as it last was
	}
	for _, p := range s.config.predicates {
		if !p(change) {
			return
		}
	}
	keys := s.keys(ctx, now)
	if s.role != "for" && (d.Type == informer.Updated || d.Type == informer.Replaced) {
		keys = append(keys, s.keys(ctx, old)...) // those it does not concern any more; the queue has each once
	}
	if len(keys) == 0 {
		return
	}
	cause, priority := s.cause(d, now), 0
	if d.Initial || d.Type == informer.Sync {
		priority = LowPriority
	}
	for i, key := range keys {
		if i == 0 || key != keys[i-1] {
			t.tell(key, cause, priority)
		}
	}
}

func (s *source[T]) cause(d informer.Delta[T], now T) Cause {
	c := Cause{
		Reason: eventReason, Kind: s.id.kind.Kind, Object: d.Key.String(),
		Old: string(d.OldRevision()), New: string(d.Revision()), Writer: lastWriter(now),
	}
	switch {
	case d.Type == informer.Sync:
		c.Reason, c.Old = resyncReason, ""
	case d.Type == informer.Deleted:
		c.Old, c.New = string(d.Revision()), ""
	}
	return c
}

// lastWriter is who wrote an object last, as far as it tells: caches drop managed
// fields unless they are asked to keep them.
func lastWriter(obj metav1.Object) string {
	var last metav1.ManagedFieldsEntry
	for _, m := range obj.GetManagedFields() {
		if last.Manager == "" || m.Time != nil && (last.Time == nil || !m.Time.Before(last.Time)) {
			last = m
		}
	}
	return last.Manager
}

// owners are the keys of an object's owners of the controller's own kind.
func (c *Controller) owners(ctx context.Context, obj metav1.Object, all bool) []Key {
	refs := obj.GetOwnerReferences()
	if len(refs) == 0 || c.primary == nil {
		return nil
	}
	kind := c.primary.kind()
	var out []Key
	for _, ref := range refs {
		gv, err := schema.ParseGroupVersion(ref.APIVersion)
		if err != nil || gv.Group != kind.Group || ref.Kind != kind.Kind || !all && (ref.Controller == nil || !*ref.Controller) {
			continue
		}
		namespaced, err := c.primary.namespaced(ctx)
		if err != nil {
			return nil // the kind is not served: none of it exists, and if it comes to, For tells
		}
		key := Key{Name: ref.Name}
		if namespaced {
			key.Namespace = obj.GetNamespace()
		}
		out = append(out, key)
	}
	return out
}

func (s *source[T]) namespaced(ctx context.Context) (bool, error) {
	r, err := s.client.Resource(ctx)
	return r.Namespaced, err
}
