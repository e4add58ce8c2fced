package daemonset

import (
	"context"
	"fmt"
	"io"
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
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controllers/pods"
	"github.com/even-keel/evenkeel/controllers/podstest"
	"github.com/even-keel/evenkeel/controllers/revision"
	"github.com/even-keel/evenkeel/evenkeeltest"
)

func TestEveryNodeThatItIsForHasAPod(t *testing.T) {
	s := stage(t)
	s.node("n1", "disk: ssd", "")
	s.node("n2", "disk: ssd", `unschedulable: true, taints: [{key: node.kubernetes.io/unschedulable, effect: NoSchedule}]`)
	s.node("n3", "disk: ssd", `taints: [{key: example.com/mine, effect: NoSchedule}]`)
	s.node("n4", "disk: hdd", "")
	s.Apply(with("spec: {containers", "spec: {nodeSelector: {disk: ssd}, containers"))
	set := s.eventually(rolledOut(2))
	pod := s.images("n1 one, n2 one")["n1"]
	s.told("SuccessfulCreate", "Created pod: "+pod.Name)
	if !metav1.IsControlledBy(pod, set) || pod.Labels["controller-revision-hash"] == "" || pod.Labels["pod-template-generation"] != "1" || nodeOf(&corev1.Pod{Spec: corev1.PodSpec{Affinity: pod.Spec.Affinity}}) != "n1" {
		t.Errorf("owners %v, labels %v, affinity %v", pod.OwnerReferences, pod.Labels, pod.Spec.Affinity)
	}
	for _, key := range []string{"not-ready", "unreachable", "disk-pressure", "memory-pressure", "pid-pressure", "unschedulable"} {
		if !slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return t.Key == "node.kubernetes.io/"+key }) {
			t.Errorf("it does not tolerate %s", key)
		}
	}

	s.node("n4", "disk: ssd", "")
	s.node("n3", "disk: ssd", "")
	s.node("n1", "disk: ssd", `taints: [{key: example.com/mine, effect: NoExecute}]`)
	s.images("n2 one, n3 one, n4 one")
	s.eventually(rolledOut(3))
	s.told("SuccessfulDelete", "Deleted pod: "+pod.Name)
	// A pod that is there stays, but should not be.
	s.node("n2", "disk: ssd", `taints: [{key: example.com/mine, effect: NoSchedule}]`)
	s.eventually(func(set *appsv1.DaemonSet) error {
		if st := set.Status; st.NumberMisscheduled != 1 || st.DesiredNumberScheduled != 2 || st.NumberReady != 2 {
			return fmt.Errorf("status %+v", st)
		}
		return nil
	})
	s.images("n2 one, n3 one, n4 one")
}

func TestAnUpdateTakesOneNodeAtATime(t *testing.T) {
	s := stage(t)
	for _, n := range []string{"n1", "n2", "n3"} {
		s.node(n, "", "")
	}
	s.Apply(agent)
	s.eventually(rolledOut(3))
	held := s.images("n1 one, n2 one, n3 one")["n1"]
	s.Hold(client.KeyOf(held))
	s.patch(two)
	s.images("n1 one ends, n2 one, n3 one")
	s.eventually(func(set *appsv1.DaemonSet) error {
		if st := set.Status; st.ObservedGeneration != set.Generation || st.UpdatedNumberScheduled != 0 {
			return fmt.Errorf("status %+v", st)
		}
		return nil
	})
	s.Release(client.KeyOf(held))
	s.images("n1 two, n2 two, n3 two")
	s.eventually(rolledOut(3))
}

func TestASurgeHasTheNewPodReadyBeforeTheOldGoes(t *testing.T) {
	s := stage(t)
	s.node("n1", "", "")
	s.node("n2", "", "")
	s.Apply(with("selector:", "updateStrategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}, selector:"))
	s.eventually(rolledOut(2))
	s.HoldAll()
	s.patch(two)
	s.images("n1 one, n1 two waits, n2 one")
	s.ReleaseAll()
	s.images("n1 two, n2 two")
	s.eventually(rolledOut(2))
}

func TestOnDeleteWaitsForSomebody(t *testing.T) {
	s := stage(t)
	s.node("n1", "", "")
	s.node("n2", "", "")
	s.Apply(with("selector:", "updateStrategy: {type: OnDelete}, selector:"))
	s.eventually(rolledOut(2))
	s.patch(two)
	s.eventually(func(set *appsv1.DaemonSet) error {
		if st := set.Status; st.ObservedGeneration != set.Generation || st.UpdatedNumberScheduled != 0 || st.NumberAvailable != 2 {
			return fmt.Errorf("status %+v", st)
		}
		return nil
	})
	if err := s.pods.Delete(t.Context(), client.KeyOf(s.images("n1 one, n2 one")["n2"])); err != nil {
		t.Fatal(err)
	}
	s.images("n1 one, n2 two")
}

func TestARollbackIsARevision(t *testing.T) {
	s := stage(t)
	s.node("n1", "", "")
	s.Apply(with("selector:", "revisionHistoryLimit: 1, selector:"))
	s.eventually(rolledOut(1))
	for _, image := range []string{"two", "three"} {
		s.patch(strings.ReplaceAll(two, "two", image))
		s.images("n1 " + image)
		s.eventually(rolledOut(1))
	}
	history := s.history("2 two, 3 three")
	if _, err := s.sets.Patch(t.Context(), key("agent"), client.StrategicPatch(history[0].Data.Raw)); err != nil {
		t.Fatal(err)
	}
	s.images("n1 two")
	s.eventually(rolledOut(1))
	s.history("3 three, 4 two")
}

