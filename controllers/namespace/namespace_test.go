package namespace_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/controllers/namespace"
	"github.com/even-keel/evenkeel/evenkeeltest"
)

func TestMain(m *testing.M) { evenkeeltest.Main(m) }

const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

const content = `
{apiVersion: v1, kind: Namespace, metadata: {name: web}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {namespace: web, name: a}}
---
{apiVersion: v1, kind: Secret, metadata: {namespace: web, name: a}}
---
{apiVersion: example.com/v1, kind: Widget, metadata: {namespace: web, name: a}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: web, name: a}
spec:
  selector: {matchLabels: {app: a}}
  template: {metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: a}]}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: stays}}
`

// run runs the controller.
func run(ctx context.Context, cfg *rest.Config) error {
	base, err := controller.NewBase(cfg, controller.BaseOptions{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if err := base.Add(namespace.New(base, nil)); err != nil {
		return err
	}
	return base.Run(ctx)
}

func remove(t *testing.T, env *evenkeeltest.Env, name string) {
	t.Helper()
	if err := client.Of[*corev1.Namespace](env.Conn()).Delete(t.Context(), client.Key{Name: name}); err != nil {
		t.Fatal(err)
	}
}

func goes(env *evenkeeltest.Env, name string) {
	evenkeeltest.EventuallyGone[*corev1.Namespace](env, client.Key{Name: name})
}

func TestANamespaceGoesWithAllThatIsInIt(t *testing.T) {
	env := evenkeeltest.Start(t)
	env.Run(run)
	env.Apply(widgets, content)
	remove(t, env, "web")
	goes(env, "web")
	maps, _, err := client.Of[*corev1.ConfigMap](env.Conn()).In("web").All(t.Context())
	if err != nil || len(maps) != 0 {
		t.Errorf("%d config maps are left: %v", len(maps), err)
	}
	if _, err := client.Of[*corev1.ConfigMap](env.Conn()).Get(t.Context(), client.Key{Namespace: "default", Name: "stays"}); err != nil {
		t.Error(err)
	}
	env.Apply(content) // the name is free
	if _, err := client.Of[*corev1.ConfigMap](env.Conn()).Get(t.Context(), client.Key{Namespace: "web", Name: "a"}); err != nil {
		t.Error(err)
	}
}

func TestWithoutTheControllerANamespaceStays(t *testing.T) {
	env := evenkeeltest.Start(t)
	env.Apply(`{apiVersion: v1, kind: Namespace, metadata: {name: web}}`)
	remove(t, env, "web")
	ns, err := client.Of[*corev1.Namespace](env.Conn()).Get(t.Context(), client.Key{Name: "web"})
	if err != nil || ns.Status.Phase != corev1.NamespaceTerminating {
		t.Fatalf("%v, %v", ns, err)
	}
	env.Run(run)
	goes(env, "web")
}

// says is a check that a condition is true, for a reason and with a message.
func says(of corev1.NamespaceConditionType, reason, message string) func(*corev1.Namespace) error {
	return func(ns *corev1.Namespace) error {
		for _, c := range ns.Status.Conditions {
			if c.Type == of && c.Status == corev1.ConditionTrue && c.Reason == reason && c.Message == message {
				return nil
			}
		}
		return fmt.Errorf("the conditions are %+v", ns.Status.Conditions)
	}
}

func TestFinalizersHoldANamespace(t *testing.T) {
	env := evenkeeltest.Start(t)
	env.Run(run)
	env.Apply(widgets, content, `{apiVersion: example.com/v1, kind: Widget, metadata: {namespace: web, name: held, finalizers: [example.com/test]}}`)
	remove(t, env, "web")
	key := client.Key{Name: "web"}
	evenkeeltest.Eventually(env, key, says(corev1.NamespaceContentRemaining, "SomeResourcesRemain", "Some resources are remaining: widgets.example.com has 1 resource instances"))
	evenkeeltest.Eventually(env, key, says(corev1.NamespaceFinalizersRemaining, "SomeFinalizersRemain", "Some content in the namespace has finalizers remaining: example.com/test in 1 resource instances"))
	meta := client.Of[*metav1.PartialObjectMetadata](env.Conn(), client.Kind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}))
	if _, err := meta.Patch(t.Context(), client.Key{Namespace: "web", Name: "held"}, client.MergePatch(`{"metadata":{"finalizers":null}}`)); err != nil {
		t.Fatal(err)
	}
	goes(env, "web")
}

