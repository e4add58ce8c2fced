package statefulset

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controllers/revision"
	"github.com/even-keel/evenkeel/evenkeeltest"
)

func TestPodsAreMadeInOrderAndGoFromTheLast(t *testing.T) {
	s := stage(t)
	s.Hold(key("web-1"))
	s.Apply(web)
	s.images("web-0 one, web-1 one waits")
	s.eventually(func(set *appsv1.StatefulSet) error {
		if set.Status.Replicas != 2 || set.Status.ReadyReplicas != 1 {
			return fmt.Errorf("status %+v", set.Status)
		}
		return nil
	})
	s.Release(key("web-1"))
	s.images("web-0 one, web-1 one, web-2 one")
	s.eventually(rolledOut(3))
	s.told("SuccessfulCreate", "create Pod web-2 in StatefulSet web successful")

	s.Hold(key("web-2"))
	s.patch(`{"spec":{"replicas":1}}`)
	s.images("web-0 one, web-1 one, web-2 one ends")
	s.Release(key("web-2"))
	s.eventually(rolledOut(1))
	s.images("web-0 one")
	s.told("SuccessfulDelete", "delete Pod web-1 in StatefulSet web successful")
}

func TestAPodKnowsWhoItIs(t *testing.T) {
	s := stage(t)
	s.Apply(with("replicas: 3", "replicas: 1, ordinals: {start: 5}"))
	set := s.eventually(rolledOut(1))
	pod := evenkeeltest.Eventually(s.Env, key("web-5"), func(*corev1.Pod) error { return nil })
	want := map[string]string{"app": "web", "statefulset.kubernetes.io/pod-name": "web-5", "apps.kubernetes.io/pod-index": "5",
		"controller-revision-hash": set.Status.UpdateRevision}
	if !maps.Equal(pod.Labels, want) || pod.Spec.Hostname != "web-5" || pod.Spec.Subdomain != "web" || !metav1.IsControlledBy(pod, set) {
		t.Errorf("labels %v, host %s.%s, owners %v", pod.Labels, pod.Spec.Hostname, pod.Spec.Subdomain, pod.OwnerReferences)
	}
}

func TestParallelPodsDoNotWaitForEachOther(t *testing.T) {
	s := stage(t)
	s.Hold(key("web-0"), key("web-2"))
	s.Apply(with("replicas: 3", "replicas: 3, podManagementPolicy: Parallel"))
	s.images("web-0 one waits, web-1 one, web-2 one waits")
	s.patch(`{"spec":{"replicas":0}}`)
	s.images("web-0 one ends, web-2 one ends")
	s.Release(key("web-0"), key("web-2"))
	s.eventually(rolledOut(0))
}

func TestAPodWaitsUntilThoseBeforeItAreAvailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stage(t, evenkeeltest.Bubble())
		s.Apply(with("replicas: 3", "replicas: 2, minReadySeconds: 20"))
		s.eventually(func(set *appsv1.StatefulSet) error {
			if st := set.Status; st.ReadyReplicas != 1 || st.AvailableReplicas != 0 || st.Replicas != 1 {
				return fmt.Errorf("status %+v", st)
			}
			return nil
		})
		time.Sleep(19 * time.Second)
		s.images("web-0 one")
		time.Sleep(2 * time.Second)
		s.images("web-0 one, web-1 one")
		time.Sleep(21 * time.Second)
		s.eventually(rolledOut(2))
	})
}

