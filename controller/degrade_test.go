package controller_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
)

var widgets = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

const widgetDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`

func TestAMissingKindConcernsItsControllerAloneAndHeals(t *testing.T) {
	s := stage(t, controller.BaseOptions{})
	lacking, well := make(requests), make(requests)
	a := controller.New("widgets", lacking.reconcile, controller.For[*unstructured.Unstructured](controller.Kind(widgets)), controller.Owns[*corev1.ConfigMap]())
	b := controller.New("maps", well.reconcile, controller.For[*corev1.ConfigMap]())
	s.run(a, b)
	must(client.Of[*corev1.ConfigMap](s.base).Create(t.Context(), configMap("a")))
	well.of(t, "default/a")
	until(t, "it is said what is missing", func() bool { return a.Status().Lacks != nil })
	if st := a.Status(); st.Phase != controller.Waiting || !client.IsNoKind(st.Lacks) || !strings.Contains(st.Lacks.Error(), "cannot watch Widget") {
		t.Errorf("%s, %v", st.Phase, st.Lacks)
	}
	if st := b.Status(); st.Phase != controller.Running || st.Lacks != nil {
		t.Errorf("%s, %v", st.Phase, st.Lacks)
	}
	s.Apply(widgetDefinition, `{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}}`)
	lacking.of(t, "default/w")
	if st := a.Status(); st.Phase != controller.Running || st.Lacks != nil {
		t.Errorf("%s, %v", st.Phase, st.Lacks)
	}
	if log := s.log.String(); !strings.Contains(log, "cannot watch") || !strings.Contains(log, "Widget") {
		t.Error(log)
	}
}

// denied answers for a server that does not let the client read a resource.
func denied(resource string, is *atomic.Bool) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if !is.Load() || !strings.HasSuffix(r.URL.Path, "/"+resource) {
				return next.RoundTrip(r)
			}
			verb := "list"
			if r.URL.Query().Has("watch") {
				verb = "watch"
			}
			body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":403,"reason":"Forbidden","message":"%s is forbidden: User \"robot\" cannot %s resource \"%s\""}`, resource, verb, resource)
			return &http.Response{
				StatusCode: http.StatusForbidden, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
				Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
			}, nil
		})
	}
}

func TestAMissingRightConcernsItsControllerAloneAndHeals(t *testing.T) {
	s := stage(t, controller.BaseOptions{})
	var missing atomic.Bool
	missing.Store(true)
	cfg := s.Config()
	cfg.Wrap(denied("secrets", &missing))
	s.newBaseAs(cfg, controller.BaseOptions{})
	lacking, well := make(requests), make(requests)
	a := controller.New("secrets", lacking.reconcile, controller.For[*corev1.Secret]())
	b := controller.New("maps", well.reconcile, controller.For[*corev1.ConfigMap]())
	s.run(a, b)
	must(client.Of[*corev1.ConfigMap](s.Conn()).Create(t.Context(), configMap("a")))
	well.of(t, "default/a")
	until(t, "it is said what is missing", func() bool { return a.Status().Lacks != nil })
	if st := a.Status(); st.Phase != controller.Waiting || !client.IsForbidden(st.Lacks) ||
		!strings.Contains(st.Lacks.Error(), `resource "secrets"`) || !strings.Contains(st.Lacks.Error(), "cannot watch Secret") {
		t.Errorf("%s, %v", st.Phase, st.Lacks)
	}
	missing.Store(false)
	must(client.Of[*corev1.Secret](s.Conn()).Create(t.Context(), secret("s")))
	lacking.of(t, "default/s")
	if st := a.Status(); st.Phase != controller.Running || st.Lacks != nil {
		t.Errorf("%s, %v", st.Phase, st.Lacks)
	}
}

// What is new goes before what was there at the start, and nothing waits for ever.
func TestWhatIsNewGoesFirst(t *testing.T) {
	s := stage(t, controller.BaseOptions{})
	maps := client.Of[*corev1.ConfigMap](s.base)
	for _, name := range []string{"old-1", "old-2", "old-3"} {
		must(maps.Create(t.Context(), configMap(name)))
	}
	got := make(requests)
	c := controller.New("maps", got.reconcile, controller.For[*corev1.ConfigMap](notTheCA))
	s.run(c)
	first := got.next(t) // and now the worker is at the second
	must(maps.Create(t.Context(), configMap("new")))
	until(t, "it is queued", func() bool {
		for _, k := range c.Queued(10) {
			if k.Key.Name == "new" {
				return k.Priority == 0
			}
		}
		return false
	})
	got.next(t)
	if third := got.next(t); third.Key.Name != "new" {
		t.Errorf("%s and then %s", first.Key, third.Key)
	}
	got.next(t)
}

func TestAMappingThatPanicsIsNotTheEnd(t *testing.T) {
	s := stage(t, controller.BaseOptions{})
	got := make(requests)
	c := controller.New("maps", got.reconcile, controller.For[*corev1.ConfigMap](notTheCA),
		controller.Watches(func(_ context.Context, s *corev1.Secret) []controller.Key {
			return []controller.Key{{Namespace: "default", Name: s.OwnerReferences[3].Name}}
		}))
	s.run(c)
	must(client.Of[*corev1.Secret](s.base).Create(t.Context(), secret("s")))
	until(t, "the panic is counted", func() bool { return c.Status().Panics == 1 })
	if log := s.log.String(); !strings.Contains(log, "index out of range") || !strings.Contains(log, "default/s") {
		t.Error(log)
	}
	must(client.Of[*corev1.ConfigMap](s.base).Create(t.Context(), configMap("a")))
	got.of(t, "default/a")
}
