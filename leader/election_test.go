package leader_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/leader"
)

const (
	// The defaults, which the tests use.
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

func TestOneOfThreeLeadsAndTheOthersKnow(t *testing.T) {
	inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
		r := newRace(t, c)
		a := r.enter(entry{name: "a"})
		r.mustLead("a", time.Second)
		b, d := r.enter(entry{name: "b"}), r.enter(entry{name: "d"})
		time.Sleep(10 * time.Minute)
		if got := r.order(); got != "a" {
			t.Errorf("%s led", got)
		}
		for _, candidate := range []*runner{a, b, d} {
			s := candidate.Status()
			if s.Leader != "a" || s.Leading != (candidate == a) || s.Transitions != 0 || time.Since(s.Renewed) > 2*retryPeriod ||
				s.Since.Sub(r.start) > time.Second {
				t.Errorf("%s knows %+v", candidate.Identity(), s)
			}
		}
		if a.MasterStatus() != 1 || b.MasterStatus() != 0 || !a.Leading() || b.Leading() {
			t.Error("who leads is not what the metric says")
		}
		r.end(a, b, d)
		if a.err != nil || b.err != nil || d.err != nil {
			t.Error(a.err, b.err, d.err)
		}
	})
}

// TestTheLeaseIsWhatClientGoWrites, so that its candidates may contend for it too.
func TestTheLeaseIsWhatClientGoWrites(t *testing.T) {
	inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
		r := newRace(t, c)
		a := r.enter(entry{name: "a"})
		time.Sleep(time.Minute + time.Second)
		check := func(holder string, seconds, transitions int32, acquired, renewed time.Duration) {
			t.Helper()
			s := r.lease().Spec
			if s.HolderIdentity == nil || *s.HolderIdentity != holder || *s.LeaseDurationSeconds != seconds || *s.LeaseTransitions != transitions {
				t.Errorf("the lease says %v", s)
			}
			if got := s.AcquireTime.Sub(r.start); got < acquired || got > acquired+time.Second {
				t.Errorf("it was acquired after %s", got)
			}
			if got := s.RenewTime.Sub(r.start); got < renewed || got > renewed+time.Second {
				t.Errorf("it was renewed after %s", got)
			}
		}
		check("a", 15, 0, 0, time.Minute)
		r.end(a)
		check("", 1, 0, time.Minute+time.Second, time.Minute+time.Second)
		b := r.enter(entry{name: "b"})
		r.mustLead("b", time.Second)
		check("b", 15, 1, time.Minute+time.Second, time.Minute+time.Second)
		r.end(b)
	})
}

func TestAReleasedLeaseIsTakenAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
		r := newRace(t, c)
		a := r.enter(entry{name: "a"})
		r.mustLead("a", time.Second)
		b := r.enter(entry{name: "b"})
		time.Sleep(time.Minute)
		a.stop()
		<-a.done
		r.mustLead("b", 100*time.Millisecond)
		if got := []string{"a hears a", "b hears a", "b hears b"}; !slices.Equal(r.heard, got) {
			t.Errorf("of new leaders was heard: %v", r.heard)
		}
		r.end(b)
	})
}

func TestALeaseThatIsKeptExpires(t *testing.T) {
	inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
		r := newRace(t, c)
		a := r.enter(entry{name: "a", options: leader.Options{KeepOnStop: true}})
		r.mustLead("a", time.Second)
		b := r.enter(entry{name: "b"})
		time.Sleep(time.Minute)
		a.stop()
		r.mustLead("b", time.Minute)
		if gap := r.term(1).from - r.term(0).to; gap < leaseDuration-retryPeriod || gap > leaseDuration+time.Second {
			t.Errorf("it was taken after %s", gap)
		}
		r.end(b)
	})
}

