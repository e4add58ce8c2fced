package client_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
)

var configMaps = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}

// eachEncoding runs a test over protobuf and over JSON.
func eachEncoding(t *testing.T, f func(t *testing.T, conn *client.Conn, ns string)) {
	t.Helper()
	for name, cfg := range map[string]*rest.Config{"protobuf": theServer.Config(), "json": jsonOnly(theServer.Config())} {
		t.Run(name, func(t *testing.T) {
			conn, ns := connectAs(t, cfg)
			f(t, conn, ns)
		})
	}
}

func TestTypedObjectsAreWrittenAndRead(t *testing.T) {
	eachEncoding(t, func(t *testing.T, conn *client.Conn, ns string) {
		ctx := t.Context()
		maps := client.Of[*corev1.ConfigMap](conn).In(ns)
		given := configMap("a", map[string]string{"k": "1"})
		before := given.DeepCopy()
		made, err := maps.Create(ctx, given)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, given); diff != "" {
			t.Errorf("Create changed what it was given:\n%s", diff)
		}
		if made.UID == "" || made.Namespace != ns || made.Kind != "ConfigMap" || made.APIVersion != "v1" {
			t.Errorf("created: %+v", made)
		}
		key := client.KeyOf(made)
		got, err := maps.Get(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(made, got); diff != "" {
			t.Errorf("what was read differs from what was made:\n%s", diff)
		}
		got.Data["k"] = "2"
		updated, err := maps.Update(ctx, got)
		if err != nil {
			t.Fatal(err)
		}
		if updated.Data["k"] != "2" || updated.ResourceVersion == made.ResourceVersion {
			t.Errorf("updated: %+v", updated)
		}
		if _, err := maps.Update(ctx, made); !client.IsConflict(err) {
			t.Errorf("an update of an old revision: %v", err)
		}
		if _, err := maps.Create(ctx, given); !client.IsAlreadyExists(err) {
			t.Errorf("a second create: %v", err)
		}
		if err := maps.Delete(ctx, client.Key{Name: "a"}); err != nil {
			t.Fatal(err)
		}
		if _, err := maps.Get(ctx, key); !client.IsNotFound(err) || client.IgnoreNotFound(err) != nil {
			t.Errorf("a get of what is deleted: %v", err)
		}
	})
}

func TestOneAPIForTypedDynamicAndMetadata(t *testing.T) {
	conn, ns := connect(t)
	ctx := t.Context()
	typed := must[*corev1.ConfigMap](t)(client.Of[*corev1.ConfigMap](conn).Create(ctx, func() *corev1.ConfigMap {
		m := configMap("a", map[string]string{"k": "1"})
		m.Namespace = ns
		return m
	}()))
	key := client.KeyOf(typed)

	for name, which := range map[string]client.KindOption{
		"by kind":     client.Kind(configMaps),
		"by resource": client.OfResource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}),
	} {
		t.Run(name, func(t *testing.T) {
			dynamic := client.Of[*unstructured.Unstructured](conn, which).In(ns)
			u := must[*unstructured.Unstructured](t)(dynamic.Get(ctx, key))
			if v, _, _ := unstructured.NestedString(u.Object, "data", "k"); v != "1" || u.GroupVersionKind() != configMaps {
				t.Errorf("unstructured: %v", u.Object)
			}
			all, _, err := dynamic.All(ctx, client.Label("app", "a"))
			if err != nil || len(all) != 1 || all[0].GroupVersionKind() != configMaps {
				t.Errorf("unstructured list: %v, %v", all, err)
			}
			partial := client.Of[*metav1.PartialObjectMetadata](conn, which).In(ns)
			p := must[*metav1.PartialObjectMetadata](t)(partial.Get(ctx, key))
			if p.UID != typed.UID || p.GroupVersionKind() != configMaps {
				t.Errorf("metadata: %+v", p)
			}
			parts, revision, err := partial.All(ctx, client.Label("app", "a"))
			if err != nil || len(parts) != 1 || parts[0].UID != typed.UID || revision == "" {
				t.Errorf("metadata list: %v, %v", parts, err)
			}
			if _, err := partial.Update(ctx, p); !errors.Is(err, client.ErrMetadataOnly) {
				t.Errorf("an update of metadata alone: %v", err)
			}
			label := client.MergePatch(`{"metadata":{"labels":{"x":"y"}}}`)
			if p = must[*metav1.PartialObjectMetadata](t)(partial.Patch(ctx, key, label)); p.Labels["x"] != "y" {
				t.Errorf("patched metadata: %+v", p)
			}
		})
	}
	dynamic := client.Of[*unstructured.Unstructured](conn, client.Kind(configMaps)).In(ns)
	made := must[*unstructured.Unstructured](t)(dynamic.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "u"}, "data": map[string]any{"k": "u"},
	}}))
	if made.GetUID() == "" {
		t.Errorf("created: %v", made.Object)
	}
	made.SetKind("Secret")
	if _, err := dynamic.Update(ctx, made); !errors.Is(err, client.ErrWrongKind) {
		t.Errorf("a secret given to a client of config maps: %v", err)
	}
}

