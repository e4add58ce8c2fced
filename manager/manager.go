package manager

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/events"
	"github.com/even-keel/evenkeel/leader"
)

var (
	// ErrGrace says that something did not stop within [Options].Grace.
	ErrGrace = errors.New("it did not stop in time")
	// ErrRan says that [Manager.Run] is called a second time.
	ErrRan = errors.New("the manager has been run")
)

// Manager runs controllers. Make one with [New]; add to it before it is run.
type Manager struct {
	*controller.Base
	opts     Options
	elector  *leader.Elector
	registry *prometheus.Registry
	requests *requestMetrics

	mu        sync.Mutex
	err       error // of what was added
	ran       bool
	recorders map[string]*events.Recorder
	tasks     []task
	live      []check
	ready     []check
}

// task is something else that is run.
type task struct {
	name       string
	run        func(context.Context) error
	everywhere bool
}

// New returns a manager without controllers. It sends nothing.
func New(o Options) (*Manager, error) {
	o = o.withDefaults()
	cfg := o.Config
	if cfg == nil {
		var err error
		if cfg, err = client.LoadConfig(o.Cluster); err != nil {
			return nil, err
		}
	}
	m := &Manager{opts: o, registry: prometheus.NewRegistry(), requests: newRequestMetrics(), recorders: map[string]*events.Recorder{}}
	opts := append([]client.Option{client.Observe(m.requests.observe), client.Scheme(o.Scheme)}, o.Client...)
	base, err := controller.NewBase(cfg, controller.BaseOptions{
		Logger: o.Logger, Client: opts, Informers: o.Informers, Tracer: o.Tracer, Grace: o.Grace * 2 / 3, Stale: o.Stale,
	})
	if err != nil {
		return nil, err
	}
	m.Base = base
	if o.Leader != nil {
		election := *o.Leader
		if election.Logger == nil {
			election.Logger = o.Logger
		}
		m.elector = leader.New(base.Conn(), election)
	}
	m.registerMetrics()
	return m, nil
}

// Add adds controllers. What is wrong with one is an error of [Manager.Run].
func (m *Manager) Add(controllers ...*controller.Controller) {
	for _, c := range controllers {
		if err := m.add(c); err != nil {
			m.mu.Lock()
			m.err = errors.Join(m.err, err)
			m.mu.Unlock()
		}
	}
}

func (m *Manager) add(c *controller.Controller) error {
	if slices.ContainsFunc(m.Controllers(), func(o *controller.Controller) bool { return o.Name() == c.Name() }) {
		return fmt.Errorf("controller %s: %w: another has that name", c.Name(), controller.ErrOption)
	}
	return m.Base.Add(c)
}

// Go has something else run: where the controllers do, after they have been
// started. Its context ends when theirs does. If it returns an error, all ends with
// that error; if it returns nil, the rest goes on.
func (m *Manager) Go(name string, run func(ctx context.Context) error) {
	m.addTask(task{name: name, run: run})
}

// GoEverywhere is [Manager.Go] for what runs in every process, whoever leads.
func (m *Manager) GoEverywhere(name string, run func(ctx context.Context) error) {
	m.addTask(task{name: name, run: run, everywhere: true})
}

func (m *Manager) addTask(t task) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tasks = append(m.tasks, t)
}

// Events returns the recorder of a component, such as "foo-controller", which the
// manager runs.
func (m *Manager) Events(component string) *events.Recorder {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.recorders[component]
	if r == nil {
		r = events.New(m.Conn(), events.Options{Component: component, Logger: m.opts.Logger})
		m.recorders[component] = r
	}
	return r
}

// Leading reports whether the controllers run here: always, if there is no election.
func (m *Manager) Leading() bool { return m.elector == nil || m.elector.Leading() }

// Metrics is where a program registers metrics of its own.
func (m *Manager) Metrics() *prometheus.Registry { return m.registry }

// Run runs all that was added until ctx ends, which is not an error. It is called
// once.
func (m *Manager) Run(ctx context.Context) error {
	m.mu.Lock()
	err := m.err
	if m.ran {
		err = ErrRan
	}
	m.ran = true
	m.mu.Unlock()
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- m.run(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	late := time.NewTimer(m.opts.Grace)
	defer late.Stop()
	select {
	case err := <-done:
		return err
	case <-late.C:
		return fmt.Errorf("%w: after %s there still is %s", ErrGrace, m.opts.Grace, m.unfinished())
	}
}

// unfinished names what is still at work.
func (m *Manager) unfinished() string {
	var out []string
	for _, c := range m.Controllers() {
		if n := c.Status().Active; n > 0 {
			out = append(out, fmt.Sprintf("controller %s with %d reconciles", c.Name(), n))
		}
	}
	if len(out) == 0 {
		return "something that was given to Go, or pending events"
	}
	return strings.Join(out, ", ")
}

// run starts one layer after the other, and ends them in the reverse order: each
// outlives what stands on it.
func (m *Manager) run(ctx context.Context) (err error) {
	stage := newStage(nil)
	defer stage.end(&err)
	if m.opts.Listen != "" {
		if err := m.serve(stage); err != nil {
			return err
		}
	}
	recording := newStage(stage)
	defer recording.end(&err)
	for name, r := range m.allRecorders() {
		recording.run("events of "+name, r.Run)
	}
	m.Informers().Start()
	defer m.Informers().Shutdown()

	everywhere := newStage(recording)
	defer everywhere.end(&err)
	m.startTasks(everywhere, true)
	ctx, cancel := mergeCancel(ctx, everywhere.ctx)
	defer cancel()
	if m.elector == nil {
		return m.lead(ctx)
	}
	return m.elector.Run(ctx, m.lead)
}

// lead runs the controllers until ctx ends.
func (m *Manager) lead(ctx context.Context) (err error) {
	work := newStageIn(ctx)
	defer work.end(&err)
	for _, c := range m.Controllers() {
		work.run("controller "+c.Name(), func(ctx context.Context) error {
			c.Run(ctx)
			return nil
		})
	}
	m.startTasks(work, false)
	<-work.ctx.Done()
	return nil
}

func (m *Manager) startTasks(in *stage, everywhere bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.tasks {
		if t.everywhere == everywhere {
			in.run(t.name, t.run)
		}
	}
}

func (m *Manager) allRecorders() map[string]*events.Recorder {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]*events.Recorder{}
	for name, r := range m.recorders {
		out[name] = r
	}
	return out
}

// ServeHTTP answers what [Options].Listen is for, for programs that have a server.
func (m *Manager) ServeHTTP(w http.ResponseWriter, r *http.Request) { m.handler().ServeHTTP(w, r) }
