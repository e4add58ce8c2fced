package controller

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/informer"
	"github.com/even-keel/evenkeel/workqueue"
)

// Key names an object; see [client.Key].
type Key = client.Key

const (
	eventReason  = workqueue.Event
	resyncReason = workqueue.Resync
)

// Reconciler brings the world in line with what an object says. It is called with a
// key, and looks at the newest state that the cache has of it, which may be that it
// is gone.
//
// A key is with one worker at a time. After an error, it comes again, later each
// time; after [Terminal] errors it does not. When ctx ends, the reconciler should
// return soon: leadership is lost, its time is up, or the program ends.
type Reconciler func(ctx context.Context, req Request) (Result, error)

// Controller calls a reconciler with the keys of what has changed. Make one with
// [New] or [NewTyped], add it to a base or a manager, and run it.
type Controller struct {
	name      string
	reconcile Reconciler
	workers   int
	timeout   time.Duration
	ignoreOwn bool
	pace      *pace // nil: keys do not rest

	queueOptions workqueue.Options[Key]
	primary      anySource
	sources      []anySource
	kinds        map[string]schema.GroupVersionKind // of the sources, but for names that two have
	feeds        []feed
	err          error // of the options

	base  *Base
	log   *slog.Logger
	epoch string // begins the IDs of this process's reconciles
	runs  atomic.Uint64
	queue atomic.Pointer[workqueue.Queue[Key]] // nil while it does not run

	counts  counts
	history history
	loops   loops

	mu    sync.Mutex
	phase Phase
}

// anySource is a source of any type.
type anySource interface {
	about() string
	kind() schema.GroupVersionKind
	attach(*Base) error
	handle(context.Context, teller) informer.Registration
	waitForSync(context.Context) error
	status() informer.Status
	namespaced(context.Context) (bool, error)
}

// teller is where sources tell of keys.
type teller struct {
	tell func(Key, Cause, int)
	// recovered is deferred around what others wrote: mapping functions and
	// predicates.
	recovered func(kind string, key Key)
}

// New returns a controller. It does nothing until it is added to a base and run;
// options that do not fit are an error then.
func New(name string, reconcile Reconciler, opts ...Option) *Controller {
	c := &Controller{name: name, reconcile: reconcile, workers: 1, queueOptions: defaultQueue(), phase: Stopped}
	for _, o := range opts {
		o(c)
	}
	c.history.size = historySize
	return c
}

// NewTyped is [New] for a reconciler that gets the object too: a copy, which it may
// change, or nil if it is gone. Of the options, For may be left out.
func NewTyped[T client.Object](name string, reconcile func(ctx context.Context, req Request, obj T) (Result, error), opts ...Option) *Controller {
	c := New(name, nil, opts...)
	if c.primary == nil {
		For[T]()(c)
	}
	of, ok := c.primary.(*source[T])
	if !ok {
		c.refuse("the reconciler takes another type than For gives: %s", c.primary.about())
	}
	c.reconcile = func(ctx context.Context, req Request) (Result, error) {
		obj, err := of.client.Get(ctx, req.Key)
		switch {
		case client.IsNotFound(err):
			return reconcile(ctx, req, *new(T))
		case err != nil:
			return Done, err
		}
		return reconcile(ctx, req, obj.DeepCopyObject().(T))
	}
	return c
}

func (c *Controller) refuse(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: "+format, append([]any{ErrOption}, args...)...)
	}
}

// Name returns the controller's name.
func (c *Controller) Name() string { return c.name }

// attach checks the options, and makes the informers of all sources.
func (c *Controller) attach(b *Base) error {
	switch {
	case c.base != nil:
		c.refuse("it is added twice")
	case c.name == "" || strings.ContainsAny(c.name, "/ \t\n"):
		c.refuse("%q is no name", c.name)
	case c.reconcile == nil:
		c.refuse("there is no reconciler")
	case c.workers < 1:
		c.refuse("%d workers cannot work", c.workers)
	case len(c.sources)+len(c.feeds) == 0:
		c.refuse("it has no source: add For, Watches, Channel or Feed")
	}
	if c.err != nil {
		return c.err
	}
	for _, s := range c.sources {
		if err := s.attach(b); err != nil {
			return err
		}
	}
	c.kinds = kindsByName(c.sources)
	c.base, c.log = b, b.log.With("controller", c.name)
	c.epoch = c.name + "." + strings.ToLower(rand.Text()[:8])
	return nil
}