// history waits until there are revisions of these numbers and images.
func (s *scene) history(want string) (out revision.History) {
	s.t.Helper()
	evenkeeltest.EventuallyAll(s.Env, func(all []*appsv1.ControllerRevision) error {
		out = revision.Sorted(all)
		var texts []string
		for _, r := range out {
			t, err := revision.Template(r)
			if err != nil {
				return err
			}
			texts = append(texts, fmt.Sprintf("%d %s", r.Revision, t.Spec.Containers[0].Image))
		}
		if got := strings.Join(texts, ", "); got != want {
			return fmt.Errorf("there is %q, not %q", got, want)
		}
		return nil
	})
	return out
}

func TestPodsThatHaveEndedAreMadeAnew(t *testing.T) {
	s := stage(t)
	s.node("n1", "", "")
	s.Apply(agent)
	for phase, event := range map[corev1.PodPhase][2]string{
		corev1.PodFailed:    {"FailedDaemonPod", "Found failed daemon pod default/%s on node n1, will try to kill it"},
		corev1.PodSucceeded: {"SucceededDaemonPod", "Found succeeded daemon pod default/%s on node n1, will try to delete it"},
	} {
		s.eventually(rolledOut(1))
		was := s.images("n1 one")["n1"]
		s.End(client.KeyOf(was), phase)
		s.told(event[0], fmt.Sprintf(event[1], was.Name))
		evenkeeltest.EventuallyGone[*corev1.Pod](s.Env, client.KeyOf(was))
	}
	s.eventually(rolledOut(1))
}

// A kubelet that rejects a pod at once is not a reason to make thousands.
func TestPodsThatFailAgainAndAgainAreMadeEverMoreSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := evenkeeltest.Start(t, evenkeeltest.Bubble())
		env.Run(run)
		s := &scene{Env: env, t: t, sets: client.Of[*appsv1.DaemonSet](env.Conn()), pods: client.Of[*corev1.Pod](env.Conn())}
		s.node("n1", "", "")
		s.Apply(agent)
		failed := 0
		for started := time.Now(); time.Since(started) < time.Hour; time.Sleep(500 * time.Millisecond) {
			for p, err := range s.pods.List(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				if pods.Ended(p) {
					continue
				}
				p.Status.Phase = corev1.PodFailed
				if _, err := s.pods.UpdateStatus(t.Context(), p); err != nil {
					t.Fatal(err)
				}
				failed++
			}
		}
		// At once, and after 1, 2, 4 ... 512 s and 15 min.
		if failed < 10 || failed > 15 {
			t.Errorf("%d pods have failed in an hour", failed)
		}
	})
}

func TestPodsAreAdoptedAndReleased(t *testing.T) {
	s := stage(t)
	s.node("n1", "", "")
	s.Apply(`{apiVersion: v1, kind: Pod, metadata: {name: orphan, labels: {app: agent}}, spec: {containers: [{name: c, image: "orphan"}]}}`)
	evenkeeltest.Eventually(s.Env, key("orphan"), func(p *corev1.Pod) error {
		if p.Spec.NodeName == "" {
			return fmt.Errorf("it has no node")
		}
		return nil
	})
	s.Apply(with("selector:", "updateStrategy: {type: OnDelete}, selector:"))
	s.eventually(func(set *appsv1.DaemonSet) error {
		if set.Status.NumberReady != 1 {
			return fmt.Errorf("status %+v", set.Status)
		}
		return nil
	})
	s.images("n1 orphan")
	if _, err := s.pods.Patch(t.Context(), key("orphan"), client.MergePatch(`{"metadata":{"labels":{"app":"mine"}}}`)); err != nil {
		t.Fatal(err)
	}
	s.images("n1 one, n1 orphan")
	s.eventually(rolledOut(1))
}

func TestWhatCannotBeMadeIsToldAndTriedAgain(t *testing.T) {
	env := evenkeeltest.Start(t)
	var full atomic.Bool
	full.Store(true)
	front := env.InFront(t, func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		if full.Load() && r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/pods") {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"exceeded quota","reason":"Forbidden","code":403}`)
			return
		}
		server.ServeHTTP(w, r)
	})
	env.Run(func(ctx context.Context, _ *rest.Config) error { return run(ctx, front) })
	s := &scene{Env: env, Cluster: podstest.Play(t, env), t: t}
	s.node("n1", "", "")
	s.Apply(agent)
	s.told("FailedCreate", "Error creating: exceeded quota")
	full.Store(false)
	s.eventually(rolledOut(1))
}

func TestItGoesOnWhenTheServerComesBack(t *testing.T) {
	for name, trouble := range map[string]func(*scene){
		"connections break":  func(s *scene) { s.Cut() },
		"the server is away": func(s *scene) { s.Restart(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			s := stage(t)
			for i := range 4 {
				s.node(fmt.Sprint("n", i), "", "")
			}
			s.Apply(agent)
			trouble(s)
			s.eventually(rolledOut(4))
			s.patch(two)
			trouble(s)
			s.images("n0 two, n1 two, n2 two, n3 two")
			trouble(s)
			s.node("n4", "", "")
			s.eventually(rolledOut(5))
		})
	}
}