func TestPodsGoFirst(t *testing.T) {
	env := evenkeeltest.Start(t)
	env.Run(run)
	env.Apply(widgets, content, `{apiVersion: v1, kind: Pod, metadata: {namespace: web, name: a}, spec: {nodeName: n1, containers: [{name: a, image: a}]}}`)
	remove(t, env, "web")
	evenkeeltest.Eventually(env, client.Key{Name: "web"}, says(corev1.NamespaceContentRemaining, "SomeResourcesRemain", "Some resources are remaining: pods. has 1 resource instances"))
	if _, err := client.Of[*corev1.ConfigMap](env.Conn()).Get(t.Context(), client.Key{Namespace: "web", Name: "a"}); err != nil {
		t.Errorf("what the pod may need is gone: %v", err)
	}
	// The node says that it has ended.
	if err := client.Of[*corev1.Pod](env.Conn()).Delete(t.Context(), client.Key{Namespace: "web", Name: "a"}, client.Grace(0)); err != nil {
		t.Fatal(err)
	}
	goes(env, "web")
}

func TestOtherFinalizersOfANamespaceAreLeftAlone(t *testing.T) {
	env := evenkeeltest.Start(t)
	env.Run(run)
	env.Apply(`{apiVersion: v1, kind: Namespace, metadata: {name: web}, spec: {finalizers: [example.com/test]}}`)
	remove(t, env, "web")
	ns := evenkeeltest.Eventually(env, client.Key{Name: "web"}, func(ns *corev1.Namespace) error {
		if len(ns.Spec.Finalizers) != 1 || ns.Spec.Finalizers[0] != "example.com/test" {
			return fmt.Errorf("the finalizers are %v", ns.Spec.Finalizers)
		}
		return nil
	})
	ns.Spec.Finalizers = nil
	if _, err := client.Sub[*corev1.Namespace](client.Of[*corev1.Namespace](env.Conn()), "finalize").Update(t.Context(), client.KeyOf(ns), ns); err != nil {
		t.Fatal(err)
	}
	goes(env, "web")
}

func TestWhatCannotBeKnownHoldsANamespace(t *testing.T) {
	env := evenkeeltest.Start(t)
	env.Apply(widgets, content)
	down, stuck := atomic.Bool{}, atomic.Bool{}
	down.Store(true)
	stuck.Store(true)
	cfg := env.InFront(t, func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		switch {
		case down.Load() && r.URL.Path == "/apis":
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"down.example.com"},"versions":[{"version":"v1","freshness":"Stale"}]}]}`)
		case stuck.Load() && r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/configmaps"):
			http.Error(w, "stuck", http.StatusInternalServerError)
		default:
			server.ServeHTTP(w, r)
		}
	})
	env.Run(func(ctx context.Context, _ *rest.Config) error { return run(ctx, cfg) })
	remove(t, env, "web")
	key := client.Key{Name: "web"}
	evenkeeltest.Eventually(env, key, says(corev1.NamespaceDeletionDiscoveryFailure, "DiscoveryFailed",
		"Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: down.example.com/v1: stale GroupVersion discovery: down.example.com/v1"))
	evenkeeltest.Eventually(env, key, func(ns *corev1.Namespace) error {
		for _, c := range ns.Status.Conditions {
			if c.Type == corev1.NamespaceDeletionContentFailure && c.Reason == "ContentDeletionFailed" && strings.Contains(c.Message, "1 remaining: configmaps of namespace web: ") {
				return nil
			}
		}
		return errors.New("no failure is told")
	})
	down.Store(false)
	stuck.Store(false)
	goes(env, "web")
}

func TestNamespacesGoAlthoughConnectionsBreak(t *testing.T) {
	env := evenkeeltest.Start(t)
	env.Run(run)
	env.Apply(widgets)
	for i := range 6 {
		env.Apply(strings.ReplaceAll(content, "web", fmt.Sprintf("web-%d", i)))
	}
	for i := range 6 {
		remove(t, env, fmt.Sprintf("web-%d", i))
	}
	env.Cut()
	env.Restart(nil)
	env.Cut()
	for i := range 6 {
		goes(env, fmt.Sprintf("web-%d", i))
	}
}