// TestAnUnreachableLeaderStopsBeforeTheNextBegins: the race fails if two lead.
func TestAnUnreachableLeaderStopsBeforeTheNextBegins(t *testing.T) {
	for _, m := range []mode{hangs, deaf, refuses, fails, conflict} {
		t.Run(string(m), func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
				r := newRace(t, c)
				margin := leaseDuration - renewDeadline - 100*time.Millisecond
				a := r.enter(entry{name: "a", windDown: margin})
				r.mustLead("a", time.Second)
				b := r.enter(entry{name: "b"})
				time.Sleep(time.Minute + 700*time.Millisecond)
				broke := time.Since(r.start)
				a.road.set(m)
				r.mustLead("b", time.Minute)
				first, second := r.term(0), r.term(1)
				if stopped := first.to - margin - broke; stopped > renewDeadline || stopped < renewDeadline-retryPeriod {
					t.Errorf("it stopped after %s", stopped)
				}
				if began := second.from - broke; began > leaseDuration+time.Second {
					t.Errorf("the next began after %s", began)
				}
				a.road.set(open)
				<-a.done
				if !errors.Is(a.err, leader.ErrLost) {
					t.Errorf("it ended with %v", a.err)
				}
				r.end(a, b)
			})
		})
	}
}

// TestALeaderWhoseAnswersAreLostStops: the server has its renewals, but it cannot
// know.
func TestALeaderWhoseAnswersAreLostStops(t *testing.T) {
	inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
		r := newRace(t, c)
		a, b := r.enter(entry{name: "a"}), (*runner)(nil)
		r.mustLead("a", time.Second)
		b = r.enter(entry{name: "b"})
		a.road.set(loses)
		r.mustLead("b", time.Minute)
		if led := r.term(0).to; led > renewDeadline+time.Second {
			t.Errorf("it led for %s", led)
		}
		<-a.done
		r.end(a, b)
	})
}

// TestATermIsCountedFromWhatWasSent, and not from when the answer came: the others
// count from when the server had it.
func TestATermIsCountedFromWhatWasSent(t *testing.T) {
	inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
		r := newRace(t, c)
		a := r.enter(entry{name: "a", windDown: leaseDuration - renewDeadline - 100*time.Millisecond})
		r.mustLead("a", time.Second)
		b := r.enter(entry{name: "b"})
		time.Sleep(time.Minute + time.Second)
		a.road.set(slow)
		time.Sleep(retryPeriod) // one renewal is under way
		a.road.set(hangs)
		r.mustLead("b", time.Minute)
		<-a.done
		r.end(b)
	})
}

func TestShortFailuresDoNotMatter(t *testing.T) {
	for _, m := range []mode{hangs, refuses, fails, conflict, loses} {
		t.Run(string(m), func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
				r := newRace(t, c)
				a := r.enter(entry{name: "a"})
				r.mustLead("a", time.Second)
				b := r.enter(entry{name: "b"})
				for range 10 {
					a.road.set(m)
					time.Sleep(5 * time.Second)
					a.road.set(open)
					time.Sleep(5 * time.Second)
				}
				if got := r.order(); got != "a" {
					t.Errorf("%s led", got)
				}
				r.end(a, b)
			})
		})
	}
}

// TestClocksMayBeWrong: no candidate believes the times of another.
func TestClocksMayBeWrong(t *testing.T) {
	for name, skews := range map[string][2]time.Duration{
		"the leader's is late":            {-time.Hour, 0},
		"the leader's is early":           {time.Hour, 0},
		"the other's is late":             {0, -time.Hour},
		"one is early, the other is late": {24 * time.Hour, -24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
				r := newRace(t, c)
				a := r.enter(entry{name: "a", skew: skews[0]})
				r.mustLead("a", time.Second)
				b := r.enter(entry{name: "b", skew: skews[1]})
				time.Sleep(10 * time.Minute)
				if got := r.lease().Spec.RenewTime.Time; time.Since(got.Add(-skews[0])).Abs() > 2*retryPeriod {
					t.Errorf("the clock is not as it should be: it renewed at %s", got)
				}
				broke := time.Since(r.start)
				a.road.set(hangs)
				r.mustLead("b", time.Minute)
				if began := r.term(1).from - broke; began < leaseDuration-retryPeriod || began > leaseDuration+time.Second {
					t.Errorf("the next began after %s", began)
				}
				<-a.done
				r.end(b)
				if got := r.order(); got != "a b" {
					t.Errorf("%s led", got)
				}
			})
		})
	}
}

