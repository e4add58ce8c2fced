package events_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/kubectl/pkg/describe"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/events"
)

// scene is a recorder that runs, its way to the server, and another way to see what
// the server has.
type scene struct {
	*events.Recorder
	t       *testing.T
	cluster *evenkeeltest.Env
	road    *road
	direct  *client.Conn
	start   time.Time
	cancel  context.CancelFunc
	done    chan error
}

func newScene(t *testing.T, c *evenkeeltest.Env, o events.Options, opts ...client.Option) *scene {
	t.Helper()
	s := idleScene(t, c, o, c.Config(), opts...)
	s.run()
	return s
}

// idleScene has a recorder that does not run yet.
func idleScene(t *testing.T, c *evenkeeltest.Env, o events.Options, cfg *rest.Config, opts ...client.Option) *scene {
	t.Helper()
	s := &scene{t: t, cluster: c, road: &road{}, direct: c.Conn(), start: time.Now(), cancel: func() {}, done: make(chan error, 1)}
	cfg.Wrap(s.road.through)
	conn, err := client.Connect(cfg, append(opts, client.Retries(0))...)
	if err != nil {
		t.Fatal(err)
	}
	o.Component = cmp.Or(o.Component, "foo-controller")
	o.Instance = cmp.Or(o.Instance, "foo-1")
	o.Logger = slog.New(slog.DiscardHandler)
	s.Recorder = events.New(conn, o)
	return s
}

func (s *scene) run() {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = sync.OnceFunc(func() {
		cancel()
		if err := <-s.done; err != nil {
			s.t.Error(err)
		}
	})
	s.t.Cleanup(s.cancel)
	go func() { s.done <- s.Run(ctx) }()
}

// all are the events that the server has, the oldest first.
func (s *scene) all() []*eventsv1.Event {
	s.t.Helper()
	all, _, err := client.Of[*eventsv1.Event](s.direct).All(context.Background())
	if err != nil {
		s.t.Fatal(err)
	}
	slices.SortStableFunc(all, func(a, b *eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	return all
}

// one is the only event that there is.
func (s *scene) one() *eventsv1.Event {
	s.t.Helper()
	all := s.all()
	if len(all) != 1 {
		s.t.Fatalf("there are %d events: %s", len(all), s.describe())
	}
	return all[0]
}

// count is how often an event happened.
func count(e *eventsv1.Event) int {
	if e.Series == nil {
		return 1
	}
	return int(e.Series.Count)
}

// must checks the figures, and that they add up.
func (s *scene) must(what string, ok func(events.Stats) bool) {
	s.t.Helper()
	st := s.Stats()
	if !ok(st) || st.Recorded != st.Told+st.Pending+st.Dropped.Total() {
		s.t.Errorf("%s: %+v", what, st)
	}
}

// describe is what kubectl describe says: by kubectl's own code.
func (s *scene) describe() string {
	s.t.Helper()
	all, _, err := client.Of[*corev1.Event](s.direct).All(context.Background())
	if err != nil {
		s.t.Fatal(err)
	}
	list := &corev1.EventList{}
	for _, e := range all {
		list.Items = append(list.Items, *e)
	}
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 8, 2, ' ', 0)
	describe.DescribeEvents(list, describe.NewPrefixWriter(w))
	_ = w.Flush()
	return out.String()
}

// get is a line of what kubectl get events -o wide prints: the server's own table.
func (s *scene) get(namespace string) string {
	s.t.Helper()
	h, err := rest.HTTPClientFor(s.cluster.Config())
	if err != nil {
		s.t.Fatal(err)
	}
	q, _ := http.NewRequest(http.MethodGet, "https://127.0.0.1/api/v1/namespaces/"+namespace+"/events", nil)
	q.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	resp, err := h.Do(q)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var table metav1.Table
	if err := json.NewDecoder(resp.Body).Decode(&table); err != nil {
		s.t.Fatal(err)
	}
	var cells []string
	for i, c := range table.ColumnDefinitions {
		cells = append(cells, fmt.Sprintf("%s=%v", c.Name, table.Rows[0].Cells[i]))
	}
	return strings.Join(cells, " ")
}

// pod is an object to report about, which does not say its kind.
func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "uid-of-" + "pod", ResourceVersion: "7"}}
}

// mode is what becomes of writes.
type mode string

const (
	open     mode = "open"
	hangs    mode = "hangs" // until the context ends
	refuses  mode = "is refused"
	fails    mode = "fails with 500"
	busy     mode = "fails with 429"
	conflict mode = "conflicts"
	unknown  mode = "is unauthorized"
	loses    mode = "loses the answer" // of what is done
)

// road is the way of a recorder to the server.
type road struct {
	next http.RoundTripper

	mu    sync.Mutex
	mode  mode
	asked []string
}

func (r *road) through(next http.RoundTripper) http.RoundTripper {
	r.next = next
	return r
}

func (r *road) set(m mode) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mode = m
}

// writes are the methods of the requests so far.
func (r *road) writes() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.asked)
}

func (r *road) RoundTrip(q *http.Request) (*http.Response, error) {
	r.mu.Lock()
	m := r.mode
	r.asked = append(r.asked, q.Method)
	r.mu.Unlock()
	switch m {
	case hangs:
		<-q.Context().Done()
		return nil, q.Context().Err()
	case refuses:
		return nil, errors.New("connection refused")
	case fails:
		return status(q, 500, metav1.StatusReasonInternalError), nil
	case busy:
		return status(q, 429, metav1.StatusReasonTooManyRequests), nil
	case conflict:
		return status(q, 409, metav1.StatusReasonConflict), nil
	case unknown:
		return status(q, 401, metav1.StatusReasonUnauthorized), nil
	case loses:
		if resp, err := r.next.RoundTrip(q); err == nil {
			_ = resp.Body.Close()
		}
		return nil, errors.New("connection reset by a peer that had heard it")
	}
	return r.next.RoundTrip(q)
}

func status(q *http.Request, code int, reason metav1.StatusReason) *http.Response {
	body, _ := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: fmt.Sprint("by the road: ", reason),
	})
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Request: q,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}
