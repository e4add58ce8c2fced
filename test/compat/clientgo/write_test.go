package clientgo

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
)

func TestObjectsLiveAndDie(t *testing.T) {
	each(t, func(t *testing.T, c kubernetes.Interface, ns string) {
		ctx, maps := t.Context(), c.CoreV1().ConfigMaps(ns)

		created := must(maps.Create(ctx, configMap("one", "a", "1"), metav1.CreateOptions{}))(t)
		if created.UID == "" || created.ResourceVersion == "" || created.CreationTimestamp.IsZero() || created.Namespace != ns {
			t.Errorf("created without what the server fills in: %+v", created.ObjectMeta)
		}
		_, err := maps.Create(ctx, configMap("one"), metav1.CreateOptions{})
		refused(t, "create again", err, apierrors.IsAlreadyExists)

		got := must(maps.Get(ctx, "one", metav1.GetOptions{}))(t)
		if !equality.Semantic.DeepEqual(created, got) {
			t.Errorf("got %+v, created %+v", got, created)
		}

		updated := got.DeepCopy()
		updated.Data["a"] = "2"
		updated = must(maps.Update(ctx, updated, metav1.UpdateOptions{}))(t)
		if updated.ResourceVersion == got.ResourceVersion || updated.UID != got.UID {
			t.Errorf("updated to %+v", updated.ObjectMeta)
		}
		same := must(maps.Update(ctx, updated.DeepCopy(), metav1.UpdateOptions{}))(t)
		if same.ResourceVersion != updated.ResourceVersion {
			t.Errorf("a write of nothing moved %s to %s", updated.ResourceVersion, same.ResourceVersion)
		}
		stale := got.DeepCopy()
		stale.Data["a"] = "3"
		_, err = maps.Update(ctx, stale, metav1.UpdateOptions{})
		refused(t, "update from a stale revision", err, apierrors.IsConflict)

		wrong := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("somebody-else")}
		refused(t, "delete of another's uid", maps.Delete(ctx, "one", wrong), apierrors.IsConflict)
		check(t, maps.Delete(ctx, "one", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{
			UID: &updated.UID, ResourceVersion: &updated.ResourceVersion,
		}}))
		_, err = maps.Get(ctx, "one", metav1.GetOptions{})
		refused(t, "get after delete", err, apierrors.IsNotFound)
		refused(t, "delete again", maps.Delete(ctx, "one", metav1.DeleteOptions{}), apierrors.IsNotFound)
		_, err = maps.Update(ctx, updated, metav1.UpdateOptions{})
		refused(t, "update after delete", err, apierrors.IsNotFound)
	})
}

func TestNamesAreGenerated(t *testing.T) {
	each(t, func(t *testing.T, c kubernetes.Interface, ns string) {
		seen := map[string]bool{}
		for range 20 {
			s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{GenerateName: "token-"}, StringData: map[string]string{"k": "v"}}
			got := must(c.CoreV1().Secrets(ns).Create(t.Context(), s, metav1.CreateOptions{}))(t)
			if !strings.HasPrefix(got.Name, "token-") || len(got.Name) != len("token-")+5 || seen[got.Name] {
				t.Errorf("generated %q", got.Name)
			}
			if string(got.Data["k"]) != "v" || got.StringData != nil || got.Type != corev1.SecretTypeOpaque {
				t.Errorf("secret became %+v", got)
			}
			seen[got.Name] = true
		}
	})
}

func TestDryRunChangesNothing(t *testing.T) {
	each(t, func(t *testing.T, c kubernetes.Interface, ns string) {
		ctx, maps := t.Context(), c.CoreV1().ConfigMaps(ns)
		all := []string{metav1.DryRunAll}
		dry := must(maps.Create(ctx, configMap("one", "a", "1"), metav1.CreateOptions{DryRun: all}))(t)
		if dry.UID == "" || dry.ResourceVersion != "" {
			t.Errorf("dry create answered %+v", dry.ObjectMeta)
		}
		_, err := maps.Get(ctx, "one", metav1.GetOptions{})
		refused(t, "get after dry create", err, apierrors.IsNotFound)

		real := must(maps.Create(ctx, configMap("one", "a", "1"), metav1.CreateOptions{}))(t)
		changed := real.DeepCopy()
		changed.Data["a"] = "2"
		dry = must(maps.Update(ctx, changed, metav1.UpdateOptions{DryRun: all}))(t)
		if dry.Data["a"] != "2" {
			t.Errorf("dry update answered %v", dry.Data)
		}
		check(t, maps.Delete(ctx, "one", metav1.DeleteOptions{DryRun: all}))
		check(t, maps.DeleteCollection(ctx, metav1.DeleteOptions{DryRun: all}, metav1.ListOptions{}))
		got := must(maps.Get(ctx, "one", metav1.GetOptions{}))(t)
		if !equality.Semantic.DeepEqual(real, got) {
			t.Errorf("after dry runs there is %+v, want %+v", got, real)
		}
	})
}