func kindsByName(sources []anySource) map[string]schema.GroupVersionKind {
	kinds, twice := map[string]schema.GroupVersionKind{}, map[string]bool{}
	for _, s := range sources {
		kind := s.kind()
		if other, there := kinds[kind.Kind]; there && other != kind {
			twice[kind.Kind] = true
		}
		kinds[kind.Kind] = kind
	}
	maps.DeleteFunc(kinds, func(name string, _ schema.GroupVersionKind) bool { return twice[name] })
	return kinds
}

// Run works until ctx ends. It begins once all that it watches is in the cache; if
// a kind or a right is missing, it waits for that, and [Controller.Status] tells.
//
// When ctx is cancelled, no new key is taken; reconciles that run may finish within
// the base's grace period. When it ends for another cause, such as that leadership
// is lost, their contexts end at once. Run returns when they have.
func (c *Controller) Run(ctx context.Context) {
	if c.base == nil {
		panic("controller " + c.name + " is run, but was not added to a base") // a broken program
	}
	q := workqueue.New(c.queueOptions)
	c.queue.Store(q)
	defer c.queue.Store(nil)
	defer q.ShutDown()
	defer c.enter(Stopped)
	c.enter(Waiting)

	intake, stop := context.WithCancel(ctx)
	defer stop()
	var feeders sync.WaitGroup
	defer feeders.Wait()
	defer stop()
	registered := c.listen(intake, q, &feeders)
	defer leave(registered)
	if c.begin(ctx, registered) {
		c.enter(Running)
		c.log.Info("running", "workers", c.workers, "keys", q.Len())
		c.work(ctx, q)
	}
}

// listen has all sources feed the queue.
func (c *Controller) listen(ctx context.Context, q *workqueue.Queue[Key], feeders *sync.WaitGroup) []informer.Registration {
	prompt := teller{
		tell: func(key Key, cause Cause, priority int) {
			q.AddWith(key, workqueue.AddOptions{Priority: priority, Causes: []Cause{cause}})
		},
		recovered: c.recovered,
	}
	paced := prompt
	if c.pace != nil {
		paced.tell = func(key Key, cause Cause, priority int) {
			q.AddWith(key, workqueue.AddOptions{After: c.pace.left(key, time.Now()), Priority: priority, Causes: []Cause{cause}})
		}
	}
	var registered []informer.Registration
	for _, s := range c.sources {
		t := paced
		if s == c.primary {
			t = prompt
		}
		if r := s.handle(ctx, t); r != nil {
			registered = append(registered, r)
		}
	}
	ctx = context.WithValue(ctx, logKey{}, c.log)
	for _, f := range c.feeds {
		feeders.Go(func() { f.start(ctx, paced.tell) })
	}
	return registered
}

// recovered keeps a panic of somebody's mapping function or predicate from ending
// the program: the event is lost, and it is said so.
func (c *Controller) recovered(kind string, key Key) {
	if p := recover(); p != nil {
		c.counts.panics.Add(1)
		c.log.Error("a predicate or mapping function panicked; the event is lost", "kind", kind, "object", key, "panic", p, "stack", string(debug.Stack()))
	}
}

func leave(registered []informer.Registration) {
	for _, r := range registered {
		r.Remove()
	}
	for _, r := range registered {
		<-r.Done()
	}
}

// begin waits until all that is watched is in the cache and queued, and reports
// whether it is.
func (c *Controller) begin(ctx context.Context, registered []informer.Registration) bool {
	for _, s := range c.sources {
		if s.waitForSync(ctx) != nil {
			return false
		}
	}
	for _, r := range registered {
		select {
		case <-r.Synced():
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// work runs the workers until ctx ends and they have finished.
func (c *Controller) work(ctx context.Context, q *workqueue.Queue[Key]) {
	running, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	var workers sync.WaitGroup
	for range c.workers {
		workers.Go(func() {
			for item := range q.Items(ctx) {
				c.process(running, q, item)
			}
		})
	}
	<-ctx.Done()
	c.enter(Stopping)
	q.ShutDown()
	if cause := context.Cause(ctx); cause != context.Canceled {
		cancel(cause)
	}
	late := time.AfterFunc(c.base.grace, func() { cancel(fmt.Errorf("not done within %s: %w", c.base.grace, context.Canceled)) })
	defer late.Stop()
	workers.Wait()
}

// Enqueue asks for a reconcile by hand; the note says why. It does nothing while the
// controller does not run.
func (c *Controller) Enqueue(key Key, note string) {
	if q := c.queue.Load(); q != nil {
		q.Add(key, Cause{Reason: workqueue.Manual, Note: note})
	}
}
