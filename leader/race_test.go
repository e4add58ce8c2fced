package leader_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/leader"
)

// race is an election that is watched: it fails the test when two lead at once.
type race struct {
	t       *testing.T
	cluster *evenkeeltest.Env
	direct  *client.Client[*coordinationv1.Lease]
	start   time.Time
	runners sync.WaitGroup

	mu    sync.Mutex
	inner string   // who leads
	terms []span   // in the order of their beginnings
	heard []string // by OnNewLeader, of all
}

type span struct {
	who      string
	from, to time.Duration // to is 0 while it lasts
}

func newRace(t *testing.T, c *evenkeeltest.Env) *race {
	t.Helper()
	conn, err := connect(c.Server, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &race{t: t, cluster: c, start: time.Now(), direct: client.Of[*coordinationv1.Lease](conn).In("default")}
}

var leaseKey = client.Key{Namespace: "default", Name: "the-lease"}

// runner is a candidate and its way to the server.
type runner struct {
	*leader.Elector
	road *road
	stop context.CancelFunc
	done chan struct{}
	err  error // of Run, once done is closed
}

// entry says how a candidate runs.
type entry struct {
	name    string
	options leader.Options
	skew    time.Duration
	// windDown is how long the work takes to end.
	windDown time.Duration
	again    bool // Run again after leadership was lost
}

func (r *race) enter(n entry) *runner {
	r.t.Helper()
	way := &road{skew: n.skew}
	conn, err := connect(r.cluster.Server, way.through)
	if err != nil {
		r.t.Fatal(err)
	}
	o := n.options
	o.Namespace, o.Name = leaseKey.Namespace, leaseKey.Name
	if o.Identity == "" {
		o.Identity = n.name
	}
	o.OnNewLeader = func(id string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.heard = append(r.heard, n.name+" hears "+id)
	}
	o.Logger = slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithCancel(context.Background())
	r.t.Cleanup(func() {
		cancel()
		r.runners.Wait()
	})
	c := &runner{Elector: leader.New(conn, o), road: way, stop: cancel, done: make(chan struct{})}
	r.runners.Go(func() {
		defer close(c.done)
		for {
			c.err = c.Run(ctx, func(ctx context.Context) error { return r.lead(ctx, n) })
			if !n.again || ctx.Err() != nil {
				return
			}
		}
	})
	return c
}

func (r *race) lead(ctx context.Context, n entry) error {
	r.mu.Lock()
	if r.inner != "" {
		r.t.Errorf("at %s %s leads while %s does", time.Since(r.start), n.name, r.inner)
	}
	r.inner = n.name
	i := len(r.terms)
	r.terms = append(r.terms, span{who: n.name, from: time.Since(r.start)})
	r.mu.Unlock()
	<-ctx.Done()
	time.Sleep(n.windDown)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inner = ""
	r.terms[i].to = time.Since(r.start)
	return ctx.Err()
}

// end stops all.
func (r *race) end(all ...*runner) {
	for _, c := range all {
		c.stop()
	}
	r.runners.Wait()
}

func (r *race) leader() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.inner
}

// order is who led, one after another.
func (r *race) order() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, s := range r.terms {
		all = append(all, s.who)
	}
	return strings.Join(all, " ")
}

func (r *race) term(i int) span {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if i >= len(r.terms) {
		r.t.Fatalf("there were %d terms: %v", len(r.terms), r.terms)
	}
	return r.terms[i]
}

// mustLead waits for a candidate to lead.
func (r *race) mustLead(who string, within time.Duration) {
	r.t.Helper()
	for range 1000 {
		if r.leader() == who {
			return
		}
		time.Sleep(within / 1000)
	}
	r.t.Fatalf("after %s %q leads, not %q; %v", within, r.leader(), who, r.terms)
}

func (r *race) lease() *coordinationv1.Lease {
	r.t.Helper()
	l, err := r.direct.Get(context.Background(), leaseKey)
	if err != nil {
		r.t.Fatal(err)
	}
	return l
}

// mode is what becomes of the requests of a candidate.
type mode string

const (
	open     mode = "open"
	hangs    mode = "hangs"             // until the context ends
	deaf     mode = "hangs and is deaf" // to the end of the context too, for a minute
	refuses  mode = "is refused"
	fails    mode = "fails with 500"
	loses    mode = "loses the answer" // of what is done
	slow     mode = "is slow"          // to bring the answer
	noWatch  mode = "may not watch"
	badWatch mode = "cannot watch"
	conflict mode = "always conflicts"
)