func TestFinalizersHoldObjects(t *testing.T) {
	each(t, func(t *testing.T, c kubernetes.Interface, ns string) {
		ctx, maps := t.Context(), c.CoreV1().ConfigMaps(ns)
		cm := configMap("held")
		cm.Finalizers = []string{"example.com/hold"}
		created := must(maps.Create(ctx, cm, metav1.CreateOptions{}))(t)
		check(t, maps.Delete(ctx, "held", metav1.DeleteOptions{}))
		held := must(maps.Get(ctx, "held", metav1.GetOptions{}))(t)
		if held.DeletionTimestamp == nil || held.UID != created.UID {
			t.Fatalf("while it is held: %+v", held.ObjectMeta)
		}
		more := held.DeepCopy()
		more.Finalizers = append(more.Finalizers, "example.com/more")
		_, err := maps.Update(ctx, more, metav1.UpdateOptions{})
		refused(t, "add a finalizer to a dying object", err, func(err error) bool { return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) })
		held.Finalizers = nil
		must(maps.Update(ctx, held, metav1.UpdateOptions{}))(t)
		_, err = maps.Get(ctx, "held", metav1.GetOptions{})
		refused(t, "get after the last finalizer", err, apierrors.IsNotFound)
	})
}

func TestPropagationBecomesFinalizers(t *testing.T) {
	each(t, func(t *testing.T, c kubernetes.Interface, ns string) {
		ctx, deployments := t.Context(), c.AppsV1().Deployments(ns)
		for policy, finalizer := range map[metav1.DeletionPropagation]string{
			metav1.DeletePropagationForeground: metav1.FinalizerDeleteDependents,
			metav1.DeletePropagationOrphan:     metav1.FinalizerOrphanDependents,
		} {
			name := strings.ToLower(string(policy))
			must(deployments.Create(ctx, deployment(name), metav1.CreateOptions{}))(t)
			check(t, deployments.Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &policy}))
			got := must(deployments.Get(ctx, name, metav1.GetOptions{}))(t)
			if got.DeletionTimestamp == nil || len(got.Finalizers) != 1 || got.Finalizers[0] != finalizer {
				t.Errorf("%s: %+v", policy, got.ObjectMeta)
			}
		}
	})
}

func TestConflictsAreRetried(t *testing.T) {
	each(t, func(t *testing.T, c kubernetes.Interface, ns string) {
		ctx, deployments := t.Context(), c.AppsV1().Deployments(ns)
		must(deployments.Create(ctx, deployment("web"), metav1.CreateOptions{}))(t)
		const writers, rounds = 4, 5
		done := make(chan error, writers)
		for range writers {
			go func() {
				for range rounds {
					err := retry.RetryOnConflict(patient, func() error {
						d, err := deployments.Get(ctx, "web", metav1.GetOptions{})
						if err != nil {
							return err
						}
						*d.Spec.Replicas++
						_, err = deployments.Update(ctx, d, metav1.UpdateOptions{})
						return err
					})
					if err != nil {
						done <- err
						return
					}
				}
				done <- nil
			}()
		}
		for range writers {
			check(t, <-done)
		}
		got := must(deployments.Get(ctx, "web", metav1.GetOptions{}))(t)
		if *got.Spec.Replicas != 1+writers*rounds || got.Generation != 1+writers*rounds {
			t.Errorf("%d replicas, generation %d; want %d", *got.Spec.Replicas, got.Generation, 1+writers*rounds)
		}
	})
}

// patient is a back-off for many writers of one object.
var patient = func() wait.Backoff {
	b := retry.DefaultRetry
	b.Steps = 50
	b.Factor = 1.0
	return b
}()

func deployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "img:1"}}},
			},
		},
	}
}

// TestWritersOfOneObject: who names no revision need not retry, however many
// others write.
func TestWritersOfOneObject(t *testing.T) {
	each(t, func(t *testing.T, c kubernetes.Interface, ns string) {
		ctx, maps := t.Context(), c.CoreV1().ConfigMaps(ns)
		const writers, rounds = 8, 10
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() {
				own := fmt.Sprintf("w%d", w)
				for i := range rounds {
					value := fmt.Sprint(i)
					wanted := coreapply.ConfigMap("hot", ns).WithData(map[string]string{own + ".applied": value})
					if _, err := maps.Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: own}); err != nil {
						t.Errorf("apply: %v", err)
					}
					patch := fmt.Appendf(nil, `{"data":{"%s.patched":%q}}`, own, value)
					if _, err := maps.Patch(ctx, "hot", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
						t.Errorf("patch: %v", err)
					}
				}
			})
		}
		all.Wait()
		got := must(maps.Get(ctx, "hot", metav1.GetOptions{}))(t)
		for w := range writers {
			for _, how := range []string{"applied", "patched"} {
				if key := fmt.Sprintf("w%d.%s", w, how); got.Data[key] != fmt.Sprint(rounds-1) {
					t.Errorf("%s is %q", key, got.Data[key])
				}
			}
		}
		for w := range writers {
			all.Go(func() {
				for i := range rounds {
					if _, err := maps.Update(ctx, configMap("hot", "by", fmt.Sprint(w, i)), metav1.UpdateOptions{}); err != nil {
						t.Errorf("update: %v", err)
					}
				}
			})
		}
		all.Wait()
	})
}

func TestPatches(t *testing.T) {
	each(t, func(t *testing.T, c kubernetes.Interface, ns string) {
		ctx, deployments := t.Context(), c.AppsV1().Deployments(ns)
		must(deployments.Create(ctx, deployment("web"), metav1.CreateOptions{}))(t)
		patched := func(kind types.PatchType, patch string) *appsv1.Deployment {
			t.Helper()
			return must(deployments.Patch(ctx, "web", kind, []byte(patch), metav1.PatchOptions{}))(t)
		}
		d := patched(types.JSONPatchType, `[{"op":"test","path":"/spec/replicas","value":1},{"op":"replace","path":"/spec/replicas","value":2}]`)
		if *d.Spec.Replicas != 2 || d.Generation != 2 {
			t.Errorf("JSON patch: %d replicas, generation %d", *d.Spec.Replicas, d.Generation)
		}
		d = patched(types.MergePatchType, `{"metadata":{"annotations":{"a":"1"}},"spec":{"paused":true}}`)
		if d.Annotations["a"] != "1" || !d.Spec.Paused {
			t.Errorf("merge patch: %v, paused %v", d.Annotations, d.Spec.Paused)
		}
		d = patched(types.StrategicMergePatchType, `{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"side:1"}]}}}}`)
		if n := len(d.Spec.Template.Spec.Containers); n != 2 {
			t.Errorf("strategic merge patch: %d containers", n)
		}
		d = patched(types.StrategicMergePatchType, `{"spec":{"template":{"spec":{"containers":[{"name":"side","$patch":"delete"}]}}}}`)
		if n := len(d.Spec.Template.Spec.Containers); n != 1 {
			t.Errorf("strategic delete: %d containers", n)
		}
		_, err := deployments.Patch(ctx, "web", types.JSONPatchType, []byte(`[{"op":"test","path":"/spec/replicas","value":9}]`), metav1.PatchOptions{})
		refused(t, "failed test of a JSON patch", err, apierrors.IsInvalid)
		_, err = deployments.Patch(ctx, "web", types.MergePatchType, []byte(`{"metadata":{"resourceVersion":"1"},"spec":{"paused":false}}`), metav1.PatchOptions{})
		refused(t, "patch of a stale revision", err, apierrors.IsConflict)
		_, err = deployments.Patch(ctx, "none", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
		refused(t, "patch of what does not exist", err, apierrors.IsNotFound)
		_, err = deployments.Patch(ctx, "web", types.MergePatchType, []byte(`{"spec":{"nonsense":1}}`), metav1.PatchOptions{FieldValidation: "Strict"})
		refused(t, "unknown field, strict", err, apierrors.IsInvalid)
	})
}
