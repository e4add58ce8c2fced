package truth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/events"
	"github.com/even-keel/evenkeel/leader"
)

// servers are those that the tests of leader and events hold.
var servers = map[string]func(*testing.T) *target{"evenkeel": evenkeel, "kube-apiserver": kubernetes}

const (
	leaseFor   = 3 * time.Second
	renewIn    = 2 * time.Second
	retryEvery = 300 * time.Millisecond
)

// hall is where leaders are seen: two at once fail the test.
type hall struct {
	t     *testing.T
	mu    sync.Mutex
	in    string
	order []string
}

func (h *hall) enter(who string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.in != "" {
		h.t.Errorf("%s leads while %s does, after %v", who, h.in, h.order)
	}
	h.in, h.order = who, append(h.order, who)
}

func (h *hall) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.in = ""
}

func (h *hall) leader() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.in
}

func (h *hall) await(who string, within time.Duration) {
	h.t.Helper()
	for end := time.Now().Add(within); h.leader() != who; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			h.t.Fatalf("%q leads, not %q, after %v", h.leader(), who, h.order)
		}
	}
}

// cut is a line that can be cut.
type cutLine struct{ cut atomic.Bool }

func (c *cutLine) config(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper { return cutTripper{c, rt} })
	return cfg
}

type cutTripper struct {
	line *cutLine
	next http.RoundTripper
}

func (c cutTripper) RoundTrip(q *http.Request) (*http.Response, error) {
	if c.line.cut.Load() {
		<-q.Context().Done()
		return nil, q.Context().Err()
	}
	return c.next.RoundTrip(q)
}

// lead is the work of a candidate, until ctx ends.
type lead func(ctx context.Context)

// ours runs a candidate of ours once.
func ours(ctx context.Context, t *testing.T, cfg *rest.Config, who string, work lead) {
	conn, err := client.Connect(cfg)
	if err != nil {
		t.Error(err)
		return
	}
	e := leader.New(conn, leader.Options{
		Namespace: "default", Name: "contended", Identity: who,
		LeaseDuration: leaseFor, RenewDeadline: renewIn, RetryPeriod: retryEvery,
	})
	if err := e.Run(ctx, func(ctx context.Context) error { work(ctx); return nil }); err != nil && !errors.Is(err, leader.ErrLost) {
		t.Error(err)
	}
}

// theirs runs a candidate of client-go once, which releases the lease at the end.
func theirs(ctx context.Context, t *testing.T, cfg *rest.Config, who string, work lead) {
	clientGo(ctx, t, cfg, who, work, true)
}

// theirsKeeping does not release: with ReleaseOnCancel, client-go tells the work to
// stop only after it has tried to release, for RenewDeadline, a lease that it could
// not renew; by then somebody else leads.
func theirsKeeping(ctx context.Context, t *testing.T, cfg *rest.Config, who string, work lead) {
	clientGo(ctx, t, cfg, who, work, false)
}

// clientGo waits for the work, which Run of client-go does not.
func clientGo(ctx context.Context, t *testing.T, cfg *rest.Config, who string, work lead, release bool) {
	set, err := clientset.NewForConfig(cfg)
	if err != nil {
		t.Error(err)
		return
	}
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: "default", Name: "contended"}, Client: set.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: who},
		},
		LeaseDuration: leaseFor, RenewDeadline: renewIn, RetryPeriod: retryEvery, ReleaseOnCancel: release,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				wg.Add(1)
				defer wg.Done()
				work(ctx)
				cancel()
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		t.Error(err)
		return
	}
	e.Run(ctx)
	wg.Wait()
}

// TestCandidatesOfBothContend: each leads for a moment and steps down, again and
// again.
func TestCandidatesOfBothContend(t *testing.T) {
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			to := start(t)
			h := &hall{t: t}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			var wg sync.WaitGroup
			for i, run := range []func(context.Context, *testing.T, *rest.Config, string, lead){ours, theirs, ours, theirs} {
				who := fmt.Sprintf("%s-%d", []string{"ours", "theirs"}[i%2], i)
				wg.Go(func() {
					for ctx.Err() == nil {
						turn, done := context.WithCancel(ctx)
						run(turn, t, to.admin, who, func(ctx context.Context) {
							h.enter(who)
							time.Sleep(300 * time.Millisecond)
							h.leave()
							done() // ours would release anyway; client-go on cancel
						})
						done()
						time.Sleep(500 * time.Millisecond)
					}
				})
			}
			wg.Wait()
			all := strings.Join(h.order, " ")
			t.Log(all)
			if strings.Count(all, "ours") < 3 || strings.Count(all, "theirs") < 3 {
				t.Errorf("the leaders were %s", all)
			}
		})
	}
}

