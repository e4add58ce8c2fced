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

func TestWanted(t *testing.T) {
	ends := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: new(metav1.Now())}}
	ending := &corev1.Namespace{Status: corev1.NamespaceStatus{Phase: corev1.NamespaceTerminating}}
	for name, test := range map[string]struct {
		ns     *corev1.Namespace
		exists bool
		want   bool
	}{
		"missing":                            {&corev1.Namespace{}, false, true},
		"there":                              {&corev1.Namespace{}, true, false},
		"missing in one that is deleted":     {ends, false, false},
		"missing in one that is terminating": {ending, false, false},
	} {
		if got := wanted(test.ns, test.exists); got != test.want {
			t.Errorf("%s: wanted is %t", name, got)
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