func TestAnUpdateGoesFromTheLastToThePartition(t *testing.T) {
	s := stage(t)
	s.Apply(with("replicas: 3", "replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}}"))
	first := s.eventually(rolledOut(3)).Status.UpdateRevision
	s.Hold(key("web-2"))
	s.patch(`{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"two"}]}}}}`)
	s.images("web-0 one, web-1 one, web-2 one ends")
	s.Release(key("web-2"))
	s.images("web-0 one, web-1 two, web-2 two")
	s.eventually(func(set *appsv1.StatefulSet) error {
		if st := set.Status; st.UpdatedReplicas != 2 || st.CurrentReplicas != 1 || st.CurrentRevision != first || st.ReadyReplicas != 3 {
			return fmt.Errorf("status %+v", st)
		}
		return nil
	})
	// One below the partition comes back as it was.
	if err := s.pods.Delete(t.Context(), key("web-0")); err != nil {
		t.Fatal(err)
	}
	evenkeeltest.EventuallyAll(s.Env, func(all []*corev1.Event) error {
		n := 0
		for _, e := range all {
			if e.Message == "create Pod web-0 in StatefulSet web successful" {
				n += max(int(e.Count), 1)
			}
			if e.Series != nil {
				n = max(n, int(e.Series.Count))
			}
		}
		if n < 2 {
			return errors.New("web-0 was made once")
		}
		return nil
	})
	s.images("web-0 one, web-1 two, web-2 two")
	s.patch(`{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}`)
	s.images("web-0 two, web-1 two, web-2 two")
	s.eventually(rolledOut(3))
}

func TestOnDeleteWaitsForSomebody(t *testing.T) {
	s := stage(t)
	s.Apply(with("replicas: 3", "replicas: 2, updateStrategy: {type: OnDelete}"))
	s.images("web-0 one, web-1 one")
	s.patch(`{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"two"}]}}}}`)
	s.eventually(func(set *appsv1.StatefulSet) error {
		if st := set.Status; st.ObservedGeneration != set.Generation || st.UpdatedReplicas != 0 || st.CurrentReplicas != 2 {
			return fmt.Errorf("status %+v", st)
		}
		return nil
	})
	if err := s.pods.Delete(t.Context(), key("web-0")); err != nil {
		t.Fatal(err)
	}
	s.images("web-0 two, web-1 one")
}

func TestASetWithoutAStatusRollsFromTheRevisionOfItsPods(t *testing.T) {
	revisionNamed := func(name string) *appsv1.ControllerRevision {
		return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	podOf := func(revision string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{appsv1.StatefulSetRevisionLabel: revision}}}
	}
	history := revision.History{revisionNamed("one"), revisionNamed("two"), revisionNamed("three")}
	for name, c := range map[string]struct {
		status string
		pods   []*corev1.Pod
		want   *appsv1.ControllerRevision
	}{
		"as the status tells":           {"three", []*corev1.Pod{podOf("two")}, history[2]},
		"before the first status":       {"", []*corev1.Pod{podOf("three"), podOf("two")}, history[1]},
		"a status that names none left": {"zero", []*corev1.Pod{podOf("zero"), podOf("three")}, history[2]},
		"nothing is there":              {"", nil, nil},
	} {
		s := seen{set: &appsv1.StatefulSet{Status: appsv1.StatefulSetStatus{CurrentRevision: c.status}}, history: history, pods: c.pods}
		if got := s.rollsFrom(); got != c.want {
			t.Errorf("%s: it rolls from %v", name, got)
		}
	}
}

func TestHistoryIsKeptAndARollbackIsARevision(t *testing.T) {
	s := stage(t)
	s.Apply(with("replicas: 3", "replicas: 1, revisionHistoryLimit: 1"))
	s.eventually(rolledOut(1))
	for _, image := range []string{"two", "three", "four"} {
		s.patch(`{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"` + image + `"}]}}}}`)
		s.images("web-0 " + image)
		s.eventually(rolledOut(1))
	}
	s.history("3 three, 4 four")

	// This is what kubectl rollout undo sends.
	for r, err := range client.Of[*appsv1.ControllerRevision](s.Conn()).List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Revision != 3 {
			continue
		}
		if r.Annotations["kubernetes.io/change-cause"] != "first" || r.Labels["app"] != "web" {
			t.Errorf("the revision has %v and %v", r.Annotations, r.Labels)
		}
		if _, err := s.sets.Patch(t.Context(), key("web"), client.StrategicPatch(r.Data.Raw)); err != nil {
			t.Fatal(err)
		}
	}
	s.images("web-0 three")
	s.eventually(rolledOut(1))
	s.history("4 four, 5 three")
}

