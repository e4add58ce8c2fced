package deployment_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
)

func TestADeploymentComesUp(t *testing.T) {
	s := begin(t)
	s.Run(controllers)
	s.Run(kubelet)
	s.create(web("web", 3))
	d := s.complete("web", 3)
	if got := d.Annotations["deployment.kubernetes.io/revision"]; got != "1" {
		t.Errorf("the revision is %q", got)
	}
	var set *appsv1.ReplicaSet
	for each, err := range s.sets.List(t.Context()) {
		set = must(each, err)(t)
	}
	hash := set.Labels["pod-template-hash"]
	if hash == "" || set.Name != "web-"+hash || set.Spec.Selector.MatchLabels["pod-template-hash"] != hash || !metav1.IsControlledBy(set, d) {
		t.Errorf("the ReplicaSet is %+v", set)
	}
	if set.Annotations["deployment.kubernetes.io/desired-replicas"] != "3" || set.Annotations["deployment.kubernetes.io/max-replicas"] != "4" {
		t.Errorf("its annotations are %v", set.Annotations)
	}
	s.told("web", "ScalingReplicaSet", func(n string) bool { return n == "Scaled up replica set "+set.Name+" from 0 to 3" })
}

func TestADeploymentIsScaled(t *testing.T) {
	s := begin(t)
	s.Run(controllers)
	s.Run(kubelet)
	s.create(web("web", 2))
	s.complete("web", 2)
	for _, n := range []int32{6, 1, 0, 4} {
		s.patch("web", `{"replicas":%d}`, n)
		s.complete("web", n)
	}
	if got := s.sizes("web"); got != "1 web:1 4" {
		t.Errorf("the ReplicaSets are %s", got)
	}
	s.told("web", "ScalingReplicaSet", func(n string) bool {
		return strings.HasPrefix(n, "Scaled down replica set web-") && strings.HasSuffix(n, " from 6 to 1")
	})
}

func TestARollStaysWithinItsBounds(t *testing.T) {
	for _, c := range []struct {
		surge, unavailable string
		most, least        int
	}{{"1", "0", 5, 4}, {"0", "1", 4, 3}, {"25%", "25%", 5, 3}, {"100%", "0", 8, 4}, {"0", "100%", 4, 0}} {
		t.Run(c.surge+" "+c.unavailable, func(t *testing.T) {
			t.Parallel()
			s := begin(t)
			s.Run(controllers)
			s.Run(kubelet)
			s.create(web("web", 4, bounds(c.surge, c.unavailable)))
			s.complete("web", 4)
			s.Run(s.watchdog("web", c.most, c.least))
			s.image("web", "web:2")
			d := s.complete("web", 4)
			if got := s.sizes("web"); got != "1 web:1 0, 2 web:2 4" || d.Annotations["deployment.kubernetes.io/revision"] != "2" {
				t.Errorf("the ReplicaSets are %s, the revision %s", got, d.Annotations["deployment.kubernetes.io/revision"])
			}
		})
	}
}

func TestRecreateWaitsForTheLastPod(t *testing.T) {
	s := begin(t)
	s.Run(controllers)
	stop := s.Run(kubelet)
	s.create(web("web", 3, func(d *appsv1.DeploymentSpec) {
		d.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	}))
	s.complete("web", 3)
	stop() // pods do not end
	s.image("web", "web:2")
	evenkeeltest.Eventually(s.Env, key("web"), func(d *appsv1.Deployment) error {
		if n := d.Status.TerminatingReplicas; n == nil || *n != 3 || d.Status.Replicas != 0 {
			return fmt.Errorf("the status is %+v", d.Status)
		}
		return nil
	})
	if got := s.sizes("web"); got != "1 web:1 0" {
		t.Errorf("while old pods are there, the ReplicaSets are %s", got)
	}
	s.Run(kubelet)
	s.complete("web", 3)
	if got := s.sizes("web"); got != "1 web:1 0, 2 web:2 3" {
		t.Errorf("the ReplicaSets are %s", got)
	}
}

