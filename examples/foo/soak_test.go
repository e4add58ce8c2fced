package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/examples/foo/api/v1alpha1"
	"github.com/even-keel/evenkeel/informer"
	"github.com/even-keel/evenkeel/manager"
)

const (
	soakFoos    = 1000
	soakWriters = 4
	// faultEvery is how many writes there are between two faults; of these, one in
	// restartEvery is a restart.
	faultEvery   = 150
	restartEvery = 4
)

// soak is 1,000 Foos that come, change and go while the server does, too.
type soak struct {
	t    *testing.T
	env  *evenkeeltest.Env
	foos *client.Client[*v1alpha1.Foo]

	// away is held while the server restarts.
	away   sync.RWMutex
	writes atomic.Int64
	faults chan struct{}
}

// TestSoak has 1,000 Foos be created, changed and deleted at random while the server
// is restarted and connections are cut. In the end there has to be the Deployment of
// each Foo that is left, with its replicas, owner and status, and no other.
//
// Two parts of a cluster are played by the test, as controllers that the faults hit
// too: the garbage collector, which deletes Deployments whose owner is gone, and the
// controller of Deployments, which makes their replicas available.
//
// EVENKEEL_SEED is the seed of another run.
func TestSoak(t *testing.T) {
	seed := rand.Uint64N(1 << 40)
	if text := os.Getenv("EVENKEEL_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("EVENKEEL_SEED=%d", seed)
	t.Setenv("EVENKEEL_TEST_PATIENCE", "5m") // it is the work of a minute, on a slow machine
	env := evenkeeltest.Start(t, evenkeeltest.CRDs("manifests/crd.yaml"))
	s := &soak{t: t, env: env, foos: client.Of[*v1alpha1.Foo](env.Conn()), faults: make(chan struct{}, soakFoos)}
	foo := s.run(newController)
	s.run(newCollector, newDeployments)

	wanted := s.write(seed)
	s.mustHave(wanted)
	if status := foo.Status(); status.HotTotal > 0 || status.Panics > 0 {
		t.Errorf("%d hot loops, %d panics", status.HotTotal, status.Panics)
	}
	t.Logf("%d writes; reconciles: %v", s.writes.Load(), foo.Status().Results)
}

// run runs controllers in a manager of their own until the test ends, and returns
// the first.
func (s *soak) run(controllers ...func(*manager.Manager) *controller.Controller) *controller.Controller {
	s.t.Helper()
	mgr, err := manager.New(manager.Options{Config: s.env.Config(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, f := range controllers {
		mgr.Add(f(mgr))
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Run(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Error(err)
		}
	})
	return mgr.Controllers()[0]
}

// newCollector deletes Deployments whose controller is a Foo that is gone. As the
// real one, it asks the server before it does, for a cache may not have the Foo yet.
func newCollector(mgr *manager.Manager) *controller.Controller {
	foos, deployments := client.Of[*v1alpha1.Foo](mgr.Conn()), client.Of[*appsv1.Deployment](mgr)
	collect := func(ctx context.Context, req controller.Request) (controller.Result, error) {
		d, err := deployments.Get(ctx, req.Key)
		if err != nil {
			return controller.Done, client.IgnoreNotFound(err)
		}
		owner := metav1.GetControllerOf(d)
		foo, err := foos.Get(ctx, client.Key{Namespace: d.Namespace, Name: owner.Name})
		if err == nil && foo.UID == owner.UID || client.IgnoreNotFound(err) != nil {
			return controller.Done, err
		}
		return controller.Done, client.IgnoreNotFound(deployments.Delete(ctx, req.Key, client.IfUID(d.UID)))
	}
	dependents := func(ctx context.Context, foo *v1alpha1.Foo) (keys []controller.Key) {
		for d, err := range deployments.List(ctx, client.Field("owner", string(foo.UID))) {
			if err != nil {
				return keys
			}
			keys = append(keys, client.KeyOf(d))
		}
		return keys
	}
	return controller.New("collector", collect,
		controller.For[*appsv1.Deployment](controller.With(informer.Index("owner", ownerOf)),
			controller.Where(func(old, _ *appsv1.Deployment) bool { return old == nil })),
		controller.Watches(dependents, controller.Where(func(_, now *v1alpha1.Foo) bool { return now == nil })),
		controller.RetryRate(-1, 0),
	)
}

// newDeployments makes the replicas of all Deployments available.
func newDeployments(mgr *manager.Manager) *controller.Controller {
	deployments := client.Of[*appsv1.Deployment](mgr)
	roll := func(ctx context.Context, _ controller.Request, d *appsv1.Deployment) (controller.Result, error) {
		if d == nil || d.Status.AvailableReplicas == *d.Spec.Replicas {
			return controller.Done, nil
		}
		n := *d.Spec.Replicas
		d.Status.Replicas, d.Status.ReadyReplicas, d.Status.AvailableReplicas = n, n, n
		_, err := deployments.UpdateStatus(ctx, d)
		return controller.Done, client.IgnoreNotFound(err)
	}
	return controller.NewTyped("deployments", roll, controller.RetryRate(-1, 0))
}

// write has the writers do their work amid faults, and returns which Foos should be
// left.
func (s *soak) write(seed uint64) map[string]v1alpha1.FooSpec {
	var writers, faulty sync.WaitGroup
	all := make([]*writer, soakWriters)
	for i := range all {
		all[i] = &writer{soak: s, id: i, random: rand.New(rand.NewPCG(seed, uint64(i))), wanted: map[string]v1alpha1.FooSpec{}}
		writers.Go(all[i].run)
	}
	faulty.Go(s.fail)
	writers.Wait()
	for range restartEvery { // and while the controllers catch up
		s.faults <- struct{}{}
	}
	close(s.faults)
	faulty.Wait()
	wanted := map[string]v1alpha1.FooSpec{}
	for _, w := range all {
		for name, spec := range w.wanted {
			wanted[name] = spec
		}
	}
	return wanted
}

// fail cuts all connections, or restarts the server, each time it is asked to.
func (s *soak) fail() {
	n := 0
	for range s.faults {
		if n++; n%restartEvery != 0 {
			s.env.Cut()
			continue
		}
		s.away.Lock()
		s.env.Restart(nil)
		s.away.Unlock()
	}
	s.t.Logf("%d faults, %d of them restarts", n, n/restartEvery)
}

// insist does a write until the server has answered. What it answers if the write
// was done before, in a connection that broke, is no error.
func (s *soak) insist(done func(error) bool, write func() error) {
	for {
		err := write()
		if err == nil || done(err) {
			break
		}
		if apierrors.ReasonForError(err) != metav1.StatusReasonUnknown { // an answer, and not a broken connection
			s.t.Error(err)
			break
		}
		if s.t.Context().Err() != nil {
			return
		}
		s.awaitServer()
	}
	if s.writes.Add(1)%faultEvery == 0 {
		s.faults <- struct{}{}
	}
}

// awaitServer waits until the server is back, if it restarts.
func (s *soak) awaitServer() {
	s.away.RLock()
	defer s.away.RUnlock()
}

// writer writes Foos that no other does.
type writer struct {
	*soak
	id     int
	random *rand.Rand
	made   int
	wanted map[string]v1alpha1.FooSpec
}

// run creates all Foos of the writer, and meanwhile changes and deletes some.
func (w *writer) run() {
	for w.made < soakFoos/soakWriters {
		w.create(w.name(w.made))
		w.made++
		if w.random.IntN(2) == 0 {
			w.disturb(w.name(w.random.IntN(w.made)))
		}
	}
}

func (w *writer) name(i int) string { return fmt.Sprintf("foo-%d-%d", w.id, i) }

// disturb changes a Foo, or deletes it; one that was deleted before is made again.
func (w *writer) disturb(name string) {
	spec, there := w.wanted[name]
	switch n := w.random.IntN(4); {
	case !there:
		w.create(name)
		return
	case n == 0:
		w.remove(name)
		return
	case n == 1:
		spec.DeploymentName = w.deployment(name)
	default:
		spec.Replicas = w.replicas()
	}
	w.wanted[name] = spec
	w.insist(func(error) bool { return false }, func() error {
		_, err := w.foos.Patch(w.t.Context(), key(name), client.MergePatch(map[string]any{"spec": spec}))
		return err
	})
}

func (w *writer) create(name string) {
	spec := v1alpha1.FooSpec{DeploymentName: w.deployment(name), Replicas: w.replicas()}
	w.wanted[name] = spec
	w.insist(client.IsAlreadyExists, func() error {
		_, err := w.foos.Create(w.t.Context(), &v1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: spec})
		return err
	})
}

func (w *writer) remove(name string) {
	delete(w.wanted, name)
	w.insist(client.IsNotFound, func() error { return w.foos.Delete(w.t.Context(), key(name)) })
}

func key(name string) client.Key { return client.Key{Namespace: "default", Name: name} }

// deployment is one of two names, so that a Foo that is made again may find what its
// predecessor has left.
func (w *writer) deployment(name string) string { return fmt.Sprintf("%s-%d", name, w.random.IntN(2)) }

func (w *writer) replicas() *int32 { return new(1 + w.random.Int32N(10)) }

// mustHave waits until the Foos that are left have their Deployments, and these are
// all that there is.
func (s *soak) mustHave(wanted map[string]v1alpha1.FooSpec) {
	s.t.Helper()
	owners := map[types.UID]string{}
	for foo, err := range s.foos.List(s.t.Context()) {
		if err != nil {
			s.t.Fatal(err)
		}
		spec, ok := wanted[foo.Name]
		if !ok || foo.Spec.DeploymentName != spec.DeploymentName || *foo.Spec.Replicas != *spec.Replicas {
			s.t.Fatalf("foo %s is %+v, but was written as %+v", foo.Name, foo.Spec, spec)
		}
		owners[foo.UID] = foo.Name
	}
	if len(owners) != len(wanted) {
		s.t.Fatalf("%d Foos are left of %d", len(owners), len(wanted))
	}
	evenkeeltest.EventuallyAll(s.env, func(all []*appsv1.Deployment) error {
		for _, d := range all {
			if err := fits(d, owners, wanted); err != nil {
				return err
			}
		}
		if len(all) != len(wanted) { // each is another Foo's, and so these are all
			return fmt.Errorf("%d Deployments of %d Foos", len(all), len(wanted))
		}
		return nil
	})
	evenkeeltest.EventuallyAll(s.env, func(all []*v1alpha1.Foo) error {
		for _, foo := range all {
			if foo.Status.AvailableReplicas != *foo.Spec.Replicas {
				return fmt.Errorf("foo %s tells of %d replicas, and wants %d", foo.Name, foo.Status.AvailableReplicas, *foo.Spec.Replicas)
			}
		}
		return nil
	})
}

// fits reports what is wrong with a Deployment.
func fits(d *appsv1.Deployment, owners map[types.UID]string, wanted map[string]v1alpha1.FooSpec) error {
	owner := metav1.GetControllerOfNoCopy(d)
	if owner == nil || owners[owner.UID] != owner.Name {
		return fmt.Errorf("deployment %s is an orphan: its owner is %v", d.Name, owner)
	}
	spec := wanted[owner.Name]
	if d.Name != spec.DeploymentName || *d.Spec.Replicas != *spec.Replicas || d.Status.AvailableReplicas != *spec.Replicas {
		return fmt.Errorf("deployment %s has %d replicas, %d of them available, for %s: %s with %d", d.Name, *d.Spec.Replicas,
			d.Status.AvailableReplicas, owner.Name, spec.DeploymentName, *spec.Replicas)
	}
	return nil
}