func TestScopeIsChecked(t *testing.T) {
	conn, ns := connect(t)
	ctx := t.Context()
	maps, nodes := client.Of[*corev1.ConfigMap](conn), client.Of[*corev1.Node](conn)
	for name, call := range map[string]func() error{
		"get without a namespace":        func() error { _, err := maps.Get(ctx, client.Key{Name: "a"}); return err },
		"create without a namespace":     func() error { _, err := maps.Create(ctx, configMap("a", nil)); return err },
		"collection without a namespace": func() error { return maps.DeleteCollection(ctx) },
		"a node in a namespace":          func() error { _, err := nodes.In(ns).Get(ctx, client.Key{Name: "a"}); return err },
		"nodes of a namespace":           func() error { _, _, err := nodes.In(ns).All(ctx); return err },
		"a namespace with a slash":       func() error { _, _, err := maps.In("a/b").All(ctx); return err },
	} {
		t.Run(name, func(t *testing.T) {
			if err := call(); !errors.Is(err, client.ErrScope) {
				t.Errorf("the error is %v", err)
			}
		})
	}
	for _, name := range []string{"", "..", "a/b", "a%2fb"} {
		if _, err := maps.In(ns).Get(ctx, client.Key{Name: name}); err == nil || client.IsNotFound(err) {
			t.Errorf("the name %q: %v", name, err)
		}
	}
}

