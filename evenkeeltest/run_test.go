package evenkeeltest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
)

// painter is a controller: it paints each config map of a namespace.
func painter(namespace string) func(context.Context, *rest.Config) error {
	return func(ctx context.Context, cfg *rest.Config) error {
		maps, err := client.New[*corev1.ConfigMap](cfg)
		if err != nil {
			return err
		}
		maps = maps.In(namespace)
		for event, err := range maps.Watch(ctx, client.InitialEvents()) {
			if err != nil {
				return err
			}
			if event.Type != client.Added && event.Type != client.Modified || event.Object.Data["color"] != "" {
				continue
			}
			change := map[string]any{"data": map[string]any{"color": "red"}}
			if _, err := maps.Patch(ctx, client.KeyOf(event.Object), client.MergePatch(change)); err != nil {
				return err
			}
		}
		return ctx.Err()
	}
}

func red(m *corev1.ConfigMap) error {
	if m.Data["color"] != "red" {
		return fmt.Errorf("it is %q", m.Data["color"])
	}
	return nil
}

func TestAControllerRunsUntilItIsStopped(t *testing.T) {
	t.Parallel()
	env := evenkeeltest.Start(t)
	maps := client.Of[*corev1.ConfigMap](env.Conn()).In("default")
	stop := env.Run(painter("default"))
	if _, err := maps.Create(t.Context(), config("a")); err != nil {
		t.Fatal(err)
	}
	evenkeeltest.Eventually(env, client.KeyOf(config("a")), red)
	stop()
	stop()
	if _, err := maps.Create(t.Context(), config("b")); err != nil {
		t.Fatal(err)
	}
	env.Run(painter("default")) // until the test ends
	b := evenkeeltest.Eventually(env, client.KeyOf(config("b")), red)
	if b.Generation != 0 || b.Data["a"] != "1" {
		t.Errorf("it is %v", b)
	}
}

func TestTheServerOutlivesWhatRuns(t *testing.T) {
	t.Parallel()
	var last error
	t.Run("test", func(t *testing.T) {
		env := evenkeeltest.Start(t)
		env.Run(func(ctx context.Context, cfg *rest.Config) error {
			<-ctx.Done()
			conn, err := client.Connect(cfg)
			if err == nil {
				_, err = conn.Get(context.WithoutCancel(ctx), "/readyz")
			}
			last = err
			return ctx.Err()
		})
	})
	if last != nil {
		t.Errorf("when it was told to end, the server was gone: %v", last)
	}
}

// judge is a test that may fail.
type judge struct {
	testing.TB
	errors []string
	fatal  bool
}

func (j *judge) Errorf(format string, args ...any) {
	j.errors = append(j.errors, fmt.Sprintf(format, args...))
}

func (j *judge) Fatalf(format string, args ...any) {
	j.Errorf(format, args...)
	j.fatal = true
	panic(j)
}

// try runs a part of a test, up to where it is given up.
func (j *judge) try(part func()) {
	defer func() {
		if p := recover(); p != nil && p != any(j) {
			panic(p)
		}
	}()
	part()
}

func TestAnErrorOfWhatRunsFailsTheTestAtOnce(t *testing.T) {
	t.Parallel()
	j := &judge{TB: t}
	env := evenkeeltest.Start(j)
	stop := env.Run(func(context.Context, *rest.Config) error { return errors.New("no paint") })
	j.try(func() { evenkeeltest.Eventually(env, client.KeyOf(config("a")), red) }) // waits for it no longer
	stop()
	if !j.fatal || !strings.Contains(strings.Join(j.errors, "\n"), "no paint") {
		t.Errorf("the test fails with %q", j.errors)
	}
}

func TestBeingToldToEndIsNoError(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err   error
		fails bool
	}{
		"nothing":              {nil, false},
		"cancellation":         {fmt.Errorf("watch: %w", context.Canceled), false},
		"an error of its own":  {errors.New("no paint"), true},
		"another's impatience": {context.DeadlineExceeded, true},
	} {
		j := &judge{TB: t}
		evenkeeltest.Start(j).Run(func(ctx context.Context, _ *rest.Config) error {
			<-ctx.Done()
			return test.err
		})()
		if fails := len(j.errors) > 0; fails != test.fails {
			t.Errorf("%s: the test fails with %q", name, j.errors)
		}
	}
}
