package manager

import (
	"context"
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/workqueue"
)

// requestMetrics count the requests of clients, as client-go does.
type requestMetrics struct {
	total    *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newRequestMetrics() *requestMetrics {
	return &requestMetrics{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rest_client_requests_total", Help: "Requests to the API server, by the code of the answer.",
		}, []string{"code", "method", "host"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "rest_client_request_duration_seconds", Help: "How long requests to the API server took.",
			Buckets: []float64{0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0},
		}, []string{"verb", "host"}),
	}
}

func (m *requestMetrics) observe(_ context.Context, c client.Call) {
	code := "<error>"
	if c.Code != 0 {
		code = strconv.Itoa(c.Code)
	}
	m.total.WithLabelValues(code, c.Method, c.Host).Inc()
	m.duration.WithLabelValues(c.Method, c.Host).Observe(c.Duration.Seconds())
}

func (m *Manager) registerMetrics() {
	m.registry.MustRegister(m.requests.total, m.requests.duration, &figures{m},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
}

// figures are read when they are asked for.
type figures struct{ of *Manager }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	reconciles = desc("controller_runtime_reconcile_total", "Reconciles, by their result.", "controller", "result")
	failures   = desc("controller_runtime_reconcile_errors_total", "Reconciles that failed.", "controller")
	terminals  = desc("controller_runtime_terminal_reconcile_errors_total", "Reconciles that failed and are not tried again.", "controller")
	panics     = desc("controller_runtime_reconcile_panics_total", "Panics of reconcilers.", "controller")
	took       = desc("controller_runtime_reconcile_time_seconds", "How long reconciles took.", "controller")
	workers    = desc("controller_runtime_max_concurrent_reconciles", "How many keys can be worked on at once.", "controller")
	active     = desc("controller_runtime_active_workers", "How many keys are worked on.", "controller")
	ignored    = desc("evenkeel_reconcile_ignored_total", "Reconciles left out since only one's own writes would have caused them.", "controller")
	hot        = desc("evenkeel_hot_loops", "Keys whose reconciles cause each other now.", "controller")
	hotTotal   = desc("evenkeel_hot_loops_total", "Keys whose reconciles have caused each other.", "controller")
	objects    = desc("evenkeel_informer_objects", "Objects in the cache.", "kind")
	bytes      = desc("evenkeel_informer_bytes", "Memory of the cache.", "kind")
	synced     = desc("evenkeel_informer_synced", "Whether the cache has had the whole state.", "kind")
	failing    = desc("evenkeel_informer_failing", "Whether a watch of the cache is broken.", "kind")
	master     = desc("leader_election_master_status", "Whether this process leads.", "name")
)

func (f *figures) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{reconciles, failures, terminals, panics, took, workers, active, ignored, hot, hotTotal, objects, bytes, synced, failing, master} {
		to <- d
	}
}

func (f *figures) Collect(to chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, t prometheus.ValueType, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, t, v, labels...)
	}
	for _, c := range f.of.Controllers() {
		f.controller(c.Status(), to, send)
	}
	sums := map[string]*[4]float64{}
	for _, in := range f.of.Informers().Status() { // two of a kind, of different scopes, are one figure
		s := sums[in.Kind]
		if s == nil {
			s = &[4]float64{2: 1}
			sums[in.Kind] = s
		}
		s[0] += float64(in.Objects)
		s[1] += float64(in.Bytes)
		s[2] = min(s[2], one(in.Synced))
		s[3] = max(s[3], one(in.Err != nil))
	}
	for kind, s := range sums {
		for i, d := range []*prometheus.Desc{objects, bytes, synced, failing} {
			send(d, prometheus.GaugeValue, s[i], kind)
		}
	}
	if f.of.elector != nil {
		send(master, prometheus.GaugeValue, f.of.elector.MasterStatus(), f.of.opts.Leader.Name)
	}
}

func (f *figures) controller(s controller.Status, to chan<- prometheus.Metric, send func(*prometheus.Desc, prometheus.ValueType, float64, ...string)) {
	failed := s.Results["error"] + s.Results["terminal_error"]
	for _, result := range []string{"success", "requeue", "requeue_after"} {
		send(reconciles, prometheus.CounterValue, float64(s.Results[result]), s.Name, result)
	}
	send(reconciles, prometheus.CounterValue, float64(failed), s.Name, "error")
	send(failures, prometheus.CounterValue, float64(failed), s.Name)
	send(terminals, prometheus.CounterValue, float64(s.Results["terminal_error"]), s.Name)
	send(panics, prometheus.CounterValue, float64(s.Panics), s.Name)
	send(workers, prometheus.GaugeValue, float64(s.Workers), s.Name)
	send(active, prometheus.GaugeValue, float64(s.Active), s.Name)
	send(ignored, prometheus.CounterValue, float64(s.Ignored), s.Name)
	send(hot, prometheus.GaugeValue, float64(len(s.Hot)), s.Name)
	send(hotTotal, prometheus.CounterValue, float64(s.HotTotal), s.Name)
	buckets := map[float64]uint64{}
	for bound, n := range s.Took.Bounds {
		buckets[bound.Seconds()] = n
	}
	to <- prometheus.MustNewConstHistogram(took, s.Took.Count, s.Took.Sum.Seconds(), buckets, s.Name)
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// serveMetrics writes the registry's metrics, and those of the queues.
func (m *Manager) serveMetrics(w http.ResponseWriter, _ *http.Request) {
	families, err := m.registry.Gather()
	if err != nil {
		http.Error(w, "gather metrics: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(w, family); err != nil {
			return // whoever asked has gone
		}
	}
	queues := map[string]workqueue.Stats{}
	for _, c := range m.Controllers() {
		queues[c.Name()] = c.Status().Queue
	}
	_ = workqueue.WriteMetrics(w, queues)
}
