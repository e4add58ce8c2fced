package scheduler

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/events"
	"github.com/even-keel/evenkeel/informer"
)

// Component is who events are from, unless the pods name another scheduler.
const Component = corev1.DefaultSchedulerName

// What a field of [Options] that is zero stands for.
const (
	DefaultParallel   = 64
	DefaultMinBackoff = time.Second
	DefaultMaxBackoff = 10 * time.Second
)

// Options say how a [Scheduler] works. The zero value is right for most.
type Options struct {
	// Name is what pods call the scheduler in spec.schedulerName: default-scheduler.
	Name string
	// Parallel is how many pods are written about at once: bound, or told why not.
	Parallel int
	// MinBackoff and MaxBackoff bound how long a pod pauses that found no node, or
	// could not be bound. It doubles with each time.
	MinBackoff, MaxBackoff time.Duration
	// Seed decides between nodes that are equally good; 0 is a random one.
	Seed uint64
	// Logger hears of failures; the default is [slog.Default].
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Name == "" {
		o.Name = corev1.DefaultSchedulerName
	}
	if o.Parallel <= 0 {
		o.Parallel = DefaultParallel
	}
	if o.MinBackoff <= 0 {
		o.MinBackoff = DefaultMinBackoff
	}
	if o.MaxBackoff <= 0 {
		o.MaxBackoff = max(DefaultMaxBackoff, o.MinBackoff)
	}
	if o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

// Scheduler gives nodes to the pods that name it. Make one with [New].
type Scheduler struct {
	opts Options
	log  *slog.Logger
	told *events.Recorder

	pods       *informer.Informer[*corev1.Pod]
	nodes      *informer.Informer[*corev1.Node]
	namespaces *informer.Informer[*corev1.Namespace]
	writes     *client.Client[*corev1.Pod]
	bind       *client.Subresource[*corev1.Binding]
}

// New returns a scheduler. Its informers are those of the base, and its events go to
// the recorder. It sends nothing.
func New(b *controller.Base, told *events.Recorder, o Options) *Scheduler {
	o = o.withDefaults()
	pods := client.Of[*corev1.Pod](b.Conn())
	return &Scheduler{
		opts: o, log: o.Logger.With("scheduler", o.Name), told: told,
		pods:       informer.For[*corev1.Pod](b.Informers()),
		nodes:      informer.For[*corev1.Node](b.Informers()),
		namespaces: informer.For[*corev1.Namespace](b.Informers()),
		writes:     pods,
		bind:       client.Sub[*corev1.Binding](pods, "binding"),
	}
}

// Run schedules until ctx ends, which is not an error. It begins once all that it has
// to know is in the caches; whoever runs the base runs these. It returns once nothing
// of it runs any more, and can be run again.
func (s *Scheduler) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	l := newLoop(s)
	registered := []informer.Registration{
		// Namespaces and nodes first: decisions need them.
		listen(ctx, l, s.namespaces, l.namespace), listen(ctx, l, s.nodes, l.node), listen(ctx, l, s.pods, l.pod),
	}
	defer func() {
		cancel()
		for _, r := range registered {
			r.Remove()
			<-r.Done()
		}
		l.work.Wait()
	}()
	for _, r := range registered {
		if !l.follow(ctx, r.Synced()) {
			return nil
		}
	}
	l.run(ctx)
	return nil
}

// maxBatch bounds how many changes are taken in before the next decision.
const maxBatch = 256

// listen has the loop take in what an informer tells. The informer keeps what has yet
// to be taken in, the latest state of each object.
func listen[T client.Object](ctx context.Context, l *loop, in *informer.Informer[T], take func(informer.Delta[T])) informer.Registration {
	return in.HandleBatch(informer.HandlerOptions[T]{AtMost: maxBatch}, func(batch []informer.Delta[T]) {
		select {
		case <-ctx.Done():
		case l.inbox <- func() {
			for _, d := range batch {
				take(d)
			}
		}:
		}
	})
}

// loop is a scheduler that runs. Its fields belong to the goroutine of Run, which
// takes in what happened and what came of writes as functions.
type loop struct {
	*Scheduler
	snapshot *Snapshot
	queue    *queue
	// assumed are pods that were given a node, until the watch shows it.
	assumed map[types.UID]bool

	inbox   chan func()
	done    chan func() // has room for all that run
	running int
	work    sync.WaitGroup
}

func newLoop(s *Scheduler) *loop {
	return &loop{
		Scheduler: s, snapshot: NewSnapshot(s.opts.Seed), queue: newQueue(s.opts.MinBackoff, s.opts.MaxBackoff),
		assumed: map[types.UID]bool{}, inbox: make(chan func()), done: make(chan func(), s.opts.Parallel),
	}
}

// follow takes in what happens until a channel is closed, and reports whether it was.
func (l *loop) follow(ctx context.Context, until <-chan struct{}) bool {
	for {
		select {
		case take := <-l.inbox:
			take()
		case <-until:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

// run decides until ctx ends.
func (l *loop) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		if l.takeIn() {
			continue
		}
		if l.running < l.opts.Parallel {
			if e := l.queue.pop(time.Now()); e != nil {
				l.schedule(ctx, e)
				continue
			}
		}
		timer.Reset(l.rest(time.Now()))
		select {
		case take := <-l.inbox:
			take()
		case end := <-l.done:
			l.ended(end)
		case <-timer.C:
			l.queue.wakeOld(time.Now())
		case <-ctx.Done():
		}
	}
}

// takeIn takes in one thing that has happened, if there is one.
func (l *loop) takeIn() bool {
	select {
	case take := <-l.inbox:
		take()
	case end := <-l.done:
		l.ended(end)
	default:
		return false
	}
	return true
}

// rest is how long nothing falls due.
func (l *loop) rest(now time.Time) time.Duration {
	const most = time.Minute // for those that have waited for long
	if next, some := l.queue.next(); some && l.running < l.opts.Parallel {
		return min(most, max(0, next.Sub(now)))
	}
	return most
}

// act has something written. What it returns is done by the loop afterwards.
func (l *loop) act(do func() func()) {
	l.running++
	l.work.Go(func() { l.done <- do() })
}

func (l *loop) ended(end func()) {
	l.running--
	end()
}
