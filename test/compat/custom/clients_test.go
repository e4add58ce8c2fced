package custom

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/even-keel/evenkeel/test/compat/cluster"
)

// TestTheDynamicClient goes through what client-go's dynamic client can do.
func TestTheDynamicClient(t *testing.T) {
	cluster.Each(t, func(t *testing.T, s *cluster.Server) {
		c := connect(t, s)
		define(t, c, hosts(version("v1", true, object{"host": text, "port": object{"type": "integer", "default": int64(80)}})))
		all := c.Resource(v1).Namespace("default")
		made := must(all.Create(t.Context(), host("v1", "a", object{"host": "x", "unknown": "y"}), metav1.CreateOptions{}))(t)
		if field(made, "spec", "port") != int64(80) || field(made, "spec", "unknown") != nil {
			t.Errorf("neither defaulted nor pruned: %v", made.Object["spec"])
		}
		applied := must(all.Apply(t.Context(), "a", host("v1", "a", object{"port": int64(81)}), metav1.ApplyOptions{FieldManager: "me", Force: true}))(t)
		if field(applied, "spec", "host") != "x" || field(applied, "spec", "port") != int64(81) {
			t.Errorf("applied: %v", applied.Object["spec"])
		}
		patched := must(all.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"status":{"phase":"Up"}}`), metav1.PatchOptions{}, "status"))(t)
		if field(patched, "status", "phase") != "Up" || patched.GetGeneration() != 2 {
			t.Errorf("status: %v", patched.Object)
		}
		if _, err := all.Patch(t.Context(), "a", types.StrategicMergePatchType, []byte(`{}`), metav1.PatchOptions{}); !apierrors.IsUnsupportedMediaType(err) {
			t.Errorf("a strategic patch: %v", err)
		}
		stale := made.DeepCopy()
		if _, err := all.Update(t.Context(), stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			t.Errorf("a stale update: %v", err)
		}
		if list := must(all.List(t.Context(), metav1.ListOptions{}))(t); len(list.Items) != 1 || list.GetKind() != "HostList" {
			t.Errorf("listed: %v", list)
		}
		if err := all.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
		if _, err := all.Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("after it was deleted: %v", err)
		}
	})
}

// TestInformersFollowAKindThatChanges: an informer keeps up while its kind gets
// another schema, which ends its watch.
func TestInformersFollowAKindThatChanges(t *testing.T) {
	cluster.Each(t, func(t *testing.T, s *cluster.Server) {
		c := connect(t, s)
		define(t, c, hosts(version("v1", true, object{"host": text, "old": text})))
		all := c.Resource(v1).Namespace("default")
		must(all.Create(t.Context(), host("v1", "a", object{"host": "x", "old": "o"}), metav1.CreateOptions{}))(t)

		factory := dynamicinformer.NewDynamicSharedInformerFactory(c, 0)
		lister := factory.ForResource(v1).Lister()
		factory.Start(t.Context().Done())
		t.Cleanup(factory.Shutdown)
		seen := func(name string) *unstructured.Unstructured {
			obj, err := lister.ByNamespace("default").Get(name)
			if err != nil {
				return &unstructured.Unstructured{}
			}
			return obj.(*unstructured.Unstructured)
		}
		eventually(t, "the informer has the object", func(context.Context) bool { return field(seen("a"), "spec", "old") == "o" })
		redefine(t, c, func(crd *unstructured.Unstructured) {
			crd.Object["spec"].(object)["versions"] = []any{version("v1", true, object{"host": text, "port": object{"type": "integer", "default": int64(80)}})}
		})
		eventually(t, "the new schema is served", func(ctx context.Context) bool {
			tried, err := all.Create(ctx, host("v1", "b", object{"host": "y"}), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err == nil && field(tried, "spec", "port") == int64(80)
		})
		must(all.Create(t.Context(), host("v1", "b", object{"host": "y"}), metav1.CreateOptions{}))(t)
		// What does not change is not sent again.
		must(all.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"metadata":{"labels":{"changed":"yes"}}}`), metav1.PatchOptions{}))(t)
		eventually(t, "the informer has what the new schema makes of both", func(context.Context) bool {
			return field(seen("a"), "spec", "port") == int64(80) && field(seen("a"), "spec", "old") == nil && field(seen("b"), "spec", "port") == int64(80)
		})
	})
}

// Host is the type that an operator's author would write.
type Host struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              HostSpec   `json:"spec"`
	Status            HostStatus `json:"status,omitzero"`
}

