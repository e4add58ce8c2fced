package explore

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
)

// try does one plan.
func try(t *testing.T, s Scenario, p plan) outcome {
	t.Helper()
	s.Server = server
	return s.withDefaults().inBubble(t, p, nil)
}

func TestAFaultThatDoesNotHappenIsNotTakenForOneThatDid(t *testing.T) {
	s := Scenario{Controller: program(ofMaps, mirrored(true)), Steps: []Step{create("1")}}
	if out := try(t, s, plan{fault: CrashAfter, write: "create secrets default/other", nth: 1}); out.fired || out.err != nil {
		t.Errorf("fired: %v, error: %v", out.fired, out.err)
	}
	if out := try(t, s, plan{fault: Stale, of: "pods"}); out.fired || out.err != nil {
		t.Errorf("fired: %v, error: %v", out.fired, out.err)
	}
	if out := try(t, s, plan{fault: CrashAfter, write: "create secrets default/app", nth: 1}); !out.fired || out.err != nil {
		t.Errorf("fired: %v, error: %v", out.fired, out.err)
	}
}

func TestAControllerThatNeverRestsIsToldOf(t *testing.T) {
	restless := program(ofMaps, func(a *app, ctx context.Context, key client.Key) error {
		_, err := a.maps.Patch(ctx, key, client.MergePatch(`{"data":{"at":"`+time.Now().String()+`"}}`))
		time.Sleep(10 * time.Second)
		return err
	})
	if out := try(t, Scenario{Controller: restless, Steps: []Step{create("1")}}, plan{}); !errors.Is(out.err, errRestless) {
		t.Errorf("the error is %v", out.err)
	}
}

func TestAControllerThatEndsIsToldOf(t *testing.T) {
	gone := func(context.Context, *rest.Config) error { return errors.New("no disk") }
	if out := try(t, Scenario{Controller: gone, Steps: []Step{create("1")}}, plan{}); out.err == nil || !strings.Contains(out.err.Error(), "no disk") {
		t.Errorf("the error is %v", out.err)
	}
}

func TestWhatMustBeTrueIsAskedAfterEachWriteAndInTheEnd(t *testing.T) {
	asked := 0
	s := Scenario{
		Controller: program(ofMaps, mirrored(true)), Steps: []Step{create("1")},
		Always: func(context.Context, *client.Conn) error { asked++; return nil },
		End:    func(context.Context, *client.Conn) error { return errors.New("it is not the end") },
	}
	out := try(t, s, plan{})
	if out.err == nil || out.err.Error() != "it is not the end" {
		t.Errorf("the error is %v", out.err)
	}
	if want := len(out.writes) + 2; asked != want { // and at rest, before and after the step
		t.Errorf("asked %d times, want %d", asked, want)
	}
}

// A process that has crashed can do nothing any more, though its context is not yet
// looked at.
func TestNothingSucceedsAfterACrash(t *testing.T) {
	var errs []error
	stubborn := func(ctx context.Context, cfg *rest.Config) error {
		maps, err := client.New[*corev1.ConfigMap](cfg)
		if err != nil {
			return err
		}
		if len(errs) == 0 {
			_, made := maps.Create(context.WithoutCancel(ctx), configMap("first", "1"))
			_, read := maps.Get(context.WithoutCancel(ctx), appKey)
			_, again := maps.Create(context.WithoutCancel(ctx), configMap("second", "1"))
			errs = append(errs, made, read, again)
		}
		<-ctx.Done()
		return nil
	}
	nothing := func(context.Context, *client.Conn) error { return nil }
	out := try(t, Scenario{Controller: stubborn, Steps: []Step{nothing}}, plan{fault: CrashAfter, write: "create configmaps default/first", nth: 1})
	for i, err := range errs {
		if !errors.Is(err, errCrashed) {
			t.Errorf("request %d: %v", i, err)
		}
	}
	if out.err != nil || out.states[0]["configmaps default/first"] == "" || out.states[0]["configmaps default/second"] != "" {
		t.Errorf("error: %v, states: %v", out.err, out.states)
	}
}

// The names of plans are how one is repeated.
func TestPlansOfTwoExplorationsAreTheSame(t *testing.T) {
	s := Scenario{Controller: program(ofMaps, recorded(true)), Steps: []Step{create("1")}}
	names := func() (all []string) {
		for _, p := range plans(try(t, s, plan{}).record, 1) {
			all = append(all, p.name())
		}
		return all
	}
	first, second := names(), names()
	if len(first) == 0 || strings.Join(first, " ") != strings.Join(second, " ") {
		t.Errorf("first %v, then %v", first, second)
	}
}

func TestOutsideOfBubbles(t *testing.T) {
	// It waits for what has to come: the period of quiet does not matter then.
	created := func(ctx context.Context, conn *client.Conn) error {
		for event, err := range client.Of[*corev1.ConfigMap](conn).Watch(ctx, client.InitialEvents()) {
			if err != nil || event.Type != client.Bookmark && event.Object.Annotations["secret"] != "" {
				return err
			}
		}
		return errors.New("the watch has ended")
	}
	Run(t, Scenario{
		Server:     func(t *testing.T) *rest.Config { return evenkeeltest.Start(t).Config() },
		Controller: program(ofMaps, recorded(true)),
		Steps:      []Step{create("1"), created},
		Faults:     []Fault{CrashAfter, Lost}, NoBubble: true, Quiet: 50 * time.Millisecond,
	})
}
