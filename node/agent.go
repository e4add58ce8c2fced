package node

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/events"
	"github.com/even-keel/evenkeel/informer"
	"github.com/even-keel/evenkeel/workqueue"
)

// The defaults of [Options].
const (
	DefaultWorkers    = 8
	DefaultProbers    = 32
	DefaultBackoff    = 10 * time.Second
	DefaultMaxBackoff = 5 * time.Minute
	DefaultLeaseEvery = 10 * time.Second
	DefaultLeaseFor   = 40 * time.Second
	DefaultTellEvery  = 5 * time.Minute
	DefaultRefresh    = time.Minute
)

// Options say which nodes an agent stands for, and how it works. Nodes are needed;
// zero is right for the rest.
type Options struct {
	Nodes []Node
	// Workers is how many pods are worked on at once, Probers how many probes are
	// asked at once.
	Workers, Probers int
	// Backoff is how long a container waits before its second restart, which doubles
	// up to MaxBackoff.
	Backoff, MaxBackoff time.Duration
	// LeaseEvery is how often leases are renewed, LeaseFor how long they are good.
	LeaseEvery, LeaseFor time.Duration
	// TellEvery is how often the status of a node is written that does not change.
	TellEvery time.Duration
	// Refresh is how often volumes made of what the server has are brought up to date;
	// negative is never.
	Refresh time.Duration
	Logger  *slog.Logger
}

// Node is a node to stand for.
type Node struct {
	Name string
	// Labels, Annotations and Taints are what the node is registered with, besides
	// the labels that every node has.
	Labels, Annotations map[string]string
	Taints              []corev1.Taint
}

func (o Options) withDefaults() Options {
	o.Workers = cmp.Or(o.Workers, DefaultWorkers)
	o.Probers = cmp.Or(o.Probers, DefaultProbers)
	o.Backoff = cmp.Or(o.Backoff, DefaultBackoff)
	o.MaxBackoff = cmp.Or(o.MaxBackoff, DefaultMaxBackoff)
	o.LeaseEvery = cmp.Or(o.LeaseEvery, DefaultLeaseEvery)
	o.LeaseFor = cmp.Or(o.LeaseFor, DefaultLeaseFor)
	o.TellEvery = cmp.Or(o.TellEvery, DefaultTellEvery)
	o.Refresh = cmp.Or(o.Refresh, DefaultRefresh)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

// Agent runs the pods of its nodes. Make one with [New].
type Agent struct {
	options Options
	runtime Runtime
	told    *events.Recorder
	pods    *client.Client[*corev1.Pod]
	fetch   fetcher
	prober  *prober
	work    *controller.Controller
	nodes   *nodes

	sessions sessions

	mu      sync.Mutex
	records map[client.Key]*record
}

// record is what the agent remembers of a pod: of the one whose key is worked on, so
// that only one worker has it.
type record struct {
	id       PodID
	prepared *map[string]string
	trouble  map[string]trouble
	backoff  map[string]backoff
	refresh  time.Time
	tokens   map[string]token
}

// New returns an agent. Clients come from the source, events go to the recorder,
// which may be nil for none. It sends nothing.
func New(s client.Source, told *events.Recorder, rt Runtime, o Options) *Agent {
	a := &Agent{
		options: o.withDefaults(), runtime: rt, told: told,
		pods: client.Of[*corev1.Pod](s), fetch: newFetcher(s), records: map[client.Key]*record{},
	}
	a.prober = &prober{
		runtime: rt, all: map[PodID]map[probeName]*asked{},
		queue:   workqueue.New(workqueue.Options[probeID]{}),
		changed: a.changed, failed: a.unhealthy,
	}
	a.nodes = newNodes(s, rt, &a.options)
	a.work = controller.New("node-pods", a.reconcile,
		controller.For[*corev1.Pod](controller.With(a.selection()...), controller.Where(a.concerns)),
		controller.Channel("runtime", a.leftovers()),
		controller.Workers(a.options.Workers), controller.IgnoreOwnWrites(),
		controller.Backoff(workqueue.Exponential(50*time.Millisecond, 30*time.Second)), controller.RetryRate(-1, 0))
	return a
}

// Controllers returns the agent's controllers, to be added to what the source is of.
func (a *Agent) Controllers() []*controller.Controller {
	return []*controller.Controller{a.nodes.work, a.work}
}

// Run runs the runtime and asks probes until ctx ends, which is not an error. When
// it returns, nothing runs any more, and who was connected to containers is not. It is
// to run as long as the controllers do.
func (a *Agent) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var beside sync.WaitGroup
	defer beside.Wait()
	defer stop()
	beside.Go(func() {
		<-ctx.Done()
		a.sessions.end()
	})
	beside.Go(func() { a.prober.run(ctx, a.options.Probers) })
	return a.runtime.Run(ctx, a.changed)
}

// selection is which pods are watched: those of the node or, for several nodes, all,
// which shares the informer of other controllers.
func (a *Agent) selection() []informer.Option {
	if n := a.options.Nodes; len(n) == 1 {
		return []informer.Option{informer.Fields("spec.nodeName=" + n[0].Name)}
	}
	return nil
}

// concerns reports whether a pod is bound to one of the agent's nodes. A pod that is
// bound stays so.
func (a *Agent) concerns(old, now *corev1.Pod) bool {
	pod := cmp.Or(now, old)
	return pod != nil && a.nodes.has(pod.Spec.NodeName)
}

// leftovers are the pods that the runtime has from before.
func (a *Agent) leftovers() <-chan controller.Notice {
	all := a.runtime.Pods()
	out := make(chan controller.Notice, len(all))
	for _, id := range all {
		a.records[id.Key] = &record{id: id}
		out <- controller.Notice{Key: id.Key, Note: "is left from before"}
	}
	close(out)
	return out
}

// changed has a pod be looked at.
func (a *Agent) changed(id PodID) { a.work.Enqueue(id.Key, "changed on its node") }

// record returns what is remembered of a key, nil if nothing is.
func (a *Agent) record(key client.Key) *record {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.records[key]
}

func (a *Agent) remember(id PodID) *record {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := &record{id: id}
	a.records[id.Key] = r
	return r
}

func (a *Agent) forget(key client.Key) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.records, key)
}

// unhealthy tells of a probe's bad answer.
func (a *Agent) unhealthy(id PodID, p probing, text string) {
	a.event(id, p.role.path(), p.name.container, true, "Unhealthy", text)
}

// event tells of something that happened to a pod, or to a container of it.
func (a *Agent) event(id PodID, path, container string, warning bool, reason, text string) {
	if a.told == nil {
		return
	}
	ref := &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: id.Key.Namespace, Name: id.Key.Name, UID: id.UID}
	if container != "" {
		ref.FieldPath = path + "{" + container + "}"
	}
	kind := events.Normal
	if warning {
		kind = events.Warning
	}
	a.told.Record(events.Event{Regarding: ref, Type: kind, Reason: reason, Note: text})
}