// road is the way of a candidate to the server, and its clock.
type road struct {
	skew time.Duration
	next http.RoundTripper

	mu     sync.Mutex
	mode   mode
	once   bool // for one write only
	writes int
	looks  int
}

func (r *road) through(next http.RoundTripper) http.RoundTripper {
	r.next = next
	return r
}

func (r *road) set(m mode) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mode, r.once = m, false
}

func (r *road) setOnce(m mode) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mode, r.once = m, true
}

// asked is how often the candidate read and wrote.
func (r *road) asked() (looks, writes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.looks, r.writes
}

func (r *road) take(q *http.Request) mode {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.mode
	switch {
	case q.Method != http.MethodGet:
		r.writes++
		if r.once {
			r.mode = open
		}
	default:
		r.looks++
		if r.once {
			m = open
		}
	}
	return m
}

func (r *road) RoundTrip(q *http.Request) (*http.Response, error) {
	watch := q.URL.Query().Get("watch") != ""
	m := r.take(q)
	switch {
	case m == hangs:
		<-q.Context().Done()
		return nil, q.Context().Err()
	case m == deaf:
		time.Sleep(time.Minute)
		return nil, errors.New("connection timed out")
	case m == refuses:
		return nil, errors.New("connection refused")
	case m == fails:
		return status(q, 500, metav1.StatusReasonInternalError), nil
	case m == conflict && q.Method == http.MethodPut:
		return status(q, 409, metav1.StatusReasonConflict), nil
	case m == noWatch && watch:
		return status(q, 403, metav1.StatusReasonForbidden), nil
	case m == badWatch && watch:
		return status(q, 500, metav1.StatusReasonInternalError), nil
	case m == loses && !watch:
		if resp, err := r.next.RoundTrip(q); err == nil {
			_ = resp.Body.Close()
		}
		return nil, errors.New("connection reset by a peer that had heard it")
	}
	if m == slow && !watch {
		defer time.Sleep(renewDeadline/2 - time.Millisecond)
	}
	if r.skew != 0 {
		return r.skewed(q, watch)
	}
	return r.next.RoundTrip(q)
}

// skewed sends and gets leases as a machine would whose clock is wrong.
func (r *road) skewed(q *http.Request, watch bool) (*http.Response, error) {
	if q.Body != nil {
		body, err := shift(q.Body, r.skew)
		if err != nil {
			return nil, err
		}
		q = q.Clone(q.Context())
		q.Body, q.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	resp, err := r.next.RoundTrip(q)
	if err != nil || resp.StatusCode > 299 {
		return resp, err
	}
	if watch {
		resp.Body = shiftEvents(resp.Body, -r.skew)
		return resp, nil
	}
	body, err := shift(resp.Body, -r.skew)
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp.Header.Del("Content-Length")
	return resp, err
}

func shift(from io.ReadCloser, by time.Duration) ([]byte, error) {
	defer func() { _ = from.Close() }()
	var l coordinationv1.Lease
	if err := json.NewDecoder(from).Decode(&l); err != nil {
		return nil, err
	}
	for _, t := range []*metav1.MicroTime{l.Spec.AcquireTime, l.Spec.RenewTime} {
		if t != nil {
			t.Time = t.Add(by)
		}
	}
	return json.Marshal(l)
}

// shiftEvents is shift for a watch.
func shiftEvents(from io.ReadCloser, by time.Duration) io.ReadCloser {
	out, in := io.Pipe()
	go func() {
		events := json.NewDecoder(from)
		for {
			var e struct {
				Type   string          `json:"type"`
				Object json.RawMessage `json:"object"`
			}
			err := events.Decode(&e)
			if err == nil {
				e.Object, err = shift(io.NopCloser(bytes.NewReader(e.Object)), by)
			}
			if err == nil {
				err = json.NewEncoder(in).Encode(e)
			}
			if err != nil {
				_ = in.CloseWithError(err)
				return
			}
		}
	}()
	return both{out, from}
}

// both closes a stream and what it is made of.
type both struct {
	*io.PipeReader
	from io.Closer
}

func (b both) Close() error {
	_ = b.PipeReader.Close()
	return b.from.Close()
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
