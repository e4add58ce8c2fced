// Package controllerruntime has operators that are built with
// controller-runtime as clients of our server.
package controllerruntime

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/test/compat/cluster"
)

// TestMain fails if anything still runs when all managers and servers have
// stopped.
func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard()) // what matters is asserted
	ctrl.SetLogger(logr.Discard())
	evenkeeltest.Main(m)
}

// patience is when a state that does not come is given up.
const patience = 30 * time.Second

// world is a server with a namespace, and a client that caches nothing.
type world struct {
	*testing.T
	client.Client
	config *rest.Config
	ns     string
}

// each runs a test on a server of each engine, which envtest takes for an
// existing cluster.
func each(t *testing.T, test func(w *world)) {
	cluster.Each(t, func(t *testing.T, s *cluster.Server) {
		env := &envtest.Environment{UseExistingCluster: ptr.To(true), Config: s.Admin()}
		config := must(env.Start())(t)
		t.Cleanup(func() {
			if err := env.Stop(); err != nil {
				t.Errorf("stop the environment: %v", err)
			}
		})
		c := must(client.New(config, client.Options{}))(t)
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "operated-"}}
		check(t, c.Create(t.Context(), ns))
		test(&world{T: t, Client: c, config: config, ns: ns.Name})
	})
}

// manager returns one that sees the namespace, and that is not started.
func (w *world) manager(adjust func(*ctrl.Options)) ctrl.Manager {
	w.Helper()
	options := ctrl.Options{
		Cache:                   cache.Options{DefaultNamespaces: map[string]cache.Config{w.ns: {}}},
		Metrics:                 server.Options{BindAddress: "0"},
		GracefulShutdownTimeout: ptr.To(patience),
	}
	if adjust != nil {
		adjust(&options)
	}
	return must(ctrl.NewManager(rest.CopyConfig(w.config), options))(w)
}

// start runs a manager until the test ends or stop is called, which returns once
// all that it runs has ended.
func (w *world) start(m ctrl.Manager) (stop func()) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := m.Start(ctx); err != nil {
			w.Errorf("the manager ended with %v", err)
		}
	}()
	stop = func() {
		cancel()
		<-done
	}
	w.Cleanup(stop)
	return stop
}

// eventually waits until something holds; hold returns what there is instead.
func (w *world) eventually(what string, hold func() (bool, any)) {
	w.Helper()
	var last any
	err := wait.PollUntilContextTimeout(w.Context(), 10*time.Millisecond, patience, true, func(context.Context) (ok bool, _ error) {
		ok, last = hold()
		return ok, nil
	})
	if err != nil {
		w.Fatalf("%s: %v; there is %+v", what, err, last)
	}
}

// read gets an object of the namespace, and reports whether it is there.
func (w *world) read(name string, into client.Object) bool {
	w.Helper()
	err := w.Get(w.Context(), client.ObjectKey{Namespace: w.ns, Name: name}, into)
	check(w, client.IgnoreNotFound(err))
	return err == nil
}

func (w *world) source(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.ns}, Data: data}
}

// must returns what a call returned, in a test that cannot go on without:
// must(call())(t).
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
