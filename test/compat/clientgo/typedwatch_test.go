package clientgo

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
)

// next returns the next event of a watch.
func next(t *testing.T, w watch.Interface) watch.Event {
	t.Helper()
	select {
	case e, ok := <-w.ResultChan():
		if !ok {
			t.Fatal("the watch ended")
		}
		return e
	case <-time.After(20 * time.Second):
		t.Fatal("no event came")
	}
	return watch.Event{}
}

// wantEvent checks the next event's type and object.
func wantEvent(t *testing.T, w watch.Interface, kind watch.EventType, want metav1.Object) {
	t.Helper()
	e := next(t, w)
	got, ok := e.Object.(metav1.Object)
	if e.Type != kind || !ok || got.GetName() != want.GetName() {
		t.Fatalf("got %s %+v, want %s %s", e.Type, e.Object, kind, want.GetName())
	}
	if kind != watch.Deleted && !equality.Semantic.DeepEqual(e.Object, want) {
		t.Errorf("%s carries %+v, want %+v", kind, e.Object, want)
	}
}

func TestTypedWatch(t *testing.T) {
	each(t, func(t *testing.T, c kubernetes.Interface, ns string) {
		ctx, maps := t.Context(), c.CoreV1().ConfigMaps(ns)
		before := must(maps.Create(ctx, configMap("before"), metav1.CreateOptions{}))(t)
		list := must(maps.List(ctx, metav1.ListOptions{}))(t)
		after := must(maps.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion}))(t)
		defer after.Stop()
		fromStart := must(maps.Watch(ctx, metav1.ListOptions{}))(t)
		defer fromStart.Stop()
		wantEvent(t, fromStart, watch.Added, before)

		created := must(maps.Create(ctx, configMap("one", "a", "1"), metav1.CreateOptions{}))(t)
		changed := created.DeepCopy()
		changed.Data["a"] = "2"
		changed = must(maps.Update(ctx, changed, metav1.UpdateOptions{}))(t)
		check(t, maps.Delete(ctx, "one", metav1.DeleteOptions{}))
		for _, w := range []watch.Interface{after, fromStart} {
			wantEvent(t, w, watch.Added, created)
			wantEvent(t, w, watch.Modified, changed)
			wantEvent(t, w, watch.Deleted, changed)
		}
	})
}

// TestWatchThroughSelector has an object enter and leave what is watched.
func TestWatchThroughSelector(t *testing.T) {
	each(t, func(t *testing.T, c kubernetes.Interface, ns string) {
		ctx, pods := t.Context(), c.CoreV1().Pods(ns)
		byLabel := must(pods.Watch(ctx, metav1.ListOptions{LabelSelector: "stage=on", ResourceVersion: "0"}))(t)
		defer byLabel.Stop()
		byField := must(pods.Watch(ctx, metav1.ListOptions{FieldSelector: "status.phase=Running", ResourceVersion: "0"}))(t)
		defer byField.Stop()

		p := must(pods.Create(ctx, pod("one"), metav1.CreateOptions{}))(t)
		p.Labels["stage"] = "on"
		p = must(pods.Update(ctx, p, metav1.UpdateOptions{}))(t)
		wantEvent(t, byLabel, watch.Added, p)
		p.Status.Phase = corev1.PodRunning
		p = must(pods.UpdateStatus(ctx, p, metav1.UpdateOptions{}))(t)
		wantEvent(t, byLabel, watch.Modified, p)
		wantEvent(t, byField, watch.Added, p)
		p.Labels["stage"] = "off"
		p = must(pods.Update(ctx, p, metav1.UpdateOptions{}))(t)
		e := next(t, byLabel)
		if left, ok := e.Object.(*corev1.Pod); !ok || e.Type != watch.Deleted || left.Labels["stage"] != "on" || left.ResourceVersion != p.ResourceVersion {
			t.Errorf("leaving gave %s %+v; want it as it was, with the revision %s of its leaving", e.Type, e.Object, p.ResourceVersion)
		}
		wantEvent(t, byField, watch.Modified, p)
		p.Status.Phase = corev1.PodSucceeded
		must(pods.UpdateStatus(ctx, p, metav1.UpdateOptions{}))(t)
		wantEvent(t, byField, watch.Deleted, p)
	})
}

// TestUntil waits as commands and controllers do: from a revision on, with
// retries, and from a list on.
func TestUntil(t *testing.T) {
	each(t, func(t *testing.T, c kubernetes.Interface, ns string) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		maps := c.CoreV1().ConfigMaps(ns)
		created := must(maps.Create(ctx, configMap("one", "n", "0"), metav1.CreateOptions{}))(t)
		wrote := make(chan error, 1)
		go func() {
			for i := range 10 {
				cm := configMap("one", "n", fmt.Sprint(i+1))
				if _, err := maps.Update(ctx, cm, metav1.UpdateOptions{}); err != nil {
					wrote <- err
					return
				}
			}
			wrote <- nil
		}()
		reached := func(n string) toolswatch.ConditionFunc {
			return func(e watch.Event) (bool, error) { return e.Object.(*corev1.ConfigMap).Data["n"] == n, nil }
		}
		lw := cache.NewListWatchFromClient(c.CoreV1().RESTClient(), "configmaps", ns, fields.OneTermEqualSelector("metadata.name", "one"))
		_, err := toolswatch.Until(ctx, created.ResourceVersion, lw, reached("3"), reached("10"))
		check(t, err)
		_, err = toolswatch.UntilWithSync(ctx, lw, &corev1.ConfigMap{}, nil, reached("10"))
		check(t, err)
		check(t, <-wrote)
	})
}
