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
	"k8s.io/apimachinery/pkg/labels"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
)

func setSelector(set *appsv1.ReplicaSet) (labels.Selector, error) {
	return metav1.LabelSelectorAsSelector(set.Spec.Selector)
}

// claimant is a ReplicaSet of what has the label app with its name.
func claimant(name string) *appsv1.ReplicaSet {
	l := map[string]string{"app": name}
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Finalizers: []string{"example.com/stay"}},
		Spec: appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: l}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: l}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}},
	}
}

func claimed(name, app string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
}

// claims runs a controller of ReplicaSets that says which it was called for.
func claims(s *scene) chan string {
	heard := make(chan string, 100)
	s.run(controller.New("claims", func(_ context.Context, req controller.Request) (controller.Result, error) {
		heard <- req.Key.Name
		return controller.Done, nil
	}, controller.For[*appsv1.ReplicaSet](controller.GenerationChanged()), controller.Claims[*corev1.Pod](setSelector)))
	return heard
}

func TestClaim(t *testing.T) {
	s := stage(t, controller.BaseOptions{})
	claims(s)
	ctx := t.Context()
	sets, pods := client.Of[*appsv1.ReplicaSet](s.base), client.Of[*corev1.Pod](s.base)
	a, b := must(sets.Create(ctx, claimant("a"))), must(sets.Create(ctx, claimant("b")))
	own, others, unwanted := claimed("own", "a"), claimed("others", "a"), claimed("unwanted", "a")
	for pod, owner := range map[*corev1.Pod]*appsv1.ReplicaSet{own: a, others: b} {
		if err := controller.SetController(s.base, owner, pod); err != nil {
			t.Fatal(err)
		}
	}
	for _, pod := range []*corev1.Pod{own, others, unwanted, claimed("orphan", "a"), claimed("strange", "c")} {
		must(pods.Create(ctx, pod))
	}
	claim := func(owner *appsv1.ReplicaSet) string {
		t.Helper()
		selector, _ := setSelector(owner)
		got, err := controller.Claim(ctx, sets, owner, pods, selector, func(p *corev1.Pod) bool { return p.Name != "unwanted" })
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, p := range got {
			if !controller.Controls(owner, p) {
				t.Errorf("%s is not controlled by %s", p.Name, owner.Name)
			}
			names = append(names, p.Name)
		}
		slices.Sort(names)
		return strings.Join(names, " ")
	}
	if got := claim(a); got != "orphan own" {
		t.Errorf("a claims %q", got)
	}
	if got := claim(b); got != "" { // it gives up what it does not select
		t.Errorf("b claims %q", got)
	}
	if got := claim(a); got != "orphan others own" {
		t.Errorf("then a claims %q", got)
	}
	if p := must(pods.Live().Get(ctx, client.Key{Namespace: "default", Name: "unwanted"})); len(p.OwnerReferences) != 0 {
		t.Errorf("what is not wanted is claimed: %v", p.OwnerReferences)
	}
}

// The cache may not yet know that the owner is being deleted; the server does.
func TestOneThatIsBeingDeletedAdoptsNothing(t *testing.T) {
	s := stage(t, controller.BaseOptions{})
	claims(s)
	ctx := t.Context()
	sets, pods := client.Of[*appsv1.ReplicaSet](s.base), client.Of[*corev1.Pod](s.base)
	before := must(sets.Create(ctx, claimant("a")))
	if err := sets.Delete(ctx, client.KeyOf(before)); err != nil {
		t.Fatal(err)
	}
	must(pods.Create(ctx, claimed("orphan", "a")))
	selector, _ := setSelector(before)
	if _, err := controller.Claim(ctx, sets, before, pods, selector, nil); !errors.Is(err, controller.ErrOwnerGone) {
		t.Errorf("the error is %v", err)
	}
	now := must(sets.Live().Get(ctx, client.KeyOf(before)))
	if got, err := controller.Claim(ctx, sets, now, pods, selector, nil); err != nil || len(got) != 0 {
		t.Errorf("it claims %v, %v", got, err)
	}
}

func TestThoseWhoSelectAnOrphanHearOfIt(t *testing.T) {
	s := stage(t, controller.BaseOptions{})
	heard := claims(s)
	ctx := t.Context()
	conn := s.Conn()
	sets, pods := client.Of[*appsv1.ReplicaSet](conn), client.Of[*corev1.Pod](conn)
	for _, name := range []string{"a", "b"} {
		must(sets.Create(ctx, claimant(name)))
		if got := <-heard; got != name {
			t.Fatalf("%s was heard of, not %s", got, name)
		}
	}
	pod := must(pods.Create(ctx, claimed("orphan", "a")))
	if got := <-heard; got != "a" {
		t.Errorf("%s heard of the new orphan of a", got)
	}
	must(pods.Status().Patch(ctx, client.KeyOf(pod), client.MergePatch(`{"status":{"phase":"Running"}}`))) // concerns nobody
	must(pods.Patch(ctx, client.KeyOf(pod), client.MergePatch(`{"metadata":{"labels":{"app":"b"}}}`)))
	got := []string{<-heard, <-heard}
	slices.Sort(got)
	if strings.Join(got, " ") != "a b" {
		t.Errorf("%v heard of the orphan that is b's now", got)
	}
	if err := pods.Delete(ctx, client.KeyOf(pod)); err != nil {
		t.Fatal(err)
	}
	if got := <-heard; got != "b" {
		t.Errorf("%s heard of the orphan that is gone", got)
	}
}
