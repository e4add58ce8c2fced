package controller_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
)

func TestCreateOrUpdateWritesOnlyWhatDiffers(t *testing.T) {
	s := stage(t, controller.BaseOptions{})
	ctx := t.Context()
	for name, upsert := range map[string]func(context.Context, *client.Client[*corev1.ConfigMap], *corev1.ConfigMap, func(*corev1.ConfigMap) error) (*corev1.ConfigMap, controller.Outcome, error){
		"update": controller.CreateOrUpdate[*corev1.ConfigMap], "patch": controller.CreateOrPatch[*corev1.ConfigMap],
	} {
		t.Run(name, func(t *testing.T) {
			maps := client.Of[*corev1.ConfigMap](s.base)
			want := func(value string) func(*corev1.ConfigMap) error {
				return func(m *corev1.ConfigMap) error {
					m.Data["k"] = value
					return nil
				}
			}
			obj := configMap(name, "given", "only at first")
			for i, step := range []struct {
				value   string
				outcome controller.Outcome
			}{{"1", controller.Created}, {"1", controller.Unchanged}, {"2", controller.Updated}} {
				got, outcome, err := upsert(ctx, maps, obj, want(step.value))
				if err != nil || outcome != step.outcome || got.Data["k"] != step.value || got.Data["given"] != "only at first" {
					t.Errorf("step %d: %s, %v, %v", i, outcome, got.Data, err)
				}
			}
			if _, changed := obj.Data["k"]; changed {
				t.Error("what was given is changed")
			}
			boom := errors.New("boom")
			if _, outcome, err := upsert(ctx, maps, obj, func(*corev1.ConfigMap) error { return boom }); !errors.Is(err, boom) || outcome != controller.Unchanged {
				t.Errorf("%s, %v", outcome, err)
			}
			if _, _, err := upsert(ctx, maps, obj, func(m *corev1.ConfigMap) error { m.Name = "x"; return nil }); err == nil || !strings.Contains(err.Error(), "renamed") {
				t.Error(err)
			}
			// Somebody else is faster, twice.
			times := 0
			got, outcome, err := upsert(ctx, maps, obj, func(m *corev1.ConfigMap) error {
				if times++; times < 3 {
					must(maps.Patch(ctx, client.KeyOf(obj), client.MergePatch(map[string]any{"data": map[string]any{"theirs": m.ResourceVersion}})))
				}
				m.Data["k"] = "3"
				return nil
			})
			if err != nil || outcome != controller.Updated || got.Data["k"] != "3" || got.Data["theirs"] == "" || times != 3 {
				t.Errorf("%s, %v, %v after %d times", outcome, got.Data, err, times)
			}
		})
	}
}

func TestCreateOrPatchWritesTheStatusToo(t *testing.T) {
	s := stage(t, controller.BaseOptions{})
	ctx := t.Context()
	deployments := client.Of[*appsv1.Deployment](s.base)
	labels := map[string]string{"app": "web"}
	obj := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}},
	}
	for i := range int32(3) {
		got, outcome, err := controller.CreateOrPatch(ctx, deployments, obj, func(d *appsv1.Deployment) error {
			d.Spec.Replicas = &i
			d.Status.Replicas = i + 1
			return nil
		})
		if err != nil || outcome == controller.Unchanged || *got.Spec.Replicas != i || got.Status.Replicas != i+1 {
			t.Errorf("%d: %s, %+v, %v", i, outcome, got, err)
		}
	}
}