func TestRollbackMakesAnOldTemplateTheNewest(t *testing.T) {
	s := begin(t)
	s.Run(controllers)
	s.Run(kubelet)
	s.create(web("web", 2))
	s.complete("web", 2)
	s.image("web", "web:2")
	s.complete("web", 2)
	s.image("web", "web:1") // as `kubectl rollout undo` does
	d := s.complete("web", 2)
	if got := s.sizes("web"); got != "2 web:2 0, 3 web:1 2" || d.Annotations["deployment.kubernetes.io/revision"] != "3" {
		t.Errorf("the ReplicaSets are %s", got)
	}
	for set, err := range s.sets.List(t.Context()) {
		if set = must(set, err)(t); *set.Spec.Replicas == 2 && set.Annotations["deployment.kubernetes.io/revision-history"] != "1" {
			t.Errorf("its history is %v", set.Annotations)
		}
	}
}

func TestOldReplicaSetsGoBeyondTheLimit(t *testing.T) {
	s := begin(t)
	s.Run(controllers)
	s.Run(kubelet)
	s.create(web("web", 1, func(d *appsv1.DeploymentSpec) { d.RevisionHistoryLimit = new(int32(1)) }))
	for i := range 4 {
		s.image("web", fmt.Sprint("web:", i+1))
		s.complete("web", 1)
	}
	evenkeeltest.EventuallyAll(s.Env, func(sets []*appsv1.ReplicaSet) error {
		if len(sets) != 2 {
			return fmt.Errorf("there are %d ReplicaSets", len(sets))
		}
		return nil
	})
	if got := s.sizes("web"); got != "3 web:3 0, 4 web:4 1" {
		t.Errorf("the ReplicaSets are %s", got)
	}
}

func TestAPausedDeploymentIsScaledAndNotRolled(t *testing.T) {
	s := begin(t)
	s.Run(controllers)
	s.Run(kubelet)
	s.create(web("web", 2))
	s.complete("web", 2)
	s.patch("web", `{"paused":true}`)
	s.progressing("web", "Unknown", "DeploymentPaused")
	s.image("web", "web:2")
	s.patch("web", `{"replicas":4}`)
	evenkeeltest.Eventually(s.Env, key("web"), func(d *appsv1.Deployment) error {
		if d.Status.AvailableReplicas != 4 || d.Status.ObservedGeneration != d.Generation {
			return fmt.Errorf("the status is %+v", d.Status)
		}
		return nil
	})
	if got := s.sizes("web"); got != "1 web:1 4" {
		t.Errorf("while it is paused, the ReplicaSets are %s", got)
	}
	s.patch("web", `{"paused":null}`)
	s.complete("web", 4)
	if got := s.sizes("web"); got != "1 web:1 0, 2 web:2 4" {
		t.Errorf("the ReplicaSets are %s", got)
	}
}

// A pause in the middle of a roll keeps old and new pods; a new size is shared.
func TestAPauseInTheMiddleIsScaledInProportion(t *testing.T) {
	s := begin(t)
	s.Run(controllers)
	s.Run(kubelet)
	s.create(web("web", 10, bounds("3", "2")))
	s.complete("web", 10)
	s.image("web", "bad:2")
	evenkeeltest.EventuallyAll(s.Env, func([]*appsv1.ReplicaSet) error {
		if got := s.sizes("web"); got != "1 web:1 8, 2 bad:2 5" {
			return fmt.Errorf("the ReplicaSets are %s", got)
		}
		return nil
	})
	s.patch("web", `{"paused":true}`)
	s.progressing("web", "Unknown", "DeploymentPaused")
	s.patch("web", `{"replicas":15}`)
	evenkeeltest.EventuallyAll(s.Env, func([]*appsv1.ReplicaSet) error {
		if got := s.sizes("web"); got != "1 web:1 11, 2 bad:2 7" {
			return fmt.Errorf("the ReplicaSets are %s", got)
		}
		return nil
	})
	s.patch("web", `{"paused":null}`)
	s.image("web", "web:3")
	s.complete("web", 15)
}

func TestABadImageIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, evenkeeltest.Bubble())
		s.Run(controllers)
		s.Run(kubelet)
		s.create(web("web", 3))
		s.complete("web", 3)
		time.Sleep(time.Hour) // a Deployment that is complete does not become late
		s.complete("web", 3)
		s.image("web", "bad:2")
		time.Sleep(9 * time.Minute)
		synctest.Wait()
		if d := s.progressing("web", "True", "ReplicaSetUpdated"); d.Status.AvailableReplicas != 3 {
			t.Errorf("%d are available", d.Status.AvailableReplicas)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		d := must(s.deployments.Get(t.Context(), key("web")))(t)
		if err := evenkeeltest.Condition[*appsv1.Deployment]("Progressing", "False", evenkeeltest.Reason("ProgressDeadlineExceeded"))(d); err != nil {
			t.Error(err)
		}
		if err := evenkeeltest.Condition[*appsv1.Deployment]("Available", "True")(d); err != nil {
			t.Error(err)
		}
		s.image("web", "web:1")
		s.complete("web", 3)
	})
}

// A pause longer than the deadline does not count.
func TestResumedDeploymentsAreNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, evenkeeltest.Bubble())
		s.Run(controllers)
		s.Run(kubelet)
		s.create(web("web", 3))
		s.complete("web", 3)
		s.image("web", "bad:2")
		time.Sleep(5 * time.Minute)
		s.patch("web", `{"paused":true}`)
		time.Sleep(time.Hour)
		s.patch("web", `{"paused":null}`)
		time.Sleep(9 * time.Minute)
		synctest.Wait()
		s.progressing("web", "Unknown", "DeploymentResumed")
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		s.progressing("web", "False", "ProgressDeadlineExceeded")
	})
}

// A ReplicaSet without a controller, of the same template, is taken over with its
// pods.
func TestReplicaSetsOfOneThatIsGoneAreAdopted(t *testing.T) {
	s := begin(t)
	stop := s.Run(controllers)
	s.Run(kubelet)
	s.create(web("web", 2))
	s.complete("web", 2)
	before := map[string]bool{}
	for p, err := range s.pods.List(t.Context()) {
		before[must(p, err)(t).Name] = true
	}
	stop()
	if err := s.deployments.Delete(t.Context(), key("web"), client.Propagation(metav1.DeletePropagationOrphan)); err != nil {
		t.Fatal(err)
	}
	for set, err := range s.sets.List(t.Context()) { // as the garbage collector does
		name := client.KeyOf(must(set, err)(t))
		must(s.sets.Patch(t.Context(), name, client.MergePatch(`{"metadata":{"ownerReferences":null}}`)))(t)
	}
	must(s.deployments.Patch(t.Context(), key("web"), client.MergePatch(`{"metadata":{"finalizers":null}}`)))(t)
	evenkeeltest.EventuallyGone[*appsv1.Deployment](s.Env, key("web"))
	other := web("web", 2)
	other.Name = "other"
	s.create(other)
	s.Run(controllers)
	s.complete("other", 2)
	for p, err := range s.pods.List(t.Context()) {
		if !before[must(p, err)(t).Name] {
			t.Errorf("%s was made, though there were enough", p.Name)
		}
	}
}

