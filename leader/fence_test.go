package leader_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/leader"
)

func TestAFenceIsReadAsItWasWritten(t *testing.T) {
	for name, f := range map[string]leader.Fence{
		"plain":    {Namespace: "kube-system", Name: "foo", UID: "1-2", Transitions: 7, Holder: "host_abc"},
		"slashes":  {Namespace: "a", Name: "b", UID: "u", Holder: "x/y/z"},
		"anything": {Namespace: "a", Name: "b", UID: "u", Transitions: 1<<31 - 1, Holder: "ü \n%2F\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			value := f.String()
			if strings.ContainsAny(value, " \n\x00ü") {
				t.Errorf("%q is no value of a header", value)
			}
			if got, err := leader.ParseFence(value); err != nil || got != f {
				t.Errorf("%q was read as %+v, %v", value, got, err)
			}
		})
	}
	for _, bad := range []string{"", "a/b/c/d", "a/b/u/x/h", "a/b/u/-1/h", "a/b/u/99999999999/h", "a/b/u/1/", "a/b/u/1/h/i", "a/b//1/h", "a/b/u/1/%zz"} {
		if _, err := leader.ParseFence(bad); !errors.Is(err, leader.ErrFence) {
			t.Errorf("%q was read: %v", bad, err)
		}
	}
}

func FuzzParseFence(f *testing.F) {
	f.Add("kube-system/foo/1-2/7/host_abc")
	f.Add("a/b/u/0/x%2Fy")
	f.Fuzz(func(t *testing.T, value string) {
		fence, err := leader.ParseFence(value)
		if err != nil {
			return
		}
		if again, err := leader.ParseFence(fence.String()); err != nil || again != fence {
			t.Errorf("%+v was read as %+v, %v", fence, again, err)
		}
	})
}

func TestAFenceHoldsForOneTerm(t *testing.T) {
	holder, transitions := "a", int32(3)
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "l", UID: "u"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseTransitions: &transitions},
	}
	f := leader.Fence{Namespace: "ns", Name: "l", UID: "u", Transitions: 3, Holder: "a"}
	if !f.Holds(lease) {
		t.Error("it does not hold in its own term")
	}
	for name, change := range map[string]func(*coordinationv1.Lease){
		"another holder":  func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = new("b") },
		"no holder":       func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = nil },
		"released":        func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = new("") },
		"a later term":    func(l *coordinationv1.Lease) { l.Spec.LeaseTransitions = new(int32(4)) },
		"another lease":   func(l *coordinationv1.Lease) { l.UID = "v" },
		"no longer there": nil,
	} {
		var other *coordinationv1.Lease
		if change != nil {
			other = lease.DeepCopy()
			change(other)
		}
		if f.Holds(other) {
			t.Errorf("%s: it holds", name)
		}
	}
}

// guard refuses what its fence does not allow, as a server is to do: it stands
// before the server, and asks it for the lease. It notes the fences that it saw.
type guard struct {
	next   http.RoundTripper
	leases *client.Client[*coordinationv1.Lease]

	mu   sync.Mutex
	saw  []string
	hold chan struct{} // writes wait for it, if it is there
}

func (g *guard) RoundTrip(q *http.Request) (*http.Response, error) {
	g.mu.Lock()
	hold, value := g.hold, q.Header.Get(leader.FenceHeader)
	g.saw = append(g.saw, q.Method+" "+value)
	g.mu.Unlock()
	if value == "" {
		return g.next.RoundTrip(q)
	}
	if hold != nil {
		<-hold
	}
	f, err := leader.ParseFence(value)
	if err != nil {
		return nil, err
	}
	l, err := g.leases.Get(context.Background(), client.Key{Namespace: f.Namespace, Name: f.Name})
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if !f.Holds(l) {
		resp := status(q, 409, metav1.StatusReasonConflict)
		resp.Body = io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":409,"reason":"Conflict",` +
			`"details":{"causes":[{"reason":"` + string(leader.CauseFenced) + `","message":"the leader has been deposed"}]}}`))
		resp.ContentLength = -1
		return resp, nil
	}
	return g.next.RoundTrip(q)
}

func (g *guard) set(hold chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hold = hold
}

func TestALateWriteOfADeposedLeaderIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
		r := newRace(t, c)
		g := &guard{leases: r.direct}
		conn, err := connect(c.Server, func(rt http.RoundTripper) http.RoundTripper {
			g.next = rt
			return leader.Transport(g)
		})
		if err != nil {
			t.Fatal(err)
		}
		maps := client.Of[*corev1.ConfigMap](conn).In("default")
		write := func(ctx context.Context, name string) error {
			// The write was under way before leadership was lost: no context stops it.
			_, err := maps.Create(context.WithoutCancel(ctx), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}})
			return err
		}
		e, way := elect(t, c, leader.Options{Identity: "a"})
		late := make(chan error)
		err = e.Run(t.Context(), func(ctx context.Context) error {
			f, ok := leader.FenceOf(ctx)
			if mine, leads := e.Fence(); !ok || !leads || f != mine || f.Holder != "a" || f.Name != leaseKey.Name || f.UID == "" {
				t.Errorf("the context carries %v, %+v", ok, f)
			}
			if err := write(ctx, "in-time"); err != nil {
				t.Errorf("the leader may not write: %v", err)
			}
			hold := make(chan struct{})
			g.set(hold)
			go func() { late <- write(ctx, "late") }()
			way.set(hangs)
			b := r.enter(entry{name: "b"})
			r.mustLead("b", time.Minute)
			if _, leads := e.Fence(); leads {
				t.Error("it leads")
			}
			close(hold)
			if err := <-late; !leader.IsFenced(err) {
				t.Errorf("the late write returned %v", err)
			}
			r.end(b)
			return ctx.Err()
		})
		if !errors.Is(err, leader.ErrLost) {
			t.Error(err)
		}
		if _, err := maps.Get(t.Context(), client.Key{Name: "late"}); !client.IsNotFound(err) {
			t.Errorf("it was written: %v", err)
		}
		if err := write(t.Context(), "not-a-leaders"); err != nil {
			t.Errorf("a write without a fence returned %v", err)
		}
		for _, saw := range g.saw {
			if read := strings.HasPrefix(saw, "GET"); read && saw != "GET " {
				t.Errorf("a read carried a fence: %s", saw)
			}
		}
	})
}
