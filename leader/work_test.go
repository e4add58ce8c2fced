package leader_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/leader"
)

// elect makes a candidate by itself.
func elect(t *testing.T, c *evenkeeltest.Env, o leader.Options) (*leader.Elector, *road) {
	t.Helper()
	way := &road{}
	conn, err := connect(c.Server, way.through)
	if err != nil {
		t.Fatal(err)
	}
	o.Logger = slog.New(slog.DiscardHandler)
	o.Namespace, o.Name = leaseKey.Namespace, leaseKey.Name
	return leader.New(conn, o), way
}

func TestWhatTheWorkReturnsIsReturned(t *testing.T) {
	failure := errors.New("the work failed")
	for name, want := range map[string]error{"nothing": nil, "an error": failure} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
				r := newRace(t, c)
				e, _ := elect(t, c, leader.Options{})
				if err := e.Run(t.Context(), func(context.Context) error { return want }); !errors.Is(err, want) {
					t.Errorf("it returned %v", err)
				}
				if holder := *r.lease().Spec.HolderIdentity; holder != "" || e.Leading() {
					t.Errorf("%q holds the lease", holder)
				}
			})
		})
	}
}

// TestTheLeaseIsRenewedWhileTheWorkEnds, however long that takes.
func TestTheLeaseIsRenewedWhileTheWorkEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
		r := newRace(t, c)
		a := r.enter(entry{name: "a", windDown: 10 * time.Minute})
		r.mustLead("a", time.Second)
		b := r.enter(entry{name: "b"})
		time.Sleep(time.Minute)
		a.stop()
		time.Sleep(9 * time.Minute)
		if !a.Leading() {
			t.Error("it does not lead any more")
		}
		r.mustLead("b", 2*time.Minute)
		if gap := r.term(1).from - r.term(0).to; gap > 100*time.Millisecond {
			t.Errorf("there was a gap of %s", gap)
		}
		r.end(b)
		if a.err != nil {
			t.Error(a.err)
		}
	})
}

func TestWorkThatDoesNotEndIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
		e, way := elect(t, c, leader.Options{})
		err := e.Run(t.Context(), func(ctx context.Context) error {
			if err := e.Check(0); err != nil {
				t.Error(err)
			}
			way.set(hangs)
			<-ctx.Done()
			if cause := context.Cause(ctx); !errors.Is(cause, leader.ErrLost) {
				t.Errorf("the cause is %v", cause)
			}
			if e.Leading() || e.Status().Leading || e.MasterStatus() != 0 {
				t.Error("it leads")
			}
			time.Sleep(time.Minute)
			if err := e.Check(59 * time.Second); !errors.Is(err, leader.ErrLost) {
				t.Errorf("after a minute, the check says %v", err)
			}
			if err := e.Check(61 * time.Second); err != nil {
				t.Error(err)
			}
			return errors.New("it hung")
		})
		if !errors.Is(err, leader.ErrLost) || !strings.Contains(err.Error(), "it hung") {
			t.Errorf("it returned %v", err)
		}
		if err := e.Check(0); err != nil {
			t.Error(err)
		}
	})
}

// TestALostLeaseIsReleasedIfItCan: nobody has to wait for who has stopped.
func TestALostLeaseIsReleasedIfItCan(t *testing.T) {
	inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
		r := newRace(t, c)
		e, way := elect(t, c, leader.Options{})
		err := e.Run(t.Context(), func(ctx context.Context) error {
			way.set(hangs)
			<-ctx.Done()
			way.set(open)
			return nil
		})
		if !errors.Is(err, leader.ErrLost) {
			t.Errorf("it returned %v", err)
		}
		if holder := *r.lease().Spec.HolderIdentity; holder != "" {
			t.Errorf("%q holds the lease", holder)
		}
	})
}

// TestStoppingDoesNotWaitForTheServer for longer than others would.
func TestStoppingDoesNotWaitForTheServer(t *testing.T) {
	inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
		e, way := elect(t, c, leader.Options{})
		var done time.Time
		err := e.Run(t.Context(), func(context.Context) error {
			way.set(hangs)
			done = time.Now()
			return nil
		})
		if took := time.Since(done); err != nil || took > renewDeadline/2 {
			t.Errorf("it returned %v after %s", err, took)
		}
	})
}

func TestStoppingWhileWaitingIsNoError(t *testing.T) {
	for _, m := range []mode{open, hangs, refuses} {
		t.Run(string(m), func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
				r := newRace(t, c)
				a := r.enter(entry{name: "a"})
				r.mustLead("a", time.Second)
				e, way := elect(t, c, leader.Options{})
				way.set(m)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				err := e.Run(ctx, func(context.Context) error {
					t.Error("it leads")
					return nil
				})
				if waited := time.Since(r.start); err != nil || waited > time.Minute+time.Second {
					t.Errorf("it returned %v after %s", err, waited)
				}
				r.end(a)
			})
		})
	}
}

func TestRunIsOneAtATimeAndMayBeRepeated(t *testing.T) {
	inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
		e, _ := elect(t, c, leader.Options{})
		for range 3 {
			ran := false
			err := e.Run(t.Context(), func(ctx context.Context) error {
				ran = true
				if err := e.Run(ctx, nil); !errors.Is(err, leader.ErrRunning) {
					t.Errorf("a second Run returned %v", err)
				}
				return nil
			})
			if err != nil || !ran {
				t.Fatal(ran, err)
			}
		}
	})
}

func TestOptionsMustFit(t *testing.T) {
	for name, o := range map[string]leader.Options{
		"no name":                     {Namespace: "default"},
		"no namespace":                {Name: "a"},
		"a lease that is too short":   {Namespace: "default", Name: "a", LeaseDuration: time.Millisecond},
		"a deadline that is too late": {Namespace: "default", Name: "a", LeaseDuration: 5 * time.Second, RenewDeadline: 5 * time.Second},
		"retries that are too rare":   {Namespace: "default", Name: "a", RenewDeadline: 2 * time.Second, RetryPeriod: 2 * time.Second},
		"a negative period":           {Namespace: "default", Name: "a", RetryPeriod: -1},
	} {
		t.Run(name, func(t *testing.T) {
			e := leader.New(offline(t), o)
			if err := e.Run(t.Context(), nil); !errors.Is(err, leader.ErrOption) {
				t.Errorf("it returned %v", err)
			}
		})
	}
	a, b := leader.New(offline(t), leader.Options{}), leader.New(offline(t), leader.Options{})
	if a.Identity() == "" || a.Identity() == b.Identity() {
		t.Errorf("the identities are %q and %q", a.Identity(), b.Identity())
	}
}

// offline is a connection to nowhere.
func offline(t *testing.T) *client.Conn {
	t.Helper()
	conn, err := client.Connect(&rest.Config{Host: "http://nowhere.invalid"})
	if err != nil {
		t.Fatal(err)
	}
	return conn
}
