package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// maxTimeout is the longest that API servers wait for an answer.
const maxTimeout = 30 * time.Second

// answerFunc answers a review.
type answerFunc func(ctx context.Context, body []byte) (any, error)

// handle has reviews answered that are posted to a path.
func (s *Server) handle(path string, limit int64, answer answerFunc) {
	s.handler.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		running := s.figures.running.WithLabelValues(path)
		running.Inc()
		defer running.Dec()
		out, err := s.answer(w, r, limit, answer)
		code := http.StatusOK
		if err != nil {
			code = codeOf(err)
			s.opts.Logger.Error("a webhook has failed", "webhook", path, "code", code, "error", err)
			http.Error(w, err.Error(), code)
		} else {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(out) // whoever asked has gone
		}
		s.figures.total.WithLabelValues(path, strconv.Itoa(code)).Inc()
		s.figures.latency.WithLabelValues(path).Observe(time.Since(began).Seconds())
	})
}

// answer reads a review, and returns the answer. A panic is an error.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, limit int64, answer answerFunc) (out []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.figures.panics.Inc()
			s.opts.Logger.Error("a webhook has panicked", "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err != nil {
		return nil, fmt.Errorf("read the review: %w", err)
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeoutOf(r))
	defer cancel()
	review, err := answer(ctx, body)
	if err != nil {
		return nil, err
	}
	return json.Marshal(review)
}

// timeoutOf is how long the API server is going to wait.
func timeoutOf(r *http.Request) time.Duration {
	d, err := time.ParseDuration(r.URL.Query().Get("timeout"))
	if err != nil || d <= 0 {
		return maxTimeout
	}
	return min(d, maxTimeout)
}

func codeOf(err error) int {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, errReview):
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}

// figures are the metrics of a server, under controller-runtime's names.
type figures struct {
	total   *prometheus.CounterVec
	latency *prometheus.HistogramVec
	running *prometheus.GaugeVec
	panics  prometheus.Counter
}

func newFigures() *figures {
	return &figures{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "controller_runtime_webhook_requests_total", Help: "Reviews, by the code of the answer.",
		}, []string{"webhook", "code"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "controller_runtime_webhook_latency_seconds", Help: "How long reviews took.",
			Buckets: []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30},
		}, []string{"webhook"}),
		running: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "controller_runtime_webhook_requests_in_flight", Help: "Reviews that are being answered.",
		}, []string{"webhook"}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "controller_runtime_webhook_panics_total", Help: "Panics of webhooks.",
		}),
	}
}
