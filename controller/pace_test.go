package controller_test

import (
	"context"
	"log/slog"
	"strconv"
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

// Of many changes at once, the first is looked at at once, and the others together
// when the key has rested. What happens to the key's own object does not wait.
func TestManyChangesCauseFewReconciles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := evenkeeltest.Start(t, evenkeeltest.Bubble())
		var mu sync.Mutex
		var began []time.Time
		env.Run(func(ctx context.Context, cfg *rest.Config) error {
			return sumUp(ctx, cfg, func() {
				mu.Lock()
				began = append(began, time.Now())
				mu.Unlock()
				time.Sleep(10 * time.Millisecond)
			})
		})
		reconciles := func() []time.Time {
			time.Sleep(time.Second) // of the bubble: all that can happen has
			mu.Lock()
			defer mu.Unlock()
			defer func() { began = nil }()
			return began
		}
		own := client.Of[*corev1.ConfigMap](env.Conn()).In("default")
		sum, err := own.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "sum"}})
		if got := reconciles(); err != nil || len(got) != 1 {
			t.Fatalf("a new object caused %d reconciles, %v", len(got), err)
		}

		secrets := client.Of[*corev1.Secret](env.Conn()).In("default")
		create := func(name string) {
			if _, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		first := time.Now()
		for i := range 50 {
			create(strconv.Itoa(i))
		}
		switch got := reconciles(); {
		case len(got) != 2:
			t.Errorf("50 changes within 50 ms caused %d reconciles, want 2", len(got))
		case !got[0].Equal(first) || got[1].Sub(first) != 100*time.Millisecond:
			t.Errorf("they began after %v and %v", got[0].Sub(first), got[1].Sub(first))
		}

		create("another")
		time.Sleep(20 * time.Millisecond) // it rests
		sum.Data = map[string]string{"is": "changed"}
		changed := time.Now()
		_, err = own.Update(t.Context(), sum)
		if got := reconciles(); err != nil || len(got) != 2 || !got[1].Equal(changed) {
			t.Errorf("the object was changed at %v, and reconciles began at %v, %v", changed, got, err)
		}
	})
}

// sumUp runs a paced controller of ConfigMaps, of which one sums all Secrets up.
func sumUp(ctx context.Context, cfg *rest.Config, reconcile func()) error {
	base, err := controller.NewBase(cfg, controller.BaseOptions{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	here := controller.With(informer.InNamespace("default"))
	c := controller.New("sums", func(context.Context, controller.Request) (controller.Result, error) {
		reconcile()
		return controller.Done, nil
	}, controller.Paced(), controller.For[*corev1.ConfigMap](here, notTheCA), controller.Watches(func(context.Context, *corev1.Secret) []controller.Key {
		return []controller.Key{{Namespace: "default", Name: "sum"}}
	}, here))
	if err := base.Add(c); err != nil {
		return err
	}
	return base.Run(ctx)
}
