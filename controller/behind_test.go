package controller_test

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/informer"
)

// Where two caches have a kind, the one that is read from may be behind the one that
// told of a change. A reconcile waits for it, so that it never misses its cause.
func TestReadsAreAsNewAsTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := evenkeeltest.Start(t, evenkeeltest.Bubble())
		maps := client.Of[*corev1.ConfigMap](env.Conn()).In("default")
		hold := &blindfold{}
		defer hold.takeOff()
		var mu sync.Mutex
		var read []string
		env.Run(func(ctx context.Context, cfg *rest.Config) error {
			cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
				held := hold.wrap(next)
				return roundTrip(func(r *http.Request) (*http.Response, error) {
					if r.URL.Query().Has("fieldSelector") {
						return next.RoundTrip(r)
					}
					return held.RoundTrip(r)
				})
			})
			base, err := controller.NewBase(cfg, controller.BaseOptions{Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				return err
			}
			cached := client.Of[*corev1.ConfigMap](base)
			some := controller.New("some", func(ctx context.Context, req controller.Request) (controller.Result, error) {
				m, err := cached.Get(ctx, req.Key)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					read = append(read, err.Error())
				} else {
					read = append(read, m.Data["is"])
				}
				return controller.Done, nil
			}, controller.For[*corev1.ConfigMap](controller.With(informer.InNamespace("default"), informer.Fields("metadata.name=a"))))
			all := controller.New("all", func(context.Context, controller.Request) (controller.Result, error) { return controller.Done, nil },
				controller.For[*corev1.ConfigMap](controller.With(informer.InNamespace("default"))))
			for _, c := range []*controller.Controller{all, some} {
				if err := base.Add(c); err != nil {
					return err
				}
			}
			return base.Run(ctx)
		})
		mustRead := func(when string, want ...string) {
			t.Helper()
			time.Sleep(time.Second) // of the bubble: all that can happen has
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(read, want) {
				t.Errorf("%s: %q was read, want %q", when, read, want)
			}
		}
		mustRead("at first")
		hold.on()
		a, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"is": "new"}})
		if err != nil {
			t.Fatal(err)
		}
		mustRead("while one cache has not seen it")
		hold.takeOff()
		mustRead("when it has", "new")
		hold.on()
		if err := maps.Delete(t.Context(), client.KeyOf(a)); err != nil {
			t.Fatal(err)
		}
		mustRead("while one cache has it still", "new")
		hold.takeOff()
		mustRead("when it is gone", "new", `configmaps "a" not found`)
	})
}