func TestControllerReferencesKeepTheirRules(t *testing.T) {
	s := stage(t, controller.BaseOptions{})
	ctx := t.Context()
	maps := client.Of[*corev1.ConfigMap](s.base)
	owner, other := must(maps.Create(ctx, configMap("owner"))), must(maps.Create(ctx, configMap("other")))
	namespace := must(client.Of[*corev1.Namespace](s.base).Get(ctx, client.Key{Name: "default"}))
	obj := secret("s")
	for range 2 { // once or twice is the same
		if err := controller.SetController(s.base, owner, obj); err != nil {
			t.Fatal(err)
		}
	}
	ref := obj.OwnerReferences[0]
	if len(obj.OwnerReferences) != 1 || ref.APIVersion != "v1" || ref.Kind != "ConfigMap" || ref.Name != "owner" || ref.UID != owner.UID || !*ref.Controller || !*ref.BlockOwnerDeletion {
		t.Errorf("%+v", obj.OwnerReferences)
	}
	if !controller.Controls(owner, obj) || controller.Controls(other, obj) {
		t.Error("it does not say whose it is")
	}
	if err := controller.SetController(s.base, other, obj); !errors.Is(err, controller.ErrOwned) || !strings.Contains(err.Error(), "ConfigMap owner") {
		t.Error(err)
	}
	if err := controller.SetOwner(s.base, other, obj); err != nil || len(obj.OwnerReferences) != 2 || obj.OwnerReferences[1].Controller != nil {
		t.Errorf("%v, %+v", err, obj.OwnerReferences)
	}
	if err := controller.SetOwner(s.base, namespace, obj); err != nil || obj.OwnerReferences[2].Kind != "Namespace" {
		t.Errorf("one without a namespace can own one with: %v", err)
	}
	elsewhere := secret("s")
	elsewhere.Namespace = "kube-system"
	for what, bad := range map[string]client.Object{"another namespace": elsewhere, "no namespace": namespace} {
		if err := controller.SetController(s.base, owner, bad); !errors.Is(err, controller.ErrOwnerScope) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := controller.SetController(s.base, configMap("new"), secret("t")); err == nil || !strings.Contains(err.Error(), "create it first") {
		t.Error(err)
	}
}

func TestApplyWithAnOwner(t *testing.T) {
	s := stage(t, controller.BaseOptions{})
	ctx := t.Context()
	maps, secrets := client.Of[*corev1.ConfigMap](s.base), client.Of[*corev1.Secret](s.base)
	owner, other := must(maps.Create(ctx, configMap("owner"))), must(maps.Create(ctx, configMap("other")))
	want := secret("s")
	want.Data = map[string][]byte{"a": []byte("1"), "b": []byte("2")}
	made := must(controller.Apply(ctx, secrets, owner, want))
	if !controller.Controls(owner, made) || len(want.OwnerReferences) > 0 {
		t.Errorf("%+v, %+v", made.OwnerReferences, want.OwnerReferences)
	}
	again := must(controller.Apply(ctx, secrets, owner, want))
	if again.ResourceVersion != made.ResourceVersion {
		t.Error("the same again is a write")
	}
	want.Data = map[string][]byte{"a": []byte("3")}
	if got := must(controller.Apply(ctx, secrets, owner, want)); string(got.Data["a"]) != "3" || got.Data["b"] != nil {
		t.Errorf("%v", got.Data)
	}
	if _, err := controller.Apply(ctx, secrets, other, want); !errors.Is(err, controller.ErrOwned) {
		t.Error(err)
	}
	must(secrets.Create(ctx, secret("by-hand")))
	if _, err := controller.Apply(ctx, secrets, owner, secret("by-hand")); !errors.Is(err, controller.ErrOwned) || !strings.Contains(err.Error(), "is not controlled by default/owner") {
		t.Errorf("what somebody made by hand is taken over: %v", err)
	}
	_, _, err := controller.CreateOrUpdate(ctx, secrets, secret("by-hand"), func(s *corev1.Secret) error { return controller.Control(secrets, owner, s) })
	if !errors.Is(err, controller.ErrOwned) {
		t.Error(err)
	}
	if _, _, err := controller.CreateOrUpdate(ctx, secrets, secret("new"), func(s *corev1.Secret) error { return controller.Control(secrets, owner, s) }); err != nil {
		t.Error(err)
	}
}

func TestFinalizersHoldAnObjectUntilItIsCleanedUp(t *testing.T) {
	s := stage(t, controller.BaseOptions{})
	ctx := t.Context()
	maps := client.Of[*corev1.ConfigMap](s.base)
	obj := must(maps.Create(ctx, configMap("a")))
	cleaned, fails := 0, errors.New("not yet")
	cleanup := func(context.Context, *corev1.ConfigMap) error {
		cleaned++
		return fails
	}
	const finalizer = "example.com/clean"
	got, deleted, err := controller.Finalize(ctx, maps, obj, finalizer, cleanup)
	if err != nil || deleted || !slices.Contains(got.Finalizers, finalizer) || cleaned > 0 {
		t.Fatalf("%v, %v, %v", got.Finalizers, deleted, err)
	}
	if _, _, err := controller.Finalize(ctx, maps, obj, "example.com/other", cleanup); !client.IsConflict(err) {
		t.Errorf("an old revision is written: %v", err)
	}
	same, _, err := controller.Finalize(ctx, maps, got, finalizer, cleanup)
	if err != nil || same.ResourceVersion != got.ResourceVersion {
		t.Errorf("written again: %v", err)
	}
	if err := maps.Delete(ctx, client.KeyOf(obj)); err != nil {
		t.Fatal(err)
	}
	held := must(maps.Get(ctx, client.KeyOf(obj)))
	if _, deleted, err := controller.Finalize(ctx, maps, held, finalizer, cleanup); !errors.Is(err, fails) || !deleted || cleaned != 1 {
		t.Errorf("%v, %v, cleaned %d times", deleted, err, cleaned)
	}
	fails = nil
	if _, deleted, err := controller.Finalize(ctx, maps, held, finalizer, cleanup); err != nil || !deleted || cleaned != 2 {
		t.Errorf("%v, %v, cleaned %d times", deleted, err, cleaned)
	}
	if _, err := maps.Get(ctx, client.KeyOf(obj)); !client.IsNotFound(err) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestConditionsChangeOnce(t *testing.T) {
	var conditions []metav1.Condition
	obj := configMap("a")
	obj.Generation = 3
	if !controller.SetCondition(obj, &conditions, "Ready", metav1.ConditionFalse, "Waiting", "%d of %d", 1, 2) {
		t.Error("nothing changed")
	}
	first := conditions[0]
	if first.Message != "1 of 2" || first.ObservedGeneration != 3 || first.LastTransitionTime.IsZero() {
		t.Errorf("%+v", first)
	}
	if controller.SetCondition(obj, &conditions, "Ready", metav1.ConditionFalse, "Waiting", "1 of 2") {
		t.Error("the same is a change")
	}
	if !controller.SetCondition(obj, &conditions, "Ready", metav1.ConditionTrue, "All", "2 of 2") || len(conditions) != 1 {
		t.Errorf("%+v", conditions)
	}
}

func TestPredicates(t *testing.T) {
	with := func(generation int64, label, annotation string) *corev1.ConfigMap {
		m := configMap("a")
		m.Generation, m.Labels, m.Annotations = generation, map[string]string{"l": label}, map[string]string{"a": annotation}
		return m
	}
	before := with(1, "x", "x")
	for name, test := range map[string]struct {
		change controller.Change
		want   string // which are true: generation, labels, annotations
	}{
		"created":     {controller.Change{New: before}, "g l a"},
		"deleted":     {controller.Change{Old: before}, "g l a"},
		"resync":      {controller.Change{Type: 5, Old: before, New: before}, "g l a"},
		"status":      {controller.Change{Old: before, New: with(1, "x", "x")}, ""},
		"spec":        {controller.Change{Old: before, New: with(2, "x", "x")}, "g"},
		"labels":      {controller.Change{Old: before, New: with(1, "y", "x")}, "l"},
		"annotations": {controller.Change{Old: before, New: with(1, "x", "y")}, "a"},
	} {
		var got []string
		for _, p := range []struct {
			name string
			is   controller.Predicate
		}{{"g", controller.GenerationChanged()}, {"l", controller.LabelsChanged()}, {"a", controller.AnnotationsChanged()}} {
			if p.is(test.change) {
				got = append(got, p.name)
			}
			if p.is(test.change) == controller.Not(p.is)(test.change) {
				t.Errorf("%s: Not %s", name, p.name)
			}
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: %v are true", name, got)
		}
		if any := controller.Any(controller.GenerationChanged(), controller.LabelsChanged())(test.change); any != (strings.Contains(test.want, "g") || strings.Contains(test.want, "l")) {
			t.Errorf("%s: any is %v", name, any)
		}
	}
}