// TestADeletedLeaseEndsTheTerm, and who has seen it held waits as if it were there.
func TestADeletedLeaseEndsTheTerm(t *testing.T) {
	inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
		r := newRace(t, c)
		a := r.enter(entry{name: "a", windDown: renewDeadline})
		r.mustLead("a", time.Second)
		b := r.enter(entry{name: "b"})
		time.Sleep(time.Minute + time.Second)
		if err := r.direct.Delete(context.Background(), leaseKey); err != nil {
			t.Fatal(err)
		}
		gone := time.Since(r.start)
		r.mustLead("b", time.Minute)
		<-a.done
		if stopped := r.term(0).to - renewDeadline - gone; stopped > retryPeriod {
			t.Errorf("it stopped after %s", stopped)
		}
		if !errors.Is(a.err, leader.ErrLost) || !strings.Contains(a.err.Error(), "deleted") {
			t.Errorf("it ended with %v", a.err)
		}
		if n := *r.lease().Spec.LeaseTransitions; n != 1 {
			t.Errorf("the new lease tells of %d transitions", n)
		}
		r.end(b)
	})
}

func TestALeaseTakenByForceIsLost(t *testing.T) {
	inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
		r := newRace(t, c)
		a := r.enter(entry{name: "a"})
		r.mustLead("a", time.Second)
		b := r.enter(entry{name: "b"})
		time.Sleep(time.Minute)
		patch := client.MergePatch(map[string]any{"spec": map[string]any{"holderIdentity": "intruder"}})
		if _, err := r.direct.Patch(context.Background(), leaseKey, patch); err != nil {
			t.Fatal(err)
		}
		taken := time.Since(r.start)
		<-a.done
		if stopped := r.term(0).to - taken; stopped > retryPeriod {
			t.Errorf("it stopped after %s", stopped)
		}
		if !errors.Is(a.err, leader.ErrLost) || !strings.Contains(a.err.Error(), "intruder") {
			t.Errorf("it ended with %v", a.err)
		}
		if s := a.Status(); s.Leader != "intruder" || s.Leading {
			t.Errorf("it knows %+v", s)
		}
		if holder := *r.lease().Spec.HolderIdentity; holder != "intruder" {
			t.Errorf("the lease is %s's", holder)
		}
		r.mustLead("b", time.Minute)
		if began := r.term(1).from - taken; began < leaseDuration {
			t.Errorf("the intruder was given %s", began)
		}
		r.end(b)
	})
}

// TestOthersMayWriteToTheLease: labels are not a new leader, and are kept.
func TestOthersMayWriteToTheLease(t *testing.T) {
	inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
		r := newRace(t, c)
		a := r.enter(entry{name: "a"})
		r.mustLead("a", time.Second)
		b := r.enter(entry{name: "b"})
		for i := range 300 {
			patch := client.MergePatch(map[string]any{"metadata": map[string]any{"labels": map[string]any{"n": time.Duration(i).String()}}})
			if _, err := r.direct.Patch(context.Background(), leaseKey, patch); err != nil {
				t.Fatal(err)
			}
			time.Sleep(300 * time.Millisecond)
		}
		r.end(a, b)
		if got := r.order(); !strings.HasPrefix(got, "a") || a.err != nil {
			t.Errorf("%s led, a ended with %v", got, a.err)
		}
		if got := r.lease().Labels["n"]; got != "299ns" {
			t.Errorf("the label is %q", got)
		}
	})
}

func TestARestartOfTheServerIsOutlived(t *testing.T) {
	for name, test := range map[string]struct {
		outage time.Duration
		order  string
	}{
		"a short one":                        {5 * time.Second, "a"},
		"a long one, after which they start": {time.Minute, "a a|a b"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
				r := newRace(t, c)
				a := r.enter(entry{name: "a", again: true})
				r.mustLead("a", time.Second)
				b := r.enter(entry{name: "b", again: true})
				time.Sleep(time.Minute)
				if err := c.Stop(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(test.outage)
				if err := c.Start(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				if r.leader() == "" {
					t.Error("nobody leads")
				}
				if got := r.order(); !slices.Contains(strings.Split(test.order, "|"), got) {
					t.Errorf("%s led", got)
				}
				r.end(a, b)
			})
		})
	}
}