// history waits until there are revisions of these numbers and images.
func (s *scene) history(want string) {
	s.t.Helper()
	evenkeeltest.EventuallyAll(s.Env, func(all []*appsv1.ControllerRevision) error {
		var out []string
		for _, r := range revision.Sorted(all) {
			t, err := revision.Template(r)
			if err != nil {
				return err
			}
			out = append(out, fmt.Sprintf("%d %s", r.Revision, t.Spec.Containers[0].Image))
		}
		if got := strings.Join(out, ", "); got != want {
			return fmt.Errorf("there is %q, not %q", got, want)
		}
		return nil
	})
}

func TestPodsThatHaveEndedAreMadeAnew(t *testing.T) {
	s := stage(t)
	s.Apply(web)
	s.eventually(rolledOut(3))
	for name, phase := range map[string]corev1.PodPhase{"web-0": corev1.PodFailed, "web-2": corev1.PodSucceeded} {
		was := evenkeeltest.Eventually(s.Env, key(name), func(*corev1.Pod) error { return nil })
		s.End(key(name), phase)
		evenkeeltest.Eventually(s.Env, key(name), func(p *corev1.Pod) error {
			if p.UID == was.UID || !running(p) {
				return errors.New("it is the same, or not ready")
			}
			return nil
		})
	}
	s.eventually(rolledOut(3))
	s.told("RecreatingFailedPod", "StatefulSet default/web is recreating failed Pod web-0")
	s.told("RecreatingTerminatedPod", "StatefulSet default/web is recreating terminated Pod web-2")
}

func TestPodsAreAdoptedAndReleased(t *testing.T) {
	s := stage(t)
	s.Apply(`{apiVersion: v1, kind: Pod, metadata: {name: web-0, labels: {app: web}}, spec: {containers: [{name: c, image: "orphan"}]}}`,
		`{apiVersion: v1, kind: Pod, metadata: {name: web-x, labels: {app: web}}, spec: {containers: [{name: c, image: "other"}]}}`)
	s.Apply(with("replicas: 3", "replicas: 1, updateStrategy: {type: OnDelete}"))
	set := s.eventually(func(set *appsv1.StatefulSet) error {
		if set.Status.ReadyReplicas != 1 {
			return fmt.Errorf("status %+v", set.Status)
		}
		return nil
	})
	evenkeeltest.Eventually(s.Env, key("web-0"), func(p *corev1.Pod) error {
		if !metav1.IsControlledBy(p, set) || p.Labels[appsv1.PodIndexLabel] != "0" {
			return fmt.Errorf("owners %v, labels %v", p.OwnerReferences, p.Labels)
		}
		return nil
	})
	if p, err := s.pods.Get(t.Context(), key("web-x")); err != nil || len(p.OwnerReferences) > 0 {
		t.Errorf("web-x has no ordinal, but owners %v (%v)", p.OwnerReferences, err)
	}
	if _, err := s.pods.Patch(t.Context(), key("web-0"), client.MergePatch(`{"metadata":{"labels":{"app":"mine"}}}`)); err != nil {
		t.Fatal(err)
	}
	evenkeeltest.Eventually(s.Env, key("web-0"), func(p *corev1.Pod) error {
		if len(p.OwnerReferences) > 0 {
			return fmt.Errorf("owners %v", p.OwnerReferences)
		}
		return nil
	})
}

