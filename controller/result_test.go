package controller_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/evenkeeltest"
)

// byHand is a controller that reconciles nothing but what it is asked for, quickly
// again if it fails.
func byHand(name string, reconcile controller.Reconciler, opts ...controller.Option) *controller.Controller {
	return controller.New(name, reconcile, append(opts, controller.Channel("hand", make(chan controller.Notice)),
		controller.Backoff(func(int) time.Duration { return time.Millisecond }), controller.RetryRate(-1, 0))...)
}

// until waits for something that is not an object.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for late := time.After(evenkeeltest.DefaultPatience); !is(); {
		select {
		case <-late:
			t.Fatalf("it did not come true that %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

func running(t *testing.T, c *controller.Controller) {
	t.Helper()
	until(t, c.Name()+" runs", func() bool { return c.Status().Phase == controller.Running })
}

func TestWhatAReconcileReturnsSaysWhenTheKeyComesAgain(t *testing.T) {
	s := stage(t, controller.BaseOptions{})
	boom := errors.New("boom")
	for name, test := range map[string]struct {
		returns func(n int32) (controller.Result, error)
		opts    []controller.Option
		times   int32
		retries int    // of the last
		reason  string // why the last ran
		results map[string]uint64
		logs    string
	}{
		"done": {
			func(int32) (controller.Result, error) { return controller.Done, nil }, nil,
			1, 0, "manual: test", map[string]uint64{"success": 1}, "",
		},
		"error": {
			func(n int32) (controller.Result, error) {
				if n < 3 {
					return controller.Done, boom
				}
				return controller.Done, nil
			}, nil,
			3, 2, "retry: boom", map[string]uint64{"success": 1, "error": 2}, `level=ERROR msg=failed controller=error key=a/b reconcile=`,
		},
		"requeue": {
			func(n int32) (controller.Result, error) {
				if n < 3 {
					return controller.Requeue, nil
				}
				return controller.Done, nil
			}, nil,
			3, 2, "requeue", map[string]uint64{"success": 1, "requeue": 2}, "",
		},
		"requeue-after": {
			func(n int32) (controller.Result, error) {
				if n < 3 {
					return controller.RequeueAfter(time.Millisecond), nil
				}
				return controller.Done, nil
			}, nil,
			3, 0, "requeue: after 1ms", map[string]uint64{"success": 1, "requeue_after": 2}, "",
		},
		"terminal": {
			func(int32) (controller.Result, error) { return controller.Done, controller.Terminal(boom) }, nil,
			1, 0, "manual: test", map[string]uint64{"terminal_error": 1}, "is not tried again",
		},
		"panic": {
			func(n int32) (controller.Result, error) {
				if n == 1 {
					panic("ouch")
				}
				return controller.Done, nil
			}, nil,
			2, 1, "retry: panic: ouch", map[string]uint64{"success": 1, "error": 1}, "result_test.go",
		},
		"dropped": {
			func(int32) (controller.Result, error) { return controller.Done, boom }, []controller.Option{controller.MaxRetries(2)},
			3, 2, "retry: boom", map[string]uint64{"error": 3}, "dropped",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scene{Env: s.Env, t: t}
			s.newBase(controller.BaseOptions{})
			var n atomic.Int32
			var last atomic.Pointer[controller.Request]
			c := byHand(name, func(_ context.Context, req controller.Request) (controller.Result, error) {
				last.Store(&req)
				return test.returns(n.Add(1))
			}, test.opts...)
			s.run(c)
			running(t, c)
			c.Enqueue(controller.Key{Namespace: "a", Name: "b"}, "test")
			sum := func() (n uint64) {
				for _, v := range c.Status().Results {
					n += v
				}
				return n
			}
			until(t, fmt.Sprint("it runs ", test.times, " times"), func() bool { return sum() >= uint64(test.times) && c.Status().Queue.Running == 0 })
			status, req := c.Status(), last.Load()
			if n.Load() != test.times || req.Retries != test.retries || req.Reasons() != test.reason {
				t.Errorf("it ran %d times, the last with %d retries for %q", n.Load(), req.Retries, req.Reasons())
			}
			for result, want := range test.results {
				if status.Results[result] != want {
					t.Errorf("results are %v", status.Results)
				}
			}
			if status.Queue.Ready+status.Queue.Delayed > 0 {
				t.Errorf("it comes again: %+v", c.Queued(10))
			}
			if test.logs != "" && !strings.Contains(s.log.String(), test.logs) {
				t.Errorf("the log has not %q:\n%s", test.logs, s.log.String())
			}
			if recent := c.Recent(); len(recent) != int(test.times) || recent[0].ID != req.ID || recent[0].Key != "a/b" {
				t.Errorf("recent: %+v", recent)
			}
			if (name == "panic") != (status.Panics == 1) {
				t.Errorf("%d panics", status.Panics)
			}
		})
	}
}

func TestAReconcileHasATimeout(t *testing.T) {
	s := stage(t, controller.BaseOptions{})
	causes := make(chan error, 1)
	c := byHand("slow", func(ctx context.Context, _ controller.Request) (controller.Result, error) {
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return controller.Done, controller.Terminal(ctx.Err())
	}, controller.Timeout(time.Millisecond))
	s.run(c)
	running(t, c)
	c.Enqueue(controller.Key{Name: "a"}, "")
	if err := <-causes; !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "1ms") {
		t.Error(err)
	}
}

// runAlone runs a controller without those of the base, and returns how to stop it
// and what tells that it has ended.
func runAlone(s *scene, c *controller.Controller) (context.CancelCauseFunc, <-chan struct{}) {
	if err := s.base.Add(c); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Run(ctx)
	}()
	return cancel, ended
}

