package replicaset_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/evenkeeltest"
)

func TestPodsAreMadeAsTheTemplateSays(t *testing.T) {
	s := begin(t)
	s.Run(run(controller.BaseOptions{}))
	set := s.create(web("web", 3))
	if got := s.status("web", "3 0 0 0"); got.Status.FullyLabeledReplicas != 3 {
		t.Errorf("%d are fully labelled", got.Status.FullyLabeledReplicas)
	}
	for _, p := range s.living() {
		if !strings.HasPrefix(p.Name, "web-") || p.Labels["app"] != "web" || p.Annotations["note"] != "a" || !metav1.IsControlledBy(p, set) {
			t.Errorf("%s has labels %v, annotations %v, owners %v", p.Name, p.Labels, p.Annotations, p.OwnerReferences)
		}
	}
	s.told("web", "SuccessfulCreate", "Created pod: web-", 3)
	s.start(s.living()...)
	s.status("web", "3 3 3 0")
}

func TestScaleUpAndDown(t *testing.T) {
	s := begin(t)
	s.Run(run(controller.BaseOptions{}))
	s.create(web("web", 2))
	s.status("web", "2 0 0 0")
	s.start(s.living()...)
	s.status("web", "2 2 2 0")
	kept := s.living()
	s.scale("web", 5)
	s.status("web", "5 2 2 0")
	s.scale("web", 2) // those that are not ready go, at once for they run nowhere
	s.status("web", "2 2 2 0")
	for i, p := range s.living() {
		if p.UID != kept[i].UID {
			t.Errorf("%s stayed, and not %s, which is ready", p.Name, kept[i].Name)
		}
	}
	s.told("web", "SuccessfulDelete", "Deleted pod: web-", 3)
	s.scale("web", 0)
	s.status("web", "0 0 0 2")
	s.bury()
	s.status("web", "0 0 0 0")
}

func TestPodsThatEndAreReplaced(t *testing.T) {
	s := begin(t)
	s.Run(run(controller.BaseOptions{}))
	s.create(web("web", 2))
	s.status("web", "2 0 0 0")
	s.start(s.living()...)
	pods := s.living()
	if err := s.pods.Delete(t.Context(), client.KeyOf(pods[0]), client.Grace(30*time.Second)); err != nil {
		t.Fatal(err)
	}
	s.status("web", "2 1 1 1")
	failed := client.MergePatch(`{"status":{"phase":"Failed"}}`)
	must(s.pods.Status().Patch(t.Context(), client.KeyOf(pods[1]), failed))(t)
	s.status("web", "2 0 0 1")
	s.bury()
	s.status("web", "2 0 0 0")
}

func orphan(name string) *corev1.Pod {
	set := web("none", 0)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: set.Spec.Template.Labels},
		Spec:       set.Spec.Template.Spec,
	}
}

func TestOrphansAreAdoptedAndStrangersReleased(t *testing.T) {
	s := begin(t)
	before := must(s.pods.Create(t.Context(), orphan("before")))(t)
	s.Run(run(controller.BaseOptions{}))
	set := s.create(web("web", 2))
	s.status("web", "2 0 0 0")
	controlled := func(by *appsv1.ReplicaSet, want bool) func(*corev1.Pod) error {
		return func(p *corev1.Pod) error {
			if metav1.IsControlledBy(p, by) != want {
				return fmt.Errorf("%s is controlled by %s: %v, want %v", p.Name, by.Name, !want, want)
			}
			return nil
		}
	}
	evenkeeltest.Eventually(s.Env, client.KeyOf(before), controlled(set, true))

	// One more than wanted: the ReplicaSet adopts it, and one has to go.
	s.start(s.living()...)
	s.status("web", "2 2 2 0")
	must(s.pods.Create(t.Context(), orphan("after")))(t)
	evenkeeltest.EventuallyGone[*corev1.Pod](s.Env, key("after"))

	relabel := client.MergePatch(`{"metadata":{"labels":{"app":"other"}}}`)
	must(s.pods.Patch(t.Context(), client.KeyOf(before), relabel))(t)
	evenkeeltest.Eventually(s.Env, client.KeyOf(before), controlled(set, false))
	s.status("web", "2 1 1 0")
}

// A ReplicaSet that is deleted with its pods orphaned leaves them to the next.
func TestPodsOfOneThatIsGoneAreAdoptedByAnother(t *testing.T) {
	s := begin(t)
	stop := s.Run(run(controller.BaseOptions{}))
	s.create(web("first", 2))
	s.status("first", "2 0 0 0")
	s.start(s.living()...)
	s.status("first", "2 2 2 0")
	pods := s.living()
	stop()
	if err := s.sets.Delete(t.Context(), key("first"), client.Propagation(metav1.DeletePropagationOrphan)); err != nil {
		t.Fatal(err)
	}
	for _, p := range pods { // as the garbage collector does
		must(s.pods.Patch(t.Context(), client.KeyOf(p), client.MergePatch(`{"metadata":{"ownerReferences":null}}`)))(t)
	}
	s.Run(run(controller.BaseOptions{}))
	must(s.sets.Patch(t.Context(), key("first"), client.MergePatch(`{"metadata":{"annotations":{"look":"again"}}}`)))(t)
	second := s.create(web("second", 2))
	s.status("second", "2 2 2 0")
	for _, p := range s.living() {
		if !metav1.IsControlledBy(p, second) {
			t.Errorf("%s belongs to %v", p.Name, p.OwnerReferences)
		}
	}
}

func TestReadyPodsBecomeAvailableInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, evenkeeltest.Bubble())
		s.Run(run(controller.BaseOptions{}))
		set := web("web", 2)
		set.Spec.MinReadySeconds = 60
		s.create(set)
		s.status("web", "2 0 0 0")
		pods := s.living()
		s.start(pods[0])
		time.Sleep(30 * time.Second)
		s.start(pods[1])
		s.status("web", "2 2 0 0")
		for available, then := range []string{"2 2 1 0", "2 2 2 0"} {
			time.Sleep(29 * time.Second)
			synctest.Wait()
			if got := must(s.sets.Get(t.Context(), key("web")))(t).Status.AvailableReplicas; int(got) != available {
				t.Errorf("%d are available a second before their time, want %d", got, available)
			}
			time.Sleep(time.Second)
			s.status("web", then)
		}
	})
}

// A server that takes no pods is asked for one at a time, and the ReplicaSet says so.
func TestFailuresAreToldAndStartSlowly(t *testing.T) {
	s := begin(t)
	var refuse atomic.Bool
	var asked atomic.Int64
	refuse.Store(true)
	cfg := s.InFront(t, func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/pods") && refuse.Load() {
			asked.Add(1)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"pods \"web-x\" is forbidden: exceeded quota"}`))
			return
		}
		server.ServeHTTP(w, r)
	})
	stop := s.runAt(cfg, controller.BaseOptions{})
	s.create(web("web", 20))
	evenkeeltest.Eventually(s.Env, key("web"), evenkeeltest.Condition[*appsv1.ReplicaSet]("ReplicaFailure", "True", evenkeeltest.Reason("FailedCreate")))
	s.told("web", "FailedCreate", `Error creating: pods "web-x" is forbidden: exceeded quota`, 1)
	got := must(s.sets.Get(t.Context(), key("web")))(t)
	if c := got.Status.Conditions[0]; c.Message != `pods "web-x" is forbidden: exceeded quota` {
		t.Errorf("the condition says %q", c.Message)
	}
	refuse.Store(false)
	if set := s.status("web", "20 0 0 0"); len(set.Status.Conditions) != 0 {
		t.Errorf("there are conditions left: %v", set.Status.Conditions)
	}
	stop()
	if n := asked.Load(); n >= 20 {
		t.Errorf("%d pods were asked for while none was to be had", n)
	}
}

// overshoot holds back what the watch tells of pods while a ReplicaSet is looked at
// again and again, and returns how many pods there are then.
func overshoot(t *testing.T, stale bool) int {
	s := begin(t)
	gate := &gate{open: make(chan struct{})}
	cfg := s.InFront(t, func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		if strings.HasSuffix(r.URL.Path, "/pods") && r.URL.Query().Get("watch") != "" {
			w = &held{ResponseWriter: w, gate: gate, done: r.Context().Done()}
		}
		server.ServeHTTP(w, r)
	})
	stop := s.runAt(cfg, controller.BaseOptions{Stale: stale})
	s.create(web("first", 0))
	s.status("first", "0 0 0 0") // the controller runs, its caches are full
	gate.shut.Store(true)
	s.create(web("web", 3))
	for _, note := range []string{"1", "2", "3"} {
		seen := evenkeeltest.Eventually(s.Env, key("web"), func(set *appsv1.ReplicaSet) error {
			if set.Status.ObservedGeneration != set.Generation {
				return fmt.Errorf("generation %d is not observed", set.Generation)
			}
			return nil
		})
		if note == "3" {
			break
		}
		patch := client.MergePatch(map[string]any{"spec": map[string]any{"minReadySeconds": seen.Generation}})
		must(s.sets.Patch(t.Context(), key("web"), patch))(t)
	}
	stop()
	close(gate.open)
	return len(s.living())
}

func TestNoPodIsMadeTwice(t *testing.T) {
	if n := overshoot(t, false); n != 3 {
		t.Errorf("there are %d pods, want 3", n)
	}
}

// It is the read-your-writes of clients that keeps pods from being made twice.
func TestWithStaleReadsPodsAreMadeTwice(t *testing.T) {
	if n := overshoot(t, true); n <= 3 {
		t.Errorf("there are %d pods: the test before this cannot fail", n)
	}
}

// gate holds back writes while it is shut, until it opens for good.
type gate struct {
	shut atomic.Bool
	open chan struct{}
}

type held struct {
	http.ResponseWriter
	gate *gate
	done <-chan struct{}
}

func (h *held) Write(b []byte) (int, error) {
	if h.gate.shut.Load() {
		select {
		case <-h.gate.open:
		case <-h.done:
		}
	}
	return h.ResponseWriter.Write(b)
}

func (h *held) Unwrap() http.ResponseWriter { return h.ResponseWriter }

func TestConvergesWhenTheServerGoesAway(t *testing.T) {
	s := begin(t)
	s.Run(run(controller.BaseOptions{}))
	names := []string{"a", "b", "c", "d"}
	for _, name := range names {
		set := web(name, 5)
		set.Spec.Selector.MatchLabels = map[string]string{"app": name}
		set.Spec.Template.Labels = set.Spec.Selector.MatchLabels
		s.create(set)
	}
	s.Cut()
	for _, name := range names {
		s.status(name, "5 0 0 0")
		s.scale(name, 3)
	}
	s.Restart(nil)
	for _, name := range names {
		s.status(name, "3 0 0 0")
		s.scale(name, 7)
	}
	s.Cut()
	for _, name := range names {
		s.status(name, "7 0 0 0")
	}
	// A pod whose creation was not answered is one too many, until it is seen.
	evenkeeltest.EventuallyAll(s.Env, func(all []*corev1.Pod) error {
		living := slices.DeleteFunc(all, func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
		if n := len(living); n != 28 {
			return fmt.Errorf("there are %d pods, want 28", n)
		}
		return nil
	})
}
