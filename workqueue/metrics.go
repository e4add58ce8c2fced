package workqueue

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// WriteMetrics writes the figures of queues in the text format of Prometheus,
// under the names that client-go gives them, with the label name and, for
// dashboards of controller-runtime, controller. The keys are the queues' names.
func WriteMetrics(w io.Writer, queues map[string]Stats) error {
	m := metrics{w: w, queues: queues, names: slices.Sorted(maps.Keys(queues))}
	m.each("workqueue_depth", "gauge", "How many keys are ready, or will be when their worker is done.",
		func(s Stats) float64 { return float64(s.Depth) })
	m.each("workqueue_adds_total", "counter", "How many keys became ready.", func(s Stats) float64 { return float64(s.Adds) })
	m.each("workqueue_retries_total", "counter", "How many keys were added to be worked on later.", func(s Stats) float64 { return float64(s.Retries) })
	m.each("workqueue_unfinished_work_seconds", "gauge", "How long all keys at work have been, together.", func(s Stats) float64 { return s.Unfinished.Seconds() })
	m.each("workqueue_longest_running_processor_seconds", "gauge", "How long the key has been at work that has been for longest.",
		func(s Stats) float64 { return s.LongestRunning.Seconds() })
	m.histogram("workqueue_queue_duration_seconds", "How long keys were ready before they were worked on.", func(s Stats) Histogram { return s.QueueTime })
	m.histogram("workqueue_work_duration_seconds", "How long keys were worked on.", func(s Stats) Histogram { return s.WorkTime })
	return m.err
}

// metrics writes until something fails.
type metrics struct {
	w      io.Writer
	queues map[string]Stats
	names  []string
	err    error
}

func (m *metrics) printf(format string, args ...any) {
	if m.err == nil {
		_, m.err = fmt.Fprintf(m.w, format, args...)
	}
}

func (m *metrics) head(name, kind, help string) {
	m.printf("# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

func (m *metrics) each(name, kind, help string, value func(Stats) float64) {
	m.head(name, kind, help)
	for _, queue := range m.names {
		m.printf("%s{%s} %s\n", name, labelsOf(queue), number(value(m.queues[queue])))
	}
}

func (m *metrics) histogram(name, help string, of func(Stats) Histogram) {
	m.head(name, "histogram", help)
	for _, queue := range m.names {
		h := of(m.queues[queue])
		for bound, count := range h.Buckets() {
			m.printf("%s_bucket{%s,le=%q} %d\n", name, labelsOf(queue), number(bound.Seconds()), count)
		}
		m.printf("%s_bucket{%s,le=\"+Inf\"} %d\n", name, labelsOf(queue), h.Count)
		m.printf("%s_sum{%s} %s\n%s_count{%s} %d\n", name, labelsOf(queue), number(h.Sum.Seconds()), name, labelsOf(queue), h.Count)
	}
}

func labelsOf(queue string) string {
	q := strconv.Quote(queue)
	return "controller=" + q + ",name=" + q
}

func number(f float64) string { return strings.ToLower(strconv.FormatFloat(f, 'g', -1, 64)) }
