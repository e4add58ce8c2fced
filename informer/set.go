package informer

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"sync"
	"time"

	"github.com/even-keel/evenkeel/cache"
	"github.com/even-keel/evenkeel/client"
)

// Config says how the informers of a set work. The zero Config is right for most.
type Config struct {
	// OnError hears of lists and watches that failed. It is called by the
	// goroutine that watches, and must not keep it.
	OnError func(Failure)
	// MinBackoff and MaxBackoff bound what is waited after failures in a row: 50 ms
	// and 30 s. A server that asks for more gets it.
	MinBackoff, MaxBackoff time.Duration
	// BookmarkWithin is how long a server may send nothing new of its state, and
	// not say that it is complete, until it is listed instead: 15 s.
	BookmarkWithin time.Duration
	// WatchFor is how long the server is asked to keep up a watch: half of it to
	// all of it. It is 10 min.
	WatchFor time.Duration
	// PageSize is how many objects a page has, where pages are used: 1,000.
	PageSize int
	// Decoders is how many goroutines decode besides those that read: one for
	// each processor, and 8 at most.
	Decoders int
	// DetectMutations has caches find out who changes their objects; for tests.
	// See [Informer.Verify].
	DetectMutations bool
}

func (c Config) withDefaults() Config {
	set := func(d *time.Duration, to time.Duration) {
		if *d <= 0 {
			*d = to
		}
	}
	set(&c.MinBackoff, 50*time.Millisecond)
	set(&c.MaxBackoff, 30*time.Second)
	set(&c.BookmarkWithin, 15*time.Second)
	set(&c.WatchFor, 10*time.Minute)
	if c.PageSize <= 0 {
		c.PageSize = 1000
	}
	if c.Decoders <= 0 {
		c.Decoders = min(runtime.GOMAXPROCS(0), 8)
	}
	return c
}

// Set holds the informers of a program: one for all who watch the same. It is
// safe for concurrent use.
type Set struct {
	source   client.Source
	config   Config
	group    cache.Group
	decoders chan struct{}
	work     sync.WaitGroup // all goroutines of all informers

	mu        sync.Mutex
	informers map[identity]member
	order     []member
	started   bool
	closed    bool
}

// member is an informer, whatever its type.
type member interface {
	start()
	stop()
	status() Status
	wholeState() <-chan struct{}
	failure() error
}

// NewSet returns a set without informers; [For] adds them. It starts nothing.
func NewSet(source client.Source, c Config) *Set {
	c = c.withDefaults()
	return &Set{source: source, config: c, decoders: make(chan struct{}, c.Decoders), informers: map[identity]member{}}
}

// Start has the informers of the set watch, those that are added later too. It
// does not wait.
func (s *Set) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.started = true
	for _, m := range s.order {
		m.start()
	}
}

// Run is Start, and Shutdown when the context ends; that is not an error.
func (s *Set) Run(ctx context.Context) error {
	s.Start()
	<-ctx.Done()
	s.Shutdown()
	return nil
}

// Shutdown ends all informers, and returns once no goroutine of theirs is left:
// handlers finish the call that is under way. Caches stay readable. It must not
// be called by a handler.
func (s *Set) Shutdown() {
	s.mu.Lock()
	s.closed = true
	for _, m := range s.order {
		m.stop()
	}
	s.order, s.informers = nil, map[identity]member{}
	s.mu.Unlock()
	s.work.Wait()
}

// WaitForSync waits until all informers that the set has by now have the whole
// state. The error tells which have not, and why.
func (s *Set) WaitForSync(ctx context.Context) error {
	for _, m := range s.members() {
		if err := waitFor(ctx, m); err != nil {
			return s.unsynced(err)
		}
	}
	return nil
}

func (s *Set) members() []member {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]member(nil), s.order...)
}

// unsynced names all informers that are not synced.
func (s *Set) unsynced(first error) error {
	err := first
	for _, m := range s.members() {
		if st := m.status(); !st.Synced && st.Err != nil {
			err = fmt.Errorf("%w; %s: %w", err, st.Kind, st.Err)
		}
	}
	return err
}