// TestEitherTakesOverFromTheOther when its line is cut.
func TestEitherTakesOverFromTheOther(t *testing.T) {
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			to := start(t)
			for round, pair := range [][2]func(context.Context, *testing.T, *rest.Config, string, lead){{ours, theirsKeeping}, {theirsKeeping, ours}} {
				h := &hall{t: t}
				var line cutLine
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				work := func(who string) lead {
					return func(ctx context.Context) {
						h.enter(who)
						<-ctx.Done()
						h.leave()
					}
				}
				first, second := fmt.Sprintf("first-%d", round), fmt.Sprintf("second-%d", round)
				wg.Go(func() { pair[0](ctx, t, line.config(to.admin), first, work(first)) })
				h.await(first, 10*time.Second)
				wg.Go(func() { pair[1](ctx, t, to.admin, second, work(second)) })
				time.Sleep(2 * leaseFor)
				if got := h.leader(); got != first {
					t.Errorf("%s leads", got)
				}
				line.cut.Store(true)
				h.await(second, 3*leaseFor)
				conn, err := client.Connect(to.admin)
				if err != nil {
					t.Fatal(err)
				}
				l, err := client.Of[*coordinationv1.Lease](conn).Get(ctx, client.Key{Namespace: "default", Name: "contended"})
				if err != nil || *l.Spec.HolderIdentity != second {
					t.Error(l, err)
				}
				cancel()
				wg.Wait()
			}
		})
	}
}

// TestADeletedLeaseIsNotMadeByAnUpdate with the UID of the one that was.
func TestADeletedLeaseIsNotMadeByAnUpdate(t *testing.T) {
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			conn, err := client.Connect(start(t).admin)
			if err != nil {
				t.Fatal(err)
			}
			leases := client.Of[*coordinationv1.Lease](conn).In("default")
			l, err := leases.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "gone"}})
			if err != nil {
				t.Fatal(err)
			}
			if err := leases.Delete(t.Context(), client.KeyOf(l)); err != nil {
				t.Fatal(err)
			}
			_, err = leases.Update(t.Context(), l)
			t.Log(err)
			if !client.IsConflict(err) {
				t.Errorf("the update returned %v", err)
			}
		})
	}
}

func TestEventsAreCounted(t *testing.T) {
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			conn, err := client.Connect(start(t).admin)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			rec := events.New(conn, events.Options{Component: "example.com/foo", Similar: 2})
			done := make(chan error, 1)
			go func() { done <- rec.Run(ctx) }()
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
			told := func(n uint64) {
				t.Helper()
				for end := time.Now().Add(20 * time.Second); rec.Stats().Told < n; time.Sleep(time.Millisecond) {
					if time.Now().After(end) {
						t.Fatalf("%+v", rec.Stats())
					}
				}
			}
			all := client.Of[*corev1.Event](conn).In("default")
			rec.Event(pod, events.Warning, "FailedMount", "no volume")
			told(1)
			rec.Event(pod, events.Warning, "FailedMount", "no volume")
			told(2)
			if err := all.DeleteCollection(ctx); err != nil { // as if they had expired
				t.Fatal(err)
			}
			rec.Record(events.Event{Regarding: pod, Related: node, Type: events.Warning, Reason: "FailedMount", Note: "no volume"})
			rec.Event(pod, events.Warning, "FailedMount", "no volume")
			rec.Event(node, events.Normal, "Rebooted", "%s", strings.Repeat("ü", 1000))
			for i := range 5 {
				rec.Event(node, events.Normal, "Rebooted", "%d", i)
			}
			cancel()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			s := rec.Stats()
			t.Logf("%+v", s)
			if s.Told != s.Recorded || s.Dropped.Total() != 0 {
				t.Errorf("%+v", s)
			}
			got := map[string]int{}
			for e, err := range all.List(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				if e.ReportingController != "example.com/foo" {
					continue
				}
				n := 1
				if e.Series != nil {
					n = int(e.Series.Count)
				}
				got[fmt.Sprintf("%s %.40s", e.InvolvedObject.Name, e.Message)] += n
			}
			t.Log(got)
			if got["web no volume"] != 4 || got["n1 (combined from similar events): 1"] != 4 {
				t.Errorf("the events are %v", got)
			}
		})
	}
}