func TestAReconcileThatRunsMayFinishUnlessItMustNot(t *testing.T) {
	lost := errors.New("leadership is lost")
	for name, test := range map[string]struct {
		cause  error
		finish bool
	}{"stopped": {nil, true}, "deposed": {lost, false}} {
		t.Run(name, func(t *testing.T) {
			s := stage(t, controller.BaseOptions{Grace: time.Hour})
			at, go_on, finished := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			c := byHand("slow", func(ctx context.Context, _ controller.Request) (controller.Result, error) {
				close(at)
				select {
				case <-go_on:
					finished <- ctx.Err()
				case <-ctx.Done():
					finished <- context.Cause(ctx)
				}
				return controller.Done, nil
			})
			stop, ended := runAlone(s, c)
			running(t, c)
			c.Enqueue(controller.Key{Name: "a"}, "")
			<-at
			c.Enqueue(controller.Key{Name: "b"}, "does not run any more")
			stop(test.cause)
			if test.finish {
				until(t, "it is stopping", func() bool { return c.Status().Phase == controller.Stopping })
				close(go_on)
			}
			if err := <-finished; !errors.Is(err, test.cause) {
				t.Errorf("it ended with %v", err)
			}
			<-ended
			if st := c.Status(); st.Phase != controller.Stopped || len(c.Recent()) != 1 {
				t.Errorf("%s, %d reconciles", st.Phase, len(c.Recent()))
			}
		})
	}
}

func TestTheGracePeriodEnds(t *testing.T) {
	s := stage(t, controller.BaseOptions{Grace: time.Millisecond})
	at := make(chan struct{})
	c := byHand("slow", func(ctx context.Context, _ controller.Request) (controller.Result, error) {
		close(at)
		<-ctx.Done()
		return controller.Done, context.Cause(ctx)
	})
	stop, ended := runAlone(s, c)
	running(t, c)
	c.Enqueue(controller.Key{Name: "a"}, "")
	<-at
	stop(nil)
	<-ended
	if r := c.Recent(); len(r) != 1 || !strings.Contains(r[0].Error, "not done within 1ms") {
		t.Errorf("%+v", r)
	}
}

func TestAControllerCanBeRunAgain(t *testing.T) {
	s := stage(t, controller.BaseOptions{Grace: time.Millisecond})
	s.base.Informers().Start()
	defer s.base.Informers().Shutdown()
	got := make(requests)
	c := controller.New("maps", got.reconcile, controller.For[*corev1.ConfigMap](controller.With()))
	stop, ended := runAlone(s, c)
	must(client.Of[*corev1.ConfigMap](s.base).Create(t.Context(), configMap("a")))
	got.of(t, "default/a")
	stop(nil)
	<-ended
	ctx, cancel := context.WithCancel(t.Context())
	again := make(chan struct{})
	go func() {
		defer close(again)
		c.Run(ctx)
	}()
	got.of(t, "default/a") // all are looked at again
	cancel()
	<-again
}

func TestTypedReconcilersGetTheObject(t *testing.T) {
	s := stage(t, controller.BaseOptions{})
	type seen struct {
		key string
		obj *corev1.ConfigMap
	}
	got := make(chan seen, 100)
	s.run(controller.NewTyped("maps", func(_ context.Context, req controller.Request, m *corev1.ConfigMap) (controller.Result, error) {
		got <- seen{req.Key.String(), m}
		if m != nil {
			m.Data = map[string]string{"mine": "to change"}
		}
		return controller.Done, nil
	}))
	next := func(gone bool) *corev1.ConfigMap {
		for {
			select {
			case g := <-got:
				if g.key == "default/a" && (g.obj == nil) == gone {
					return g.obj
				}
			case <-time.After(evenkeeltest.DefaultPatience):
				t.Fatal("no reconcile")
			}
		}
	}
	maps := client.Of[*corev1.ConfigMap](s.base)
	made := must(maps.Create(t.Context(), configMap("a", "k", "v")))
	next(false)
	if m := must(maps.Get(t.Context(), client.KeyOf(made))); m.Data["k"] != "v" {
		t.Errorf("the reconciler changed the cache: %v", m.Data)
	}
	if err := maps.Delete(t.Context(), client.KeyOf(made)); err != nil {
		t.Fatal(err)
	}
	next(true)
}

func TestOptionsThatDoNotFitAreRefused(t *testing.T) {
	s := stage(t, controller.BaseOptions{})
	nothing := func(context.Context, controller.Request) (controller.Result, error) { return controller.Done, nil }
	twice := controller.New("twice", nothing, controller.For[*corev1.Pod]())
	if err := s.base.Add(twice); err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]*controller.Controller{
		"it is added twice":          twice,
		`"" is no name`:              controller.New("", nothing, controller.For[*corev1.Pod]()),
		"there is no reconciler":     controller.New("a", nil, controller.For[*corev1.Pod]()),
		"0 workers cannot work":      controller.New("a", nothing, controller.For[*corev1.Pod](), controller.Workers(0)),
		"it has no source":           controller.New("a", nothing),
		"two kinds are given by For": controller.New("a", nothing, controller.For[*corev1.Pod](), controller.For[*corev1.Secret]()),
		"another type than For gives": controller.NewTyped("a", func(context.Context, controller.Request, *corev1.Pod) (controller.Result, error) {
			return controller.Done, nil
		}, controller.For[*corev1.Secret]()),
		"name its kind with controller.Kind": controller.New("a", nothing, controller.For[*unknown]()),
		"unable to parse requirement":        controller.New("a", nothing, controller.For[*corev1.Pod](controller.With(badLabels))),
	} {
		if err := s.base.Add(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}
