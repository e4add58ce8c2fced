package serviceaccount

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/evenkeeltest"
)

func TestMain(m *testing.M) { evenkeeltest.Main(m) }

func run(ctx context.Context, cfg *rest.Config) error {
	base, err := controller.NewBase(cfg, controller.BaseOptions{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if err := base.Add(New(base, nil)); err != nil {
		return err
	}
	return base.Run(ctx)
}

// In all states there are, an account is made where there is none and it may stay.
func TestDecide(t *testing.T) {
	for _, phase := range []corev1.NamespacePhase{"", corev1.NamespaceActive, corev1.NamespaceTerminating} {
		for _, deleted := range []*metav1.Time{nil, new(metav1.Now())} {
			for _, exists := range []bool{false, true} {
				ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: deleted}, Status: corev1.NamespaceStatus{Phase: phase}}
				stays := phase != corev1.NamespaceTerminating && deleted == nil
				if got := decide(ns, exists); got != (stays && !exists) {
					t.Errorf("phase %q, deleted at %v, exists %t: it decides %t", phase, deleted, exists, got)
				}
			}
		}
	}
}

func anyAccount(*corev1.ServiceAccount) error { return nil }

func TestEveryNamespaceHasADefaultAccount(t *testing.T) {
	env := evenkeeltest.Start(t)
	env.Run(run)
	for i := range 10 {
		env.Apply(fmt.Sprintf(`{apiVersion: v1, kind: Namespace, metadata: {name: web-%d}}`, i))
	}
	env.Cut()
	env.Restart(nil)
	accounts := client.Of[*corev1.ServiceAccount](env.Conn())
	for i := range 10 {
		key := client.Key{Namespace: fmt.Sprintf("web-%d", i), Name: "default"}
		first := evenkeeltest.Eventually(env, key, anyAccount)
		if err := accounts.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		evenkeeltest.Eventually(env, key, func(a *corev1.ServiceAccount) error {
			if a.UID == first.UID {
				return fmt.Errorf("it is the first one still")
			}
			return nil
		})
	}
}
