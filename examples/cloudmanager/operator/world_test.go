package operator_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	v1 "github.com/even-keel/evenkeel/examples/cloudmanager/api/v1"
	"github.com/even-keel/evenkeel/examples/cloudmanager/operator"
	"github.com/even-keel/evenkeel/manager"
)

// world is a namespace, and an operator that works in it.
type world struct {
	*testing.T
	*server
	ns  string
	log transcript

	mgr *manager.Manager
	op  *controller.Controller
}

func (s *server) world(t *testing.T) *world {
	t.Helper()
	s.tests++
	w := &world{T: t, server: s, ns: fmt.Sprintf("cloud-%d", s.tests)}
	must(client.Of[*corev1.Namespace](s.conn).Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns}}))(w)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the operator said\n%s", w.log.String())
		}
	})
	return w
}

// start starts an operator. It ends with the test, or when it is told to.
func (w *world) start() (stop func()) {
	w.Helper()
	mgr, err := manager.New(manager.Options{Config: w.cfg, Logger: slog.New(slog.NewTextHandler(&w.log, nil))})
	if err != nil {
		w.Fatal(err)
	}
	w.mgr, w.op = mgr, operator.New(mgr, operator.Options{Namespace: w.ns})
	mgr.Add(w.op)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.Errorf("the operator ended with %v", err)
		}
	})
	w.Cleanup(stop)
	return stop
}

// transcript is a log that can be read.
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

// must returns what fails a test unless a call went well.
func must[T any](v T, err error) func(*world) T {
	return func(w *world) T {
		w.Helper()
		if err != nil {
			w.Fatal(err)
		}
		return v
	}
}

func managers(s *server) *client.Client[*v1.CloudManager] { return client.Of[*v1.CloudManager](s.conn) }
func deployments(s *server) *client.Client[*appsv1.Deployment] {
	return client.Of[*appsv1.Deployment](s.conn)
}
func statefulSets(s *server) *client.Client[*appsv1.StatefulSet] {
	return client.Of[*appsv1.StatefulSet](s.conn)
}
func secrets(s *server) *client.Client[*corev1.Secret] { return client.Of[*corev1.Secret](s.conn) }

// application is one with three databases, two of identity and one front.
func application() *v1.CloudManager {
	return &v1.CloudManager{
		ObjectMeta: metav1.ObjectMeta{Name: "cloud"},
		Spec: v1.CloudManagerSpec{
			DB: v1.Database{
				Part: v1.Part{Name: "db", Image: "mysql:8.4", Replicas: new(int32(3))}, RootPass: "secret",
				Storage: v1.Storage{StorageClassName: "fast", AccessModes: []string{"ReadWriteOnce"}, Size: "1Gi"},
			},
			Identity: v1.Part{Name: "identity", Image: "keystone:1", Replicas: new(int32(2))},
			Front:    v1.Part{Name: "front", Image: "nginx:1"},
		},
	}
}

// create makes an application, changed as one likes.
func (w *world) create(change ...func(*v1.CloudManager)) *v1.CloudManager {
	w.Helper()
	cm := application()
	for _, f := range change {
		f(cm)
	}
	return must(managers(w.server).In(w.ns).Create(w.Context(), cm))(w)
}

// change patches the specification of the application.
func (w *world) change(spec string) {
	w.Helper()
	must(managers(w.server).In(w.ns).Patch(w.Context(), client.Key{Name: "cloud"}, client.MergePatch(`{"spec":`+spec+`}`)))(w)
}

// ready says how many replicas of an object are ready, as its controller would.
func (w *world) ready(name string, n int) {
	w.Helper()
	kind, name, _ := strings.Cut(name, "/")
	key := client.Key{Namespace: w.ns, Name: name}
	patch := func(generation int64, replicas *int32) client.Patch {
		return client.MergePatch(map[string]any{"status": map[string]any{
			"replicas": replicas, "readyReplicas": n, "observedGeneration": generation,
		}})
	}
	if kind == "StatefulSet" {
		now := must(statefulSets(w.server).Get(w.Context(), key))(w)
		must(statefulSets(w.server).Status().Patch(w.Context(), key, patch(now.Generation, now.Spec.Replicas)))(w)
		return
	}
	now := must(deployments(w.server).Get(w.Context(), key))(w)
	must(deployments(w.server).Status().Patch(w.Context(), key, patch(now.Generation, now.Spec.Replicas)))(w)
}

// running makes an application, and waits until it runs.
func (w *world) running(change ...func(*v1.CloudManager)) *v1.CloudManager {
	w.Helper()
	cm := w.create(change...)
	w.phase(v1.StartingDB)
	w.ready("StatefulSet/"+cm.Spec.DB.Name, 3)
	w.phase(v1.StartingIdentity)
	w.ready("Deployment/"+cm.Spec.Identity.Name, 2)
	w.phase(v1.StartingFront)
	w.ready("Deployment/"+cm.Spec.Front.Name, 1)
	return w.phase(v1.Running)
}
