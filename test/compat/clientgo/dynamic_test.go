package clientgo

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/even-keel/evenkeel/test/compat/cluster"
)

var (
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

func untyped(content map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: content}
}

func TestDynamicClient(t *testing.T) {
	cluster.Each(t, func(t *testing.T, s *cluster.Server) {
		c := clientset(t, s.Admin())
		ctx, ns := t.Context(), newNamespace(t, c)
		maps := must(dynamic.NewForConfig(s.Admin()))(t).Resource(configMaps).Namespace(ns)
		w := must(maps.Watch(ctx, metav1.ListOptions{}))(t)
		defer w.Stop()

		created := must(maps.Create(ctx, untyped(map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "one"}, "data": map[string]any{"a": "1"},
		}), metav1.CreateOptions{}))(t)
		wantEvent(t, w, watch.Added, created)
		list := must(maps.List(ctx, metav1.ListOptions{}))(t)
		if len(list.Items) != 1 || list.GetKind() != "ConfigMapList" || list.Items[0].GetKind() != "ConfigMap" || list.Items[0].GetAPIVersion() != "v1" {
			t.Errorf("listed %+v", list)
		}
		check(t, unstructured.SetNestedField(created.Object, "2", "data", "a"))
		updated := must(maps.Update(ctx, created, metav1.UpdateOptions{}))(t)
		wantEvent(t, w, watch.Modified, updated)
		patched := must(maps.Patch(ctx, "one", types.MergePatchType, []byte(`{"data":{"b":"3"}}`), metav1.PatchOptions{}))(t)
		wantEvent(t, w, watch.Modified, patched)
		applied := must(maps.Apply(ctx, "one", untyped(map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "one"}, "data": map[string]any{"c": "4"},
		}), metav1.ApplyOptions{FieldManager: "tool"}))(t)
		wantEvent(t, w, watch.Modified, applied)
		data, _, _ := unstructured.NestedStringMap(applied.Object, "data")
		if len(data) != 3 {
			t.Errorf("data is %v", data)
		}
		check(t, maps.Delete(ctx, "one", metav1.DeleteOptions{}))
		wantEvent(t, w, watch.Deleted, applied)
		_, err := maps.Get(ctx, "one", metav1.GetOptions{})
		refused(t, "get after delete", err, apierrors.IsNotFound)
	})
}

func TestDynamicStatusAndScale(t *testing.T) {
	cluster.Each(t, func(t *testing.T, s *cluster.Server) {
		c := clientset(t, s.Admin())
		ctx, ns := t.Context(), newNamespace(t, c)
		must(c.AppsV1().Deployments(ns).Create(ctx, deployment("web"), metav1.CreateOptions{}))(t)
		d := must(dynamic.NewForConfig(s.Admin()))(t).Resource(deployments).Namespace(ns)
		got := must(d.Get(ctx, "web", metav1.GetOptions{}))(t)
		check(t, unstructured.SetNestedField(got.Object, int64(3), "status", "observedGeneration"))
		got = must(d.UpdateStatus(ctx, got, metav1.UpdateOptions{}))(t)
		if n, _, _ := unstructured.NestedInt64(got.Object, "status", "observedGeneration"); n != 3 {
			t.Errorf("observed generation is %d", n)
		}
		scaled := must(d.Patch(ctx, "web", types.MergePatchType, []byte(`{"spec":{"replicas":6}}`), metav1.PatchOptions{}, "scale"))(t)
		if n, _, _ := unstructured.NestedInt64(scaled.Object, "spec", "replicas"); n != 6 || scaled.GetKind() != "Scale" {
			t.Errorf("scaled: %+v", scaled)
		}
	})
}

func TestMetadataClient(t *testing.T) {
	cluster.Each(t, func(t *testing.T, s *cluster.Server) {
		c := clientset(t, s.Admin())
		ctx, ns := t.Context(), newNamespace(t, c)
		maps := must(metadata.NewForConfig(s.Admin()))(t).Resource(configMaps).Namespace(ns)
		fill(t, c, ns, 4)
		list := must(maps.List(ctx, metav1.ListOptions{LabelSelector: "parity=odd"}))(t)
		if len(list.Items) != 2 || list.Items[0].Name != "m-001" || list.Items[0].UID == "" || list.ResourceVersion == "" {
			t.Errorf("listed %+v", list)
		}
		page := must(maps.List(ctx, metav1.ListOptions{Limit: 3}))(t)
		if len(page.Items) != 3 || page.Continue == "" {
			t.Errorf("first page: %d, %q", len(page.Items), page.Continue)
		}
		w := must(maps.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion}))(t)
		defer w.Stop()
		patched := must(maps.Patch(ctx, "m-000", types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":"b"}}}`), metav1.PatchOptions{}))(t)
		if patched.Annotations["a"] != "b" {
			t.Errorf("patched: %+v", patched.ObjectMeta)
		}
		wantEvent(t, w, watch.Modified, patched)
		got := must(maps.Get(ctx, "m-000", metav1.GetOptions{}))(t)
		if got.ResourceVersion != patched.ResourceVersion || got.Annotations["a"] != "b" {
			t.Errorf("got %+v", got)
		}
		check(t, maps.Delete(ctx, "m-000", metav1.DeleteOptions{}))
		wantEvent(t, w, watch.Deleted, patched)
		check(t, maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
		if left := must(maps.List(ctx, metav1.ListOptions{}))(t); len(left.Items) != 0 {
			t.Errorf("left: %d", len(left.Items))
		}
		_, err := maps.Get(ctx, "m-001", metav1.GetOptions{})
		refused(t, "get after delete", err, apierrors.IsNotFound)
	})
}
