package leader_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/leader"
	"github.com/even-keel/evenkeel/storage"
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

// notes writes down the methods and fences of what is sent.
type notes struct {
	next http.RoundTripper

	mu  sync.Mutex
	saw []string
}

func (n *notes) through(next http.RoundTripper) http.RoundTripper {
	n.next = next
	return n
}

func (n *notes) RoundTrip(q *http.Request) (*http.Response, error) {
	n.mu.Lock()
	n.saw = append(n.saw, strings.TrimSpace(q.Method+" "+q.Header.Get(leader.FenceHeader)))
	n.mu.Unlock()
	return n.next.RoundTrip(q)
}

func TestOnlyWritesOfTheWorkCarryItsFence(t *testing.T) {
	inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
		n := &notes{}
		conn, err := connect(c.Server, n.through)
		if err != nil {
			t.Fatal(err)
		}
		maps := client.Of[*corev1.ConfigMap](conn).In("default")
		e := leader.New(conn, leader.Options{Namespace: leaseKey.Namespace, Name: leaseKey.Name, Identity: "a"})
		var fence leader.Fence
		err = e.Run(t.Context(), func(ctx context.Context) error {
			fence, _ = leader.FenceOf(ctx)
			if mine, leads := e.Fence(); !leads || fence != mine || fence.Holder != "a" || fence.Name != leaseKey.Name || fence.UID == "" {
				t.Errorf("the context carries %+v", fence)
			}
			time.Sleep(time.Minute) // of renewals
			if _, err := maps.Get(ctx, client.Key{Name: "absent"}); !client.IsNotFound(err) {
				t.Error(err)
			}
			_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "mine"}})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		fenced := 0
		for _, saw := range n.saw {
			switch saw {
			case "POST " + fence.String():
				fenced++
			case "GET", "POST", "PUT": // of the elector, and the read
			default:
				t.Errorf("%s was sent", saw)
			}
		}
		if fenced != 1 || len(n.saw) < 10 {
			t.Errorf("%q were sent", n.saw)
		}
	})
}

func TestTransportSendsTheFence(t *testing.T) {
	fence := leader.Fence{Namespace: "ns", Name: "l", UID: "u", Transitions: 3, Holder: "a"}
	for method, want := range map[string]string{"GET": "GET", "POST": "POST ns/l/u/3/a", "PUT": "PUT ns/l/u/3/a", "PATCH": "PATCH ns/l/u/3/a", "DELETE": "DELETE ns/l/u/3/a"} {
		n := &notes{next: roundTrip(func(*http.Request) (*http.Response, error) { return nil, errors.New("no server") })}
		for ctx, want := range map[context.Context]string{fence.Context(t.Context()): want, t.Context(): method} {
			n.saw = nil
			q, err := http.NewRequestWithContext(ctx, method, "http://nowhere.invalid", nil)
			if err != nil {
				t.Fatal(err)
			}
			if resp, err := leader.Transport(n).RoundTrip(q); err == nil {
				_ = resp.Body.Close()
			}
			if len(n.saw) != 1 || n.saw[0] != want {
				t.Errorf("%q was sent, not %s", n.saw, want)
			}
			if q.Header.Get(leader.FenceHeader) != "" {
				t.Error("the caller's request was changed")
			}
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(q *http.Request) (*http.Response, error) { return f(q) }

// late is a store that can hold writes under a fence between the server's check and
// their commit.
type late struct {
	storage.Store
	hold atomic.Pointer[chan struct{}]
}

func (s *late) Commit(ctx context.Context, w storage.Write) (storage.Result, error) {
	if hold := s.hold.Load(); w.Guard != nil && hold != nil {
		<-*hold
	}
	return s.Store.Commit(ctx, w)
}

func TestALateWriteOfADeposedLeaderIsRefused(t *testing.T) {
	store := &late{}
	inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
		r := newRace(t, c)
		conn, err := connect(c.Server, nil)
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
		err = e.Run(t.Context(), func(ctx context.Context) error {
			if err := write(ctx, "in-time"); err != nil {
				t.Errorf("the leader may not write: %v", err)
			}
			hold, late := make(chan struct{}), make(chan error)
			store.hold.Store(&hold)
			go func() { late <- write(ctx, "late") }()
			synctest.Wait() // the server has found the fence to hold
			way.set(hangs)
			b := r.enter(entry{name: "b"})
			r.mustLead("b", time.Minute)
			close(hold)
			if err := <-late; !leader.IsFenced(err) || !strings.Contains(err.Error(), `held by "b"`) {
				t.Errorf("the late write returned %v", err)
			}
			if err := write(ctx, "later"); !leader.IsFenced(err) {
				t.Errorf("a write after it returned %v", err)
			}
			r.end(b)
			return ctx.Err()
		})
		if !errors.Is(err, leader.ErrLost) {
			t.Error(err)
		}
		for _, name := range []string{"late", "later"} {
			if _, err := maps.Get(t.Context(), client.Key{Name: name}); !client.IsNotFound(err) {
				t.Errorf("%s was written: %v", name, err)
			}
		}
		if err := write(t.Context(), "not-a-leaders"); err != nil {
			t.Errorf("a write without a fence returned %v", err)
		}
	}, evenkeeltest.Store(func(of storage.Store) storage.Store {
		store.Store = of
		return store
	}))
}

// A leader that renews its lease all the time writes all the time.
func TestRenewalsDoNotStopTheWrites(t *testing.T) {
	inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
		conn, err := connect(c.Server, nil)
		if err != nil {
			t.Fatal(err)
		}
		maps := client.Of[*corev1.ConfigMap](conn).In("default")
		e, _ := elect(t, c, leader.Options{RetryPeriod: time.Millisecond})
		err = e.Run(t.Context(), func(ctx context.Context) error {
			for i := range 500 {
				if _, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("m-", i)}}); err != nil {
					return err
				}
				time.Sleep(time.Duration(i%7) * time.Millisecond / 2)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}