func TestClaimsAreMadeAndOwnedAsThePolicySays(t *testing.T) {
	s := stage(t)
	s.Apply(with("replicas: 3", `replicas: 2, persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete, whenScaled: Delete},
		volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]`))
	set := s.eventually(rolledOut(2))
	claims := client.Of[*corev1.PersistentVolumeClaim](s.Conn())
	for _, name := range []string{"data-web-0", "data-web-1"} {
		claim, err := claims.Get(t.Context(), key(name))
		if err != nil {
			t.Fatal(err)
		}
		if claim.Labels["app"] != "web" || !metav1.IsControlledBy(claim, set) {
			t.Errorf("%s has labels %v and owners %v", name, claim.Labels, claim.OwnerReferences)
		}
	}
	pod := evenkeeltest.Eventually(s.Env, key("web-1"), func(p *corev1.Pod) error { return nil })
	if !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Name == "data" && v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == "data-web-1"
	}) {
		t.Errorf("it has volumes %v", pod.Spec.Volumes)
	}
	s.told("SuccessfulCreate", "create Claim data-web-1 Pod web-1 in StatefulSet web success")

	s.patch(`{"spec":{"replicas":1}}`)
	s.eventually(rolledOut(1))
	evenkeeltest.Eventually(s.Env, key("data-web-1"), func(c *corev1.PersistentVolumeClaim) error {
		if !metav1.IsControlledBy(c, pod) || len(c.OwnerReferences) != 1 {
			return fmt.Errorf("owners %v", c.OwnerReferences)
		}
		return nil
	})
	// There is no garbage collector here: until the claim goes, the pod is not made.
	s.patch(`{"spec":{"replicas":2}}`)
	s.eventually(func(set *appsv1.StatefulSet) error {
		if st := set.Status; st.ObservedGeneration != set.Generation || st.Replicas != 1 {
			return fmt.Errorf("status %+v", st)
		}
		return nil
	})
	if err := claims.Delete(t.Context(), key("data-web-1")); err != nil {
		t.Fatal(err)
	}
	evenkeeltest.Eventually(s.Env, key("data-web-1"), func(c *corev1.PersistentVolumeClaim) error {
		if c.DeletionTimestamp == nil {
			return nil // it is another
		}
		_, err := claims.Patch(t.Context(), key("data-web-1"), client.MergePatch(`{"metadata":{"finalizers":null}}`))
		return errors.Join(errors.New("it is protected"), err)
	})
	s.eventually(rolledOut(2))
}

func TestWhatCannotBeMadeIsTold(t *testing.T) {
	s := stage(t)
	long := strings.Repeat("w", 63) // its pods' names are too long for a label
	s.Apply(with("name: web,", "name: "+long+","))
	evenkeeltest.EventuallyAll(s.Env, func(all []*corev1.Event) error {
		for _, e := range all {
			if e.Reason == "FailedCreate" && strings.HasPrefix(e.Message, fmt.Sprintf("create Pod %s-0 in StatefulSet %[1]s failed error: Pod ", long)) {
				return nil
			}
		}
		return errors.New("nothing is told")
	})
	evenkeeltest.Eventually(s.Env, key(long), func(set *appsv1.StatefulSet) error {
		if set.Status.ObservedGeneration != set.Generation || set.Status.Replicas != 0 {
			return fmt.Errorf("status %+v", set.Status)
		}
		return nil
	})
}

func TestItGoesOnWhenTheServerComesBack(t *testing.T) {
	for name, trouble := range map[string]func(*scene){
		"connections break":  func(s *scene) { s.Cut() },
		"the server is away": func(s *scene) { s.Restart(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			s := stage(t)
			s.Apply(with("replicas: 3", "replicas: 3, podManagementPolicy: Parallel"))
			trouble(s)
			s.eventually(rolledOut(3))
			s.patch(`{"spec":{"replicas":5,"template":{"spec":{"containers":[{"name":"c","image":"two"}]}}}}`)
			trouble(s)
			s.images("web-0 two, web-1 two, web-2 two, web-3 two, web-4 two")
			trouble(s)
			s.patch(`{"spec":{"replicas":2}}`)
			s.eventually(rolledOut(2))
			s.images("web-0 two, web-1 two")
		})
	}
}
