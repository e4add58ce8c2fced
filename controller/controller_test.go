package controller_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/informer"
)

// scene is a server, a base, and what reconciles were told.
type scene struct {
	*evenkeeltest.Env
	t    *testing.T
	base *controller.Base
	log  transcript
}

// stage starts a server and a base on it.
func stage(t *testing.T, o controller.BaseOptions) *scene {
	t.Helper()
	s := &scene{Env: evenkeeltest.Start(t), t: t}
	s.newBase(o)
	return s
}

func (s *scene) newBase(o controller.BaseOptions) {
	s.t.Helper()
	s.newBaseAs(s.Config(), o)
}

func (s *scene) newBaseAs(cfg *rest.Config, o controller.BaseOptions) {
	s.t.Helper()
	o.Logger = slog.New(slog.NewTextHandler(&s.log, nil))
	o.Informers.DetectMutations = true
	if o.Grace == 0 {
		o.Grace = time.Millisecond // reconcilers that wait for the test to look need not finish
	}
	var err error
	if s.base, err = controller.NewBase(cfg, o); err != nil {
		s.t.Fatal(err)
	}
}

// run adds controllers and runs the base until the test ends.
func (s *scene) run(controllers ...*controller.Controller) {
	s.t.Helper()
	for _, c := range controllers {
		if err := s.base.Add(c); err != nil {
			s.t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.base.Run(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Error(err)
		}
		if s.t.Failed() {
			s.t.Log(s.log.String())
		}
	})
}

// transcript is a log that a test reads.
type transcript struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *transcript) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *transcript) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// requests is a reconciler that hands over what it was asked.
type requests chan controller.Request

func (r requests) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	select {
	case r <- req:
	case <-ctx.Done():
	}
	return controller.Done, nil
}

func (r requests) next(t *testing.T) controller.Request {
	t.Helper()
	select {
	case req := <-r:
		return req
	case <-time.After(evenkeeltest.DefaultPatience):
		t.Fatal("there was no reconcile")
		return controller.Request{}
	}
}

// all waits for reconciles of keys, in any order.
func (r requests) all(t *testing.T, keys ...string) map[string]controller.Request {
	t.Helper()
	got := map[string]controller.Request{}
	for slices.ContainsFunc(keys, func(k string) bool { _, ok := got[k]; return !ok }) {
		req := r.next(t)
		got[req.Key.String()] = req
	}
	return got
}

// of waits for a reconcile of a key.
func (r requests) of(t *testing.T, key string) controller.Request {
	t.Helper()
	return r.all(t, key)[key]
}

func configMap(name string, data ...string) *corev1.ConfigMap {
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{}}
	for i := 0; i+1 < len(data); i += 2 {
		m.Data[data[i]] = data[i+1]
	}
	return m
}

func secret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestReconcilesHaveCauses(t *testing.T) {
	s := stage(t, controller.BaseOptions{})
	maps := client.Of[*corev1.ConfigMap](s.base.Conn())
	before := must(maps.Create(t.Context(), configMap("before")))
	got := make(requests)
	notices := make(chan controller.Notice)
	c := controller.New("maps", got.reconcile,
		controller.For[*corev1.ConfigMap](controller.Where(func(_, now *corev1.ConfigMap) bool { return now == nil || now.Name != "kube-root-ca.crt" })),
		controller.Channel("weather", notices))
	s.run(c)

	if req := got.of(t, "default/before"); fmt.Sprint(req.Reasons()) != "event ConfigMap default/before ->"+before.ResourceVersion {
		t.Errorf("%s", req.Reasons())
	}
	made := must(maps.Create(t.Context(), configMap("a")))
	first := got.of(t, "default/a")
	if first.Reasons() != "event ConfigMap default/a ->"+made.ResourceVersion || !strings.HasPrefix(first.ID, "maps.") {
		t.Errorf("%s: %s", first.ID, first.Reasons())
	}
	made.Data = map[string]string{"k": "v"}
	changed := must(maps.Update(t.Context(), made))
	if req := got.of(t, "default/a"); req.Reasons() != "event ConfigMap default/a "+made.ResourceVersion+"->"+changed.ResourceVersion || req.ID == first.ID {
		t.Errorf("%s: %s", req.ID, req.Reasons())
	}
	notices <- controller.Notice{Key: client.KeyOf(made), Note: "rain"}
	if req := got.of(t, "default/a"); req.Reasons() != "event weather default/a: rain" {
		t.Error(req.Reasons())
	}
	c.Enqueue(client.KeyOf(made), "somebody asked")
	if req := got.of(t, "default/a"); req.Reasons() != "manual: somebody asked" {
		t.Error(req.Reasons())
	}
	if err := maps.Delete(t.Context(), client.KeyOf(made)); err != nil {
		t.Fatal(err)
	}
	if req := got.of(t, "default/a"); len(req.Causes) != 1 || req.Causes[0].New != "" || req.Causes[0].Old == "" {
		t.Error(req.Reasons())
	}
}

func TestOwnedAndWatchedObjectsCauseReconcilesOfOthers(t *testing.T) {
	s := stage(t, controller.BaseOptions{})
	ctx := t.Context()
	maps, secrets, pods := client.Of[*corev1.ConfigMap](s.base), client.Of[*corev1.Secret](s.base), client.Of[*corev1.ServiceAccount](s.base)
	got := make(requests)
	s.run(controller.New("maps", got.reconcile,
		controller.For[*corev1.ConfigMap](),
		controller.Owns[*corev1.Secret](),
		controller.Watches(func(_ context.Context, a *corev1.ServiceAccount) []controller.Key {
			return []controller.Key{{Namespace: a.Namespace, Name: a.Annotations["of"]}}
		}, controller.AnnotationsChanged()),
	))
	owner, other := must(maps.Create(ctx, configMap("owner"))), must(maps.Create(ctx, configMap("other")))
	got.all(t, "default/owner", "default/other")

	owned := secret("owned")
	if err := controller.SetController(s.base, owner, owned); err != nil {
		t.Fatal(err)
	}
	owned = must(secrets.Create(ctx, owned))
	if req := got.of(t, "default/owner"); !strings.HasPrefix(req.Reasons(), "event Secret default/owned ->") {
		t.Error(req.Reasons())
	}
	if err := controller.SetController(s.base, other, owned); !errors.Is(err, controller.ErrOwned) {
		t.Errorf("taken from its owner: %v", err)
	}
	owned.OwnerReferences = nil
	if err := controller.SetController(s.base, other, owned); err != nil {
		t.Fatal(err)
	}
	must(secrets.Update(ctx, owned)) // concerns the one it leaves and the one it goes to
	got.all(t, "default/owner", "default/other")

	account := must(pods.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", Annotations: map[string]string{"of": "x"}}}))
	if req := got.of(t, "default/x"); !strings.HasPrefix(req.Reasons(), "event ServiceAccount default/a ->") {
		t.Error(req.Reasons())
	}
	account.Labels = map[string]string{"quiet": "true"}
	account = must(pods.Update(ctx, account))
	account.Annotations = map[string]string{"of": "y"}
	must(pods.Update(ctx, account))
	for _, req := range got.all(t, "default/x", "default/y") {
		if strings.Contains(req.Reasons(), "2 times") {
			t.Errorf("a change of labels was told: %s", req.Reasons())
		}
	}
}

// unknown is a type that nobody knows the kind of.
type unknown struct{ corev1.Pod }

var badLabels = informer.Labels("a in in")