func TestACollisionOfNamesIsAvoided(t *testing.T) {
	s := begin(t)
	s.create(web("web", 1))
	// What has the name is another's: nobody's Deployment, and of other labels.
	stop := s.Run(controllers)
	var name string
	evenkeeltest.EventuallyAll(s.Env, func(sets []*appsv1.ReplicaSet) error {
		if len(sets) != 1 {
			return fmt.Errorf("there are %d ReplicaSets", len(sets))
		}
		name = sets[0].Name
		return nil
	})
	stop()
	set := must(s.sets.Get(t.Context(), key(name)))(t)
	if err := s.sets.Delete(t.Context(), key(name)); err != nil {
		t.Fatal(err)
	}
	other := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: set.Spec}
	other.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}}
	other.Spec.Template.Labels = other.Spec.Selector.MatchLabels
	must(s.sets.Create(t.Context(), other))(t)
	s.Run(controllers)
	s.Run(kubelet)
	if d := s.complete("web", 1); d.Status.CollisionCount == nil || *d.Status.CollisionCount != 1 {
		t.Errorf("the collisions are %v", d.Status.CollisionCount)
	}
}

func TestFailuresOfReplicaSetsAreTold(t *testing.T) {
	s := begin(t)
	var refuse atomic.Bool
	refuse.Store(true)
	cfg := s.InFront(t, func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/pods") && refuse.Load() {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"exceeded quota"}`))
			return
		}
		server.ServeHTTP(w, r)
	})
	s.Run(func(ctx context.Context, _ *rest.Config) error { return controllers(ctx, cfg) })
	s.Run(kubelet)
	s.create(web("web", 2))
	evenkeeltest.Eventually(s.Env, key("web"), evenkeeltest.Condition[*appsv1.Deployment]("ReplicaFailure", "True", evenkeeltest.Reason("FailedCreate")))
	evenkeeltest.Eventually(s.Env, key("web"), evenkeeltest.Condition[*appsv1.Deployment]("Available", "False", evenkeeltest.Reason("MinimumReplicasUnavailable")))
	refuse.Store(false)
	for _, c := range s.complete("web", 2).Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure {
			t.Errorf("it still has %v", c)
		}
	}
}

func TestConvergesWhenTheServerGoesAway(t *testing.T) {
	s := begin(t)
	s.Run(controllers)
	s.Run(kubelet)
	names := []string{"a", "b", "c"}
	for _, name := range names {
		s.create(web(name, 4))
	}
	s.Cut()
	for _, name := range names {
		s.complete(name, 4)
		s.image(name, "web:2")
	}
	s.Restart(nil)
	for _, name := range names {
		s.complete(name, 4)
		s.image(name, "web:3")
		s.patch(name, `{"replicas":6}`)
		s.Cut()
	}
	for _, name := range names {
		s.complete(name, 6)
		if got := s.sizes(name); got != "1 web:1 0, 2 web:2 0, 3 web:3 6" {
			t.Errorf("the ReplicaSets of %s are %s", name, got)
		}
	}
}

// Fifty Deployments of ten pods at once; the log says how long that took.
func TestManyAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("a measurement")
	}
	s := begin(t)
	var n writes
	cfg := s.counting(&n)
	s.Run(func(ctx context.Context, _ *rest.Config) error { return controllers(ctx, cfg) })
	s.Run(kubelet)
	began := time.Now()
	for i := range 50 {
		s.create(web(fmt.Sprint("web-", i), 10))
	}
	for i := range 50 {
		s.complete(fmt.Sprint("web-", i), 10)
	}
	t.Logf("50 x 10 pods came up in %s, by %s", time.Since(began).Round(time.Millisecond), n.take())
	began = time.Now()
	for i := range 50 {
		s.image(fmt.Sprint("web-", i), "web:2")
	}
	for i := range 50 {
		s.complete(fmt.Sprint("web-", i), 10)
	}
	t.Logf("and were rolled in %s, by %s", time.Since(began).Round(time.Millisecond), n.take())
	for p, err := range s.pods.List(t.Context()) {
		if p := must(p, err)(t); p.DeletionTimestamp == nil && p.Spec.Containers[0].Image != "web:2" {
			t.Errorf("%s has %s", p.Name, p.Spec.Containers[0].Image)
		}
	}
}
