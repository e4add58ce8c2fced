// Package sharing has several of our servers share one etcd cluster: to their
// clients they are one.
package sharing

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/even-keel/evenkeel/test/compat/cluster"
)

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard()) // what matters is asserted
	os.Exit(m.Run())
}

// pair starts two servers on an etcd cluster and returns a client of each, and
// a namespace. The options are for the second.
func pair(t *testing.T, members int, options ...cluster.Option) (a, b kubernetes.Interface, ns string) {
	t.Helper()
	t.Parallel()
	shared := cluster.NewEtcd(t, members)
	a, b = client(t, shared.Start(t)), client(t, shared.Start(t, options...))
	return a, b, newNamespace(t, a)
}

func client(t *testing.T, s *cluster.Server) kubernetes.Interface {
	t.Helper()
	return must(kubernetes.NewForConfig(s.Admin()))(t)
}

func newNamespace(t *testing.T, c kubernetes.Interface) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "shared-"}}
	return must(c.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}))(t).Name
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

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestWritesAreSeenByTheOther: what one server has acknowledged, the other
// shows, whatever is asked of it next.
func TestWritesAreSeenByTheOther(t *testing.T) {
	for name, c := range map[string]struct {
		members int
		options []cluster.Option
	}{
		"one member":    {members: 1},
		"three members": {members: 3},
		"lagging":       {members: 1, options: []cluster.Option{cluster.Lagging(50 * time.Millisecond)}},
	} {
		t.Run(name, func(t *testing.T) {
			a, b, ns := pair(t, c.members, c.options...)
			ctx := t.Context()
			for i := range 20 {
				if i%2 == 1 {
					a, b = b, a
				}
				there, here := a.CoreV1().ConfigMaps(ns), b.CoreV1().ConfigMaps(ns)
				name := fmt.Sprintf("m-%d", i)
				created := must(there.Create(ctx, configMap(name), metav1.CreateOptions{}))(t)
				if list := must(here.List(ctx, metav1.ListOptions{}))(t); len(list.Items) != i+1 {
					t.Fatalf("after create %d the other lists %d", i, len(list.Items))
				}
				got := must(here.Get(ctx, name, metav1.GetOptions{}))(t)
				if got.ResourceVersion != created.ResourceVersion {
					t.Errorf("one wrote %s, the other shows %s", created.ResourceVersion, got.ResourceVersion)
				}
				fresh := metav1.ListOptions{ResourceVersion: created.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}
				if list := must(here.List(ctx, fresh))(t); len(list.Items) != i+1 {
					t.Fatalf("not older than %s the other lists %d, want %d", created.ResourceVersion, len(list.Items), i+1)
				}
			}
		})
	}
}