func waitFor(ctx context.Context, m member) error {
	if err := m.failure(); err != nil {
		return fmt.Errorf("%s: %w: %w", m.status().Kind, ErrNotSynced, err)
	}
	select {
	case <-m.wholeState():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s: %w: %w", m.status().Kind, ErrNotSynced, context.Cause(ctx))
	}
}

// Status tells how each informer is, in the order in which they were added.
func (s *Set) Status() []Status {
	var out []Status
	for _, m := range s.members() {
		out = append(out, m.status())
	}
	return out
}

// View returns the state of all informers at one point in time; [Informer.At]
// reads it.
func (s *Set) View() *cache.View { return s.group.View() }

// For returns the informer of a type and a scope. It sends nothing. Those who ask
// for the same share one, which ends with the last [Informer.Close].
//
// T is a Go type as for [client.Of]: with [Kind] or [Resource], it may be
// *unstructured.Unstructured or *metav1.PartialObjectMetadata. Options that do
// not fit are an error of [Informer.WaitForSync] and [Informer.Status].
func For[T client.Object](s *Set, opts ...Option) *Informer[T] {
	c := &config{}
	for _, o := range opts {
		o.option(c)
	}
	parts, err := c.parts()
	id := identityOf[T](c, parts)
	s.mu.Lock()
	defer s.mu.Unlock()
	if m, ok := s.informers[id].(*shared[T]); ok && err == nil {
		m.users++
		in := &Informer[T]{of: m}
		in.err = in.addIndexes(c)
		return in
	}
	m := newShared[T](s, c, id, parts, err)
	m.users++
	s.addLocked(m, m.err == nil)
	return &Informer[T]{of: m, err: m.err}
}

// addLocked adds an informer, to be found by others if it can be shared.
func (s *Set) addLocked(m member, shared bool) {
	if s.closed {
		m.stop()
		return
	}
	s.order = append(s.order, m)
	if shared {
		s.informers[m.(interface{ identity() identity }).identity()] = m
	}
	if s.started {
		m.start()
	}
}

func newShared[T client.Object](set *Set, c *config, id identity, parts []Selection, err error) *shared[T] {
	of := clientOf[T](set.source, c)
	m := &shared[T]{
		set: set, id: id, config: c, about: aboutOf(of, c), client: of,
		whole: make(chan struct{}), handlers: map[*handler[T]]struct{}{}, err: err,
	}
	opts, optsErr := storeOptions[T](c)
	if m.err == nil {
		m.err = optsErr
	}
	if set.closed {
		m.err = ErrShutdown
	}
	opts.DetectMutations, opts.Group = set.config.DetectMutations, &set.group
	m.store = cache.New(opts)
	for name, values := range opts.Indexes {
		m.indexes.Store(name, values)
	}
	m.transform, _ = c.transform.(func(T) T)
	m.strips = knownWire[T]() && !c.keepManaged && m.transform == nil
	m.sharers.New = func() any { return m.client.Sharer(!c.keepManaged) }
	switch {
	case m.err != nil:
	case c.scope != nil:
		c.scope.join(m)
	default:
		m.rescope(parts)
	}
	return m
}

// aboutOf names what an informer watches, such as Deployment.apps.
func aboutOf[T client.Object](of *client.Client[T], c *config) string {
	switch {
	case !of.Kind().Empty():
		return of.Kind().GroupKind().String()
	case c.resource.Resource != "":
		return c.resource.GroupResource().String()
	}
	return reflect.TypeFor[T]().String()
}

func (s *shared[T]) identity() identity { return s.id }

// release takes back one use of an informer, which ends it if it was the last.
func (s *shared[T]) release() {
	set := s.set
	set.mu.Lock()
	defer set.mu.Unlock()
	if s.users--; s.users > 0 {
		return
	}
	if set.informers[s.id] == member(s) {
		delete(set.informers, s.id)
	}
	for i, m := range set.order {
		if m == member(s) {
			set.order = append(set.order[:i:i], set.order[i+1:]...)
			break
		}
	}
	s.stop()
}