// TestATakeWhoseAnswerIsLostIsNotWaitedOut: the candidate knows its own write.
func TestATakeWhoseAnswerIsLostIsNotWaitedOut(t *testing.T) {
	for name, exists := range map[string]bool{"a new lease": false, "a released one": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
				r := newRace(t, c)
				if exists {
					old := r.enter(entry{name: "old"})
					r.mustLead("old", time.Second)
					r.end(old)
				}
				began := time.Since(r.start)
				e, way := elect(t, c, leader.Options{})
				way.setOnce(loses)
				if err := e.Run(t.Context(), func(context.Context) error { return nil }); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(r.start) - began; took > 2*retryPeriod {
					t.Errorf("it took %s to lead", took)
				}
			})
		})
	}
}

// TestTwoOfOneNameAreTwo: a name that is not unique is a mistake, which must not
// make two leaders.
func TestTwoOfOneNameAreTwo(t *testing.T) {
	inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
		r := newRace(t, c)
		all := map[string]*runner{}
		for _, name := range []string{"a", "b", "d"} { // they try at once, and all but one in vain
			all[name] = r.enter(entry{name: name, options: leader.Options{Identity: "same"}})
		}
		for range 3 {
			time.Sleep(time.Minute)
			first := r.leader()
			if first == "" {
				t.Fatalf("nobody leads after %s", r.order())
			}
			all[first].stop()
			<-all[first].done
		}
		if got := len(strings.Fields(r.order())); got != 3 {
			t.Errorf("%s led", r.order())
		}
	})
}

func TestALeaseThatMayNotBeWatchedIsLookedAt(t *testing.T) {
	inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
		r := newRace(t, c)
		a := r.enter(entry{name: "a"})
		r.mustLead("a", time.Second)
		b := r.enter(entry{name: "b"})
		b.road.set(noWatch)
		if err := c.Stop(); err != nil { // ends b's watch
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		if n, _ := b.road.asked(); n < 200 || n > 400 {
			t.Errorf("it looked %d times in ten minutes", n)
		}
		a.stop()
		r.mustLead("b", 2*retryPeriod)
		r.end(b)
	})
}

// TestAStandbyAsksForNothing while it watches, and watches again after it could not.
func TestAStandbyAsksForNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
		r := newRace(t, c)
		a := r.enter(entry{name: "a"})
		r.mustLead("a", time.Second)
		b := r.enter(entry{name: "b"})
		asksLittle := func() {
			t.Helper()
			before, _ := b.road.asked()
			time.Sleep(10 * time.Minute)
			if looks, writes := b.road.asked(); looks-before > 10 || writes > 0 {
				t.Errorf("it read %d times and wrote %d times", looks-before, writes)
			}
		}
		asksLittle()
		b.road.set(badWatch)
		if err := c.Stop(); err != nil { // ends its watch
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * retryPeriod)
		b.road.set(open)
		asksLittle()
		r.end(a, b)
	})
}

// TestAForeignLeaseIsRespected, also one that does not say for how long it holds.
func TestAForeignLeaseIsRespected(t *testing.T) {
	inBubble(t, func(t *testing.T, c *evenkeeltest.Env) {
		r := newRace(t, c)
		holder := "somebody"
		l := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}}
		l.Name = leaseKey.Name
		if _, err := r.direct.Create(context.Background(), l); err != nil {
			t.Fatal(err)
		}
		a := r.enter(entry{name: "a"})
		r.mustLead("a", time.Minute)
		if began := r.term(0).from; began < leaseDuration || began > leaseDuration+2*retryPeriod {
			t.Errorf("it was taken after %s", began)
		}
		r.end(a)
	})
}
