package server

import (
	"bufio"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/even-keel/evenkeel/server/rest"
)

// meters are the server's metrics, by the names that dashboards know.
type meters struct {
	registry *prometheus.Registry
	total    *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight *prometheus.GaugeVec
}

func newMeters() *meters {
	m := &meters{
		registry: prometheus.NewRegistry(),
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_request_total", Help: "Requests by verb, resource and code.",
		}, []string{"verb", "group", "version", "resource", "subresource", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "apiserver_request_duration_seconds", Help: "Seconds that requests took, watches apart.",
			Buckets: []float64{0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 30},
		}, []string{"verb", "group", "resource"}),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "apiserver_current_inflight_requests", Help: "Requests under way.",
		}, []string{"request_kind"}),
	}
	m.registry.MustRegister(m.total, m.duration, m.inFlight, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *meters) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// meter is one request's answer, measured.
type meter struct {
	http.ResponseWriter
	meters *meters
	info   rest.Info
	start  time.Time
	code   int
}

func (m *meters) begin(w http.ResponseWriter, info rest.Info) *meter {
	m.inFlight.WithLabelValues(info.RequestKind()).Inc()
	return &meter{ResponseWriter: w, meters: m, info: info, start: time.Now()}
}

func (m *meter) end() {
	i := m.info
	m.meters.inFlight.WithLabelValues(i.RequestKind()).Dec()
	code := m.code
	if code == 0 {
		code = http.StatusOK
	}
	m.meters.total.WithLabelValues(i.MetricVerb(), i.Group, i.Version, i.Resource, i.Subresource, strconv.Itoa(code)).Inc()
	if !i.Watch {
		m.meters.duration.WithLabelValues(i.MetricVerb(), i.Group, i.Resource).Observe(time.Since(m.start).Seconds())
	}
}

func (m *meter) WriteHeader(code int) {
	if m.code == 0 {
		m.code = code
	}
	m.ResponseWriter.WriteHeader(code)
}

func (m *meter) Write(p []byte) (int, error) {
	if m.code == 0 {
		m.code = http.StatusOK
	}
	return m.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach what is beneath.
func (m *meter) Unwrap() http.ResponseWriter { return m.ResponseWriter }

// Hijack is for WebSockets, whose library looks for it here.
func (m *meter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	m.code = http.StatusSwitchingProtocols
	return http.NewResponseController(m.ResponseWriter).Hijack()
}