func TestUnknownTypesAreNamed(t *testing.T) {
	conn, _ := connect(t)
	for name, call := range map[string]func() error{
		"unstructured without a kind": func() error {
			_, _, err := client.Of[*unstructured.Unstructured](conn).All(t.Context())
			return err
		},
		"a type of nobody": func() error { _, _, err := client.Of[*foo](conn).All(t.Context()); return err },
		"New":              func() error { _, err := client.New[*foo](theServer.Config()); return err },
	} {
		t.Run(name, func(t *testing.T) {
			if err := call(); !errors.Is(err, client.ErrUnknownType) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestWritesCanBeDry(t *testing.T) {
	conn, ns := connect(t)
	ctx := t.Context()
	maps := client.Of[*corev1.ConfigMap](conn).In(ns)
	if _, err := maps.Create(ctx, configMap("a", nil), client.Dry()); err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Get(ctx, client.Key{Name: "a"}); !client.IsNotFound(err) {
		t.Errorf("a dry create left %v", err)
	}
	makeMaps(t, maps, "b", 1)
	if err := maps.Delete(ctx, client.Key{Name: "b-000"}, client.Dry()); err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Get(ctx, client.Key{Name: "b-000"}); err != nil {
		t.Errorf("a dry delete left %v", err)
	}
}

func TestDeletesHavePreconditions(t *testing.T) {
	conn, ns := connect(t)
	ctx := t.Context()
	maps := client.Of[*corev1.ConfigMap](conn).In(ns)
	made := must[*corev1.ConfigMap](t)(maps.Create(ctx, configMap("a", nil)))
	key := client.KeyOf(made)
	if err := maps.Delete(ctx, key, client.IfUID("another")); !client.IsConflict(err) {
		t.Errorf("with another UID: %v", err)
	}
	if err := maps.Delete(ctx, key, client.IfRevision("1")); !client.IsConflict(err) {
		t.Errorf("with another revision: %v", err)
	}
	err := maps.Delete(ctx, key, client.IfUID(made.UID), client.IfRevision(made.ResourceVersion),
		client.Propagation(metav1.DeletePropagationBackground), client.Grace(0))
	if err != nil {
		t.Error(err)
	}
}

func TestDeletePropagatesToTheForeground(t *testing.T) {
	conn, ns := connect(t)
	ctx := t.Context()
	maps := client.Of[*corev1.ConfigMap](conn).In(ns)
	key := client.KeyOf(must[*corev1.ConfigMap](t)(maps.Create(ctx, configMap("a", nil))))
	if err := maps.Delete(ctx, key, client.Propagation(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	left := must[*corev1.ConfigMap](t)(maps.Get(ctx, key))
	if left.DeletionTimestamp == nil || !slices.Contains(left.Finalizers, metav1.FinalizerDeleteDependents) {
		t.Errorf("it waits for what it owns: %+v", left.ObjectMeta)
	}
}

func TestCollectionsAreDeletedBySelection(t *testing.T) {
	conn, ns := connect(t)
	ctx := t.Context()
	maps := client.Of[*corev1.ConfigMap](conn).In(ns)
	makeMaps(t, maps, "a", 3)
	if err := maps.DeleteCollection(ctx, client.Labels("app in (a-000,a-002)")); err != nil {
		t.Fatal(err)
	}
	left, _, err := maps.All(ctx)
	if err != nil || names(left) != "a-001" {
		t.Errorf("left are %q, %v", names(left), err)
	}
	if err := maps.DeleteCollection(ctx, client.Field("metadata.name", "a-001")); err != nil {
		t.Fatal(err)
	}
	if left, _, _ = maps.All(ctx); len(left) != 0 {
		t.Errorf("left are %q", names(left))
	}
}

func TestStatusIsWrittenAlone(t *testing.T) {
	conn, ns := connect(t)
	ctx := t.Context()
	deployments := client.Of[*appsv1.Deployment](conn).In(ns)
	d := must[*appsv1.Deployment](t)(deployments.Create(ctx, deployment("web")))
	d.Status.Replicas = 3
	d.Labels = map[string]string{"not": "written"}
	d = must[*appsv1.Deployment](t)(deployments.UpdateStatus(ctx, d))
	if d.Status.Replicas != 3 || d.Labels["not"] != "" {
		t.Errorf("after UpdateStatus: %+v", d)
	}
	d = must[*appsv1.Deployment](t)(deployments.Status().Patch(ctx, client.KeyOf(d), client.MergePatch(`{"status":{"replicas":2}}`)))
	if d.Status.Replicas != 2 {
		t.Errorf("after a patch of the status: %+v", d.Status)
	}
}

func TestErrorsAreThoseOfTheServer(t *testing.T) {
	cfg := theServer.ConfigFor("somebody")
	conn, ns := connectAs(t, cfg)
	if _, _, err := client.Of[*corev1.ConfigMap](conn).In(ns).All(t.Context()); !client.IsForbidden(err) {
		t.Errorf("without rights: %v", err)
	}
	cfg.BearerToken = "wrong"
	conn, ns = connectAs(t, cfg)
	if _, _, err := client.Of[*corev1.ConfigMap](conn).In(ns).All(t.Context()); !client.IsUnauthorized(err) {
		t.Errorf("with a wrong token: %v", err)
	}
	conn, ns = connect(t)
	if _, err := client.Of[*corev1.ConfigMap](conn).In(ns).Create(t.Context(), configMap("Not_A_Name", nil)); !client.IsInvalid(err) {
		t.Errorf("with a bad name: %v", err)
	}
}

func TestGraceIsSent(t *testing.T) {
	conn, ns := connect(t)
	ctx := t.Context()
	pods := client.Of[*corev1.Pod](conn).In(ns)
	p := pod("a")
	p.Spec.NodeName = "n1"
	key := client.KeyOf(must[*corev1.Pod](t)(pods.Create(ctx, p)))
	if err := pods.Delete(ctx, key, client.Grace(7*time.Second)); err != nil {
		t.Fatal(err)
	}
	left := must[*corev1.Pod](t)(pods.Get(ctx, key))
	if left.DeletionGracePeriodSeconds == nil || *left.DeletionGracePeriodSeconds != 7 {
		t.Errorf("it ends within %v", left.DeletionGracePeriodSeconds)
	}
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
}

func deployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod(name).Spec},
		},
	}
}