// HostSpec is what is wanted.
type HostSpec struct {
	Host string `json:"host,omitempty"`
	Port int    `json:"port,omitempty"`
}

// HostStatus is what there is.
type HostStatus struct {
	Phase string `json:"phase,omitempty"`
}

// DeepCopyObject copies a host.
func (h *Host) DeepCopyObject() runtime.Object {
	c := *h
	h.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

// HostList is some of them.
type HostList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Host `json:"items"`
}

// DeepCopyObject copies a list.
func (l *HostList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = make([]Host, len(l.Items))
	for i := range l.Items {
		c.Items[i] = *l.Items[i].DeepCopyObject().(*Host)
	}
	return &c
}

// TestControllerRuntime has its client work with typed and unstructured objects.
func TestControllerRuntime(t *testing.T) {
	cluster.Each(t, func(t *testing.T, s *cluster.Server) {
		first := version("v1", true, object{"host": text, "port": object{"type": "integer", "default": int64(80)}})
		first["selectableFields"] = []any{object{"jsonPath": ".spec.host"}}
		define(t, connect(t, s), hosts(first))
		scheme := runtime.NewScheme()
		gv := schema.GroupVersion{Group: group, Version: "v1"}
		scheme.AddKnownTypes(gv, &Host{}, &HostList{})
		metav1.AddToGroupVersion(scheme, gv)
		c := must(client.NewWithWatch(s.Admin(), client.Options{Scheme: scheme}))(t)
		ctx := t.Context()

		typed := &Host{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default"}, Spec: HostSpec{Host: "x"}}
		check(t, c.Create(ctx, typed))
		if typed.Spec.Port != 80 || typed.UID == "" {
			t.Errorf("created: %+v", typed)
		}
		events := must(c.Watch(ctx, &HostList{}, client.InNamespace("default"), client.MatchingFields{"spec.host": "x"}))(t)
		defer events.Stop()
		next(t, events, watch.Added, "x")

		typed.Status.Phase, typed.Spec.Host = "Up", "ignored"
		check(t, c.Status().Update(ctx, typed))
		if typed.Spec.Host != "x" || typed.Status.Phase != "Up" || typed.Generation != 1 {
			t.Errorf("after its status was updated: %+v", typed)
		}
		next(t, events, watch.Modified, "x")

		before := typed.DeepCopyObject().(*Host)
		typed.Spec.Host = "y"
		check(t, c.Patch(ctx, typed, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
		next(t, events, watch.Deleted, "x") // it is no longer selected
		if err := c.Patch(ctx, before.DeepCopyObject().(*Host), client.MergeFromWithOptions(&Host{ObjectMeta: before.ObjectMeta}, client.MergeFromWithOptimisticLock{})); !apierrors.IsConflict(err) {
			t.Errorf("a patch of what has changed since: %v", err)
		}

		mine := client.ApplyConfigurationFromUnstructured(host("v1", "b", object{"host": "x", "port": int64(1)}))
		check(t, c.Apply(ctx, mine, client.FieldOwner("me")))
		next(t, events, watch.Added, "x")
		theirs := client.ApplyConfigurationFromUnstructured(host("v1", "b", object{"port": int64(2)}))
		if err := c.Apply(ctx, theirs, client.FieldOwner("them")); !apierrors.IsConflict(err) {
			t.Errorf("what another owns was applied: %v", err)
		}

		loose := &unstructured.UnstructuredList{}
		loose.SetGroupVersionKind(gv.WithKind("HostList"))
		check(t, c.List(ctx, loose, client.MatchingFields{"spec.host": "y"}))
		if len(loose.Items) != 1 || loose.Items[0].GetName() != "a" {
			t.Errorf("selected by a field: %v", loose.Items)
		}
		meta := &metav1.PartialObjectMetadataList{}
		meta.SetGroupVersionKind(gv.WithKind("HostList"))
		check(t, c.List(ctx, meta))
		if len(meta.Items) != 2 {
			t.Errorf("listed %d objects' metadata, not 2", len(meta.Items))
		}
		check(t, c.DeleteAllOf(ctx, &Host{}, client.InNamespace("default")))
	})
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func next(t *testing.T, w watch.Interface, kind watch.EventType, where string) {
	t.Helper()
	select {
	case e := <-w.ResultChan():
		if h, ok := e.Object.(*Host); !ok || e.Type != kind || kind != watch.Deleted && h.Spec.Host != where {
			t.Fatalf("got %s %+v, not %s of %s", e.Type, e.Object, kind, where)
		}
	case <-t.Context().Done():
		t.Fatalf("no %s", kind)
	}
}
