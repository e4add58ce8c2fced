package explore_test

import (
	"context"
	"log/slog"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/explore"
)

// runCopier copies each config map that is labelled so to a secret of its name.
func runCopier(ctx context.Context, cfg *rest.Config) error {
	base, err := controller.NewBase(cfg, controller.BaseOptions{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	secrets := client.Of[*corev1.Secret](base)
	err = base.Add(controller.NewTyped("copier", func(ctx context.Context, _ controller.Request, m *corev1.ConfigMap) (controller.Result, error) {
		if m.Labels["copy"] != "yes" {
			return controller.Done, nil
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name}}
		_, _, err := controller.CreateOrUpdate(ctx, secrets, secret, func(s *corev1.Secret) error {
			s.Data = map[string][]byte{}
			for name, value := range m.Data {
				s.Data[name] = []byte(value)
			}
			return controller.SetController(base, m, s)
		})
		return controller.Done, err
	}, controller.Owns[*corev1.Secret]()))
	if err != nil {
		return err
	}
	return base.Run(ctx)
}

// testCopier is what one calls TestCopier.
func testCopier(t *testing.T) {
	key := client.Key{Namespace: "default", Name: "settings"}
	settings := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: map[string]string{"copy": "yes"}},
		Data:       map[string]string{"color": "blue"},
	}
	explore.Run(t, explore.Scenario{
		Server:     func(t *testing.T) *rest.Config { return evenkeeltest.Start(t, evenkeeltest.Bubble()).Config() },
		Controller: runCopier,
		Steps: []explore.Step{
			explore.Create(settings),
			explore.Patch[*corev1.ConfigMap](key, client.MergePatch(`{"data":{"color":"red"}}`)),
		},
		Max: 20, // plans
	})
}

// The test of a controller that copies config maps to secrets. It has no output, for go
// test runs it and not the example.
func ExampleRun() { _ = testCopier }