// TestWritesFollowWrites: a write through one server is judged by what the other
// has acknowledged.
func TestWritesFollowWrites(t *testing.T) {
	for name, then := range map[string]func(ctx context.Context, t *testing.T, a, b kubernetes.Interface, ns, name string){
		"create after delete": func(ctx context.Context, t *testing.T, a, b kubernetes.Interface, ns, name string) {
			must(a.CoreV1().ConfigMaps(ns).Create(ctx, configMap(name), metav1.CreateOptions{}))(t)
			must(b.CoreV1().ConfigMaps(ns).Get(ctx, name, metav1.GetOptions{}))(t) // b knows it
			check(t, a.CoreV1().ConfigMaps(ns).Delete(ctx, name, metav1.DeleteOptions{}))
			must(b.CoreV1().ConfigMaps(ns).Create(ctx, configMap(name), metav1.CreateOptions{}))(t)
		},
		"create after create": func(ctx context.Context, t *testing.T, a, b kubernetes.Interface, ns, name string) {
			must(a.CoreV1().ConfigMaps(ns).Create(ctx, configMap(name), metav1.CreateOptions{}))(t)
			if _, err := b.CoreV1().ConfigMaps(ns).Create(ctx, configMap(name), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
				t.Errorf("the second create got %v", err)
			}
		},
		"create in a new namespace": func(ctx context.Context, t *testing.T, a, b kubernetes.Interface, _, name string) {
			fresh := newNamespace(t, a)
			must(b.CoreV1().ConfigMaps(fresh).Create(ctx, configMap(name), metav1.CreateOptions{}))(t)
		},
		"update after update": func(ctx context.Context, t *testing.T, a, b kubernetes.Interface, ns, name string) {
			cm := must(a.CoreV1().ConfigMaps(ns).Create(ctx, configMap(name), metav1.CreateOptions{}))(t)
			cm.Data = map[string]string{"by": "b"}
			cm = must(b.CoreV1().ConfigMaps(ns).Update(ctx, cm, metav1.UpdateOptions{}))(t)
			cm.Data["by"] = "a"
			must(a.CoreV1().ConfigMaps(ns).Update(ctx, cm, metav1.UpdateOptions{}))(t)
			cm.Data["by"] = "b again"
			if _, err := b.CoreV1().ConfigMaps(ns).Update(ctx, cm, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
				t.Errorf("an update from a revision that the other has replaced got %v", err)
			}
		},
		"delete after create": func(ctx context.Context, t *testing.T, a, b kubernetes.Interface, ns, name string) {
			must(a.CoreV1().ConfigMaps(ns).Create(ctx, configMap(name), metav1.CreateOptions{}))(t)
			check(t, b.CoreV1().ConfigMaps(ns).Delete(ctx, name, metav1.DeleteOptions{}))
			if _, err := a.CoreV1().ConfigMaps(ns).Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("get after the other's delete got %v", err)
			}
		},
		"delete of many after create": func(ctx context.Context, t *testing.T, a, b kubernetes.Interface, ns, name string) {
			must(a.CoreV1().ConfigMaps(ns).Create(ctx, configMap(name), metav1.CreateOptions{}))(t)
			check(t, b.CoreV1().ConfigMaps(ns).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
			if list := must(a.CoreV1().ConfigMaps(ns).List(ctx, metav1.ListOptions{}))(t); len(list.Items) != 0 {
				t.Errorf("left: %d", len(list.Items))
			}
		},
		"a service's address after a delete": func(ctx context.Context, t *testing.T, a, b kubernetes.Interface, ns, name string) {
			must(a.CoreV1().Services(ns).Create(ctx, service(name, "10.0.0.7"), metav1.CreateOptions{}))(t)
			must(b.CoreV1().Services(ns).Get(ctx, name, metav1.GetOptions{}))(t)
			check(t, a.CoreV1().Services(ns).Delete(ctx, name, metav1.DeleteOptions{}))
			must(b.CoreV1().Services(ns).Create(ctx, service(name, "10.0.0.7"), metav1.CreateOptions{}))(t)
			check(t, b.CoreV1().Services(ns).Delete(ctx, name, metav1.DeleteOptions{}))
		},
		"a token after an account": func(ctx context.Context, t *testing.T, a, b kubernetes.Interface, ns, name string) {
			sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
			must(a.CoreV1().ServiceAccounts(ns).Create(ctx, sa, metav1.CreateOptions{}))(t)
			must(b.CoreV1().ServiceAccounts(ns).CreateToken(ctx, name, tokenRequest(), metav1.CreateOptions{}))(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			prompt, late, ns := pair(t, 1, cluster.Lagging(50*time.Millisecond))
			then(t.Context(), t, prompt, late, ns, "x")
		})
	}
}

