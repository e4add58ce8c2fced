package controller

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/informer"
)

// BaseOptions say how a [Base] works. The zero value is right for most.
type BaseOptions struct {
	// Logger hears of failures; the default is [slog.Default].
	Logger *slog.Logger
	// Client are options of the connection.
	Client []client.Option
	// Informers is how informers work.
	Informers informer.Config
	// Tracer has one span for each reconcile and each request; nil is none.
	Tracer trace.TracerProvider
	// Grace is how long reconciles that run may take to finish when their
	// controller is stopped, before their contexts end: 10 s.
	Grace time.Duration
	// Stale has clients not see what they wrote until the watch tells. It is for
	// tests that want to know what their controller does then.
	Stale bool
}

// DefaultGrace is the default of [BaseOptions].Grace.
const DefaultGrace = 10 * time.Second

// Base is what the controllers of a program stand on: one connection, the
// informers of all, and clients that read from these and see what they have
// written. It is a [client.Source]:
//
//	pods := client.Of[*corev1.Pod](base)
//
// Kinds that a controller of the base watches, or [Reads], are read from the cache;
// others from the server. A manager has a base.
type Base struct {
	conn   *client.Conn
	set    *informer.Set
	log    *slog.Logger
	tracer trace.Tracer
	grace  time.Duration
	stale  bool
	writes writes

	mu          sync.Mutex
	layers      map[layerID]*layer
	controllers []*Controller
}

// NewBase returns a base without controllers. It sends nothing.
func NewBase(cfg *rest.Config, o BaseOptions) (*Base, error) {
	b := &Base{log: o.Logger, grace: o.Grace, stale: o.Stale, layers: map[layerID]*layer{}}
	if b.log == nil {
		b.log = slog.Default()
	}
	if b.grace <= 0 {
		b.grace = DefaultGrace
	}
	cfg = rest.CopyConfig(cfg)
	if o.Tracer != nil {
		b.tracer = o.Tracer.Tracer("github.com/even-keel/evenkeel/controller")
		cfg.Wrap(b.traced)
	}
	var err error
	b.conn, err = client.Connect(cfg, append([]client.Option{client.Logger(b.log), client.Observe(b.observe)}, o.Client...)...)
	if err != nil {
		return nil, err
	}
	heard := o.Informers.OnError
	o.Informers.OnError = func(f informer.Failure) {
		b.failed(f)
		if heard != nil {
			heard(f)
		}
	}
	b.set = informer.NewSet(b.conn, o.Informers)
	return b, nil
}

// failed logs why an informer is not up to date: the first failure of several, and
// then when the pauses between them have grown.
func (b *Base) failed(f informer.Failure) {
	if n := f.Failures; n&(n-1) != 0 {
		return
	}
	b.log.Warn("cannot watch; trying again", "kind", f.Kind, "scope", f.Selection.String(), "failures", f.Failures, "again in", f.Wait, "error", f.Err)
}

// Conn returns the connection, whose clients read from the server.
func (b *Base) Conn() *client.Conn { return b.conn }

// Informers returns the informers of all controllers.
func (b *Base) Informers() *informer.Set { return b.set }

// Add adds a controller: its informers exist from then on, and its kinds are read
// from the cache. [Controller.Run] runs it.
func (b *Base) Add(c *Controller) error {
	if err := c.attach(b); err != nil {
		return fmt.Errorf("controller %s: %w", c.name, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.controllers = append(b.controllers, c)
	return nil
}

// Controllers returns those that were added, in that order.
func (b *Base) Controllers() []*Controller {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]*Controller(nil), b.controllers...)
}

// Run runs the informers and all controllers that were added until ctx ends, which
// is not an error. Who wants election, health checks and metrics uses a manager.
func (b *Base) Run(ctx context.Context) error {
	b.set.Start()
	defer b.set.Shutdown()
	var work sync.WaitGroup
	for _, c := range b.Controllers() {
		work.Go(func() { c.Run(ctx) })
	}
	<-ctx.Done()
	work.Wait()
	return nil
}

// Layer is for [client.Of]: what is read from the cache once a controller watches
// it.
func (b *Base) Layer(kind schema.GroupVersionKind, form client.Form) client.Layer {
	return b.layer(layerID{kind, form})
}

func (b *Base) layer(id layerID) *layer {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.layers[id]
	if l == nil {
		l = &layer{stale: b.stale}
		b.layers[id] = l
	}
	return l
}
