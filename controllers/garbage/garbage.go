package garbage

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/events"
	"github.com/even-keel/evenkeel/workqueue"
)

// workers is how many objects are worked on at once, and how many dependents of one.
const workers = 20

// collector looks at one object at a time. Its keys are of all kinds; see keyOf.
type collector struct {
	conn  *client.Conn
	told  *events.Recorder
	graph atomic.Pointer[graph] // of the present run
}

// New returns the garbage collector; clients come from the source, events go to the
// recorder.
func New(s client.Source, told *events.Recorder) *controller.Controller {
	c := &collector{conn: s.Conn(), told: told}
	return controller.New("garbage", c.reconcile,
		controller.Feed("objects", c.follow),
		controller.Workers(workers),
		controller.Backoff(workqueue.Exponential(10*time.Millisecond, time.Minute)),
		controller.RetryRate(-1, 0),
	)
}

func (c *collector) follow(ctx context.Context, tell func(controller.Notice)) {
	g := newGraph(c.conn, controller.Log(ctx), tell)
	c.graph.Store(g)
	g.follow(ctx)
}

// redo is how often an object is looked at again at once that somebody else wrote
// meanwhile.
const redo = 3

func (c *collector) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	g := c.graph.Load()
	if g == nil {
		return controller.Done, nil
	}
	select {
	case <-g.ready:
	case <-ctx.Done():
		return controller.Done, ctx.Err()
	}
	k, key := g.find(req.Key)
	if k == nil {
		return controller.Done, nil // not served any more
	}
	obj, ok := k.in.Get(key.Namespace, key.Name)
	if !ok {
		return controller.Done, nil
	}
	for try := 1; ; try++ {
		result, err := c.look(ctx, g, dependent{k, obj})
		if !client.IsConflict(err) || try > redo {
			return result, err
		}
		if obj, err = k.objects.Get(ctx, key); missing(err) {
			return controller.Done, nil
		} else if err != nil {
			return controller.Done, fmt.Errorf("read %s: %w", req.Key, err)
		}
	}
}

// look observes, decides and acts.
func (c *collector) look(ctx context.Context, g *graph, obj dependent) (controller.Result, error) {
	s, err := c.observe(ctx, g, obj)
	if err != nil {
		return controller.Done, fmt.Errorf("observe %s: %w", describe(obj), err)
	}
	p := decide(s)
	if p.verb == later {
		return controller.Requeue, nil
	}
	if err := c.act(ctx, g, obj, p); err != nil {
		return controller.Done, fmt.Errorf("%s: %w", describe(obj), err)
	}
	return controller.Done, nil
}

func describe(obj dependent) string {
	return fmt.Sprintf("%s %s", obj.kind.GroupResource(), client.KeyOf(obj))
}