// TestWatchesSeeTheOther: a watch on one server gets the events of both, in one
// order.
func TestWatchesSeeTheOther(t *testing.T) {
	a, b, ns := pair(t, 1)
	ctx := t.Context()
	list := must(a.CoreV1().ConfigMaps(ns).List(ctx, metav1.ListOptions{}))(t)
	from := metav1.ListOptions{ResourceVersion: list.ResourceVersion}
	onA := must(a.CoreV1().ConfigMaps(ns).Watch(ctx, from))(t)
	defer onA.Stop()
	onB := must(b.CoreV1().ConfigMaps(ns).Watch(ctx, from))(t)
	defer onB.Stop()

	const writes = 60
	var all sync.WaitGroup
	for name, c := range map[string]kubernetes.Interface{"a": a, "b": b} {
		all.Go(func() {
			for i := range writes {
				if _, err := c.CoreV1().ConfigMaps(ns).Create(ctx, configMap(fmt.Sprintf("%s-%d", name, i)), metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	read := func(w watch.Interface) (seen []string) {
		t.Helper()
		for len(seen) < 2*writes {
			select {
			case e, ok := <-w.ResultChan():
				if !ok || e.Type != watch.Added {
					t.Fatalf("after %d events: %+v", len(seen), e)
				}
				cm := e.Object.(*corev1.ConfigMap)
				seen = append(seen, cm.Name+"@"+cm.ResourceVersion)
			case <-time.After(20 * time.Second):
				t.Fatalf("only %d of %d events came", len(seen), 2*writes)
			}
		}
		return seen
	}
	gotA, gotB := read(onA), read(onB)
	all.Wait()
	for i := range gotA {
		if gotA[i] != gotB[i] {
			t.Fatalf("event %d is %s on one server, %s on the other", i, gotA[i], gotB[i])
		}
	}
}

// TestCountersLoseNothing increments one number through both servers.
func TestCountersLoseNothing(t *testing.T) {
	a, b, ns := pair(t, 1)
	ctx := t.Context()
	cm := configMap("counter")
	cm.Data = map[string]string{"n": ""}
	must(a.CoreV1().ConfigMaps(ns).Create(ctx, cm, metav1.CreateOptions{}))(t)
	const each = 25
	increment := func(c kubernetes.Interface) error {
		for {
			cm, err := c.CoreV1().ConfigMaps(ns).Get(ctx, "counter", metav1.GetOptions{})
			if err != nil {
				return err
			}
			cm.Data["n"] += "."
			if _, err = c.CoreV1().ConfigMaps(ns).Update(ctx, cm, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
				return err
			}
		}
	}
	var all sync.WaitGroup
	for _, c := range []kubernetes.Interface{a, b, a, b} {
		all.Go(func() {
			for range each {
				if err := increment(c); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if got := must(b.CoreV1().ConfigMaps(ns).Get(ctx, "counter", metav1.GetOptions{}))(t); len(got.Data["n"]) != 4*each {
		t.Errorf("counted %d of %d", len(got.Data["n"]), 4*each)
	}
}

// TestOneLeads: candidates over two servers lead one after the other, never two
// at once.
func TestOneLeads(t *testing.T) {
	a, b, ns := pair(t, 1)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	o := &office{stop: stop, terms: 8}
	must(a.CoreV1().ConfigMaps(ns).Create(ctx, configMap("work"), metav1.CreateOptions{}))(t)
	var all sync.WaitGroup
	for i, c := range []kubernetes.Interface{a, b, a, b} {
		id := fmt.Sprintf("candidate-%d", i)
		lock := must(resourcelock.New(resourcelock.LeasesResourceLock, ns, "lock", c.CoreV1(), c.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: id}))(t)
		all.Go(func() {
			for ctx.Err() == nil {
				o.lead(ctx, lock, func() error {
					_, err := c.CoreV1().ConfigMaps(ns).Update(context.WithoutCancel(ctx), configMap("work"), metav1.UpdateOptions{})
					return err
				})
			}
		})
	}
	all.Wait()
	for _, b := range o.breaches {
		t.Error(b)
	}
	if o.terms > 0 {
		t.Errorf("%d terms are missing", o.terms)
	}
}

// office is what candidates are elected to. It ends after some terms.
type office struct {
	stop func()

	mu       sync.Mutex
	held     bool
	terms    int // still to come
	breaches []error
}

// lead waits to be elected, works for one term and resigns.
func (o *office) lead(ctx context.Context, lock resourcelock.Interface, work func() error) {
	term, resign := context.WithCancel(ctx)
	defer resign()
	leaderelection.RunOrDie(term, leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: 5 * time.Second, RenewDeadline: 4 * time.Second, RetryPeriod: 20 * time.Millisecond,
		ReleaseOnCancel: true, Name: lock.Identity(),
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {
				defer resign()
				o.begin(lock.Identity())
				o.end(work())
			},
			OnStoppedLeading: func() {},
		},
	})
}

func (o *office) begin(who string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.held {
		o.breaches = append(o.breaches, fmt.Errorf("%s leads while another does", who))
	}
	o.held = true
}

func (o *office) end(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.held = false
	if err != nil {
		o.breaches = append(o.breaches, err)
	}
	if o.terms--; o.terms == 0 {
		o.stop()
	}
}
