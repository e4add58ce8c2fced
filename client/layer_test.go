package client_test

import (
	"context"
	"iter"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/client"
)

// memory is a source whose clients read what they wrote, and nothing else.
type memory struct {
	conn    *client.Conn
	objects map[client.Key]client.Object
	deleted []client.Write
}

func (m *memory) Conn() *client.Conn { return m.conn }

func (m *memory) Layer(kind schema.GroupVersionKind, form client.Form) client.Layer {
	if kind != configMaps || form != client.Typed {
		return nil
	}
	return m
}

func (m *memory) Get(_ context.Context, key client.Key) (client.Object, error) {
	if obj, ok := m.objects[key]; ok {
		return obj, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, key.Name)
}

func (m *memory) List(_ context.Context, o client.ReadOptions) iter.Seq2[client.Object, error] {
	return func(yield func(client.Object, error) bool) {
		for key, obj := range m.objects {
			if o.Namespace != "" && o.Namespace != key.Namespace {
				continue
			}
			if !yield(obj, nil) {
				return
			}
		}
	}
}

func (m *memory) Wrote(w client.Write) {
	if w.Delete {
		m.deleted = append(m.deleted, w)
		delete(m.objects, w.Key)
		return
	}
	m.objects[w.Key] = w.Object
}

func TestALayerAnswersReadsAndSeesWrites(t *testing.T) {
	ctx := t.Context()
	conn, ns := connect(t)
	m := &memory{conn: conn, objects: map[client.Key]client.Object{}}
	maps := client.Of[*corev1.ConfigMap](m).In(ns)
	makeMaps(t, client.Of[*corev1.ConfigMap](conn).In(ns), "unseen", 1)
	key := client.Key{Namespace: ns, Name: "a"}
	if _, err := maps.Get(ctx, client.Key{Name: "unseen-000"}); !client.IsNotFound(err) {
		t.Errorf("read from the server: %v", err)
	}
	if _, err := maps.Live().Get(ctx, client.Key{Name: "unseen-000"}); err != nil {
		t.Errorf("not read from the server: %v", err)
	}
	if _, err := maps.Create(ctx, configMap("dry", nil), client.Dry()); err != nil || len(m.objects) != 0 {
		t.Errorf("a dry write was told: %v, %v", m.objects, err)
	}
	made := must[*corev1.ConfigMap](t)(maps.Create(ctx, configMap("a", nil)))
	if got := must[*corev1.ConfigMap](t)(maps.Get(ctx, client.Key{Name: "a"})); got != made {
		t.Errorf("got %+v", got)
	}
	patched := must[*corev1.ConfigMap](t)(maps.Patch(ctx, key, client.MergePatch(`{"data":{"k":"v"}}`)))
	for got, err := range maps.List(ctx) {
		if err != nil || got != patched {
			t.Errorf("listed %v, %v", got, err)
		}
	}
	patched.Finalizers = []string{"example.com/wait"}
	must[*corev1.ConfigMap](t)(maps.Update(ctx, patched))
	if err := maps.Delete(ctx, client.Key{Name: "a"}); err != nil {
		t.Fatal(err)
	}
	if len(m.deleted) != 1 || m.deleted[0].Key != key || m.deleted[0].Object == nil || m.deleted[0].Object.GetDeletionTimestamp() == nil {
		t.Errorf("deleted: %+v", m.deleted)
	}
	makeMaps(t, maps, "b", 1)
	uid := must[*corev1.ConfigMap](t)(maps.Get(ctx, client.Key{Namespace: ns, Name: "b-000"})).UID
	if err := maps.Delete(ctx, client.Key{Name: "b-000"}); err != nil {
		t.Fatal(err)
	}
	if w := m.deleted[1]; w.UID != uid || w.Object != nil && w.Object.GetDeletionTimestamp() != nil {
		t.Errorf("deleted at once: %+v", w)
	}
	if _, err := client.Of[*appsv1.Deployment](m).In(ns).Create(ctx, deployment("web")); err != nil || len(m.objects) != 0 {
		t.Errorf("another kind has no layer: %v, %v", m.objects, err)
	}
}
