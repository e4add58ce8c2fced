package garbage_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/controller"
	"github.com/even-keel/evenkeel/controllers/garbage"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/events"
)

func TestMain(m *testing.M) { evenkeeltest.Main(m) }

type (
	object = unstructured.Unstructured
	meta   = metav1.PartialObjectMetadata
)

var (
	configMap = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	secret    = corev1.SchemeGroupVersion.WithKind("Secret")
	volume    = corev1.SchemeGroupVersion.WithKind("PersistentVolume")
	widget    = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	planet    = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Planet"}
)

func definition(kind schema.GroupVersionKind, plural, scope string) string {
	return fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.%[2]s}
spec:
  group: %[2]s
  scope: %[3]s
  names: {plural: %[1]s, kind: %[4]s}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, plural, kind.Group, scope, kind.Kind)
}

// scene is a server with a garbage collector.
type scene struct {
	*evenkeeltest.Env
	t    *testing.T
	conn *client.Conn
}

func stage(t *testing.T) *scene {
	t.Helper()
	env := evenkeeltest.Start(t)
	env.Apply(definition(widget, "widgets", "Namespaced"), definition(planet, "planets", "Cluster"))
	s := &scene{Env: env, t: t, conn: env.Conn()}
	env.Run(collect)
	return s
}

// collect runs the collector.
func collect(ctx context.Context, cfg *rest.Config) error {
	base, err := controller.NewBase(cfg, controller.BaseOptions{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	told := events.New(base, events.Options{Component: "garbage-collector-controller", Logger: slog.New(slog.DiscardHandler)})
	if err := base.Add(garbage.New(base, told)); err != nil {
		return err
	}
	recorded := make(chan error, 1)
	go func() { recorded <- told.Run(ctx) }()
	if err := base.Run(ctx); err != nil {
		return err
	}
	return <-recorded
}

func (s *scene) of(kind schema.GroupVersionKind) *client.Client[*object] {
	return client.Of[*object](s.conn, client.Kind(kind))
}

// edit changes an object before it is made.
type edit func(*object)

// ownedBy makes an object a dependent that blocks its owners' deletion.
func ownedBy(owners ...*object) edit {
	return func(o *object) {
		var refs []metav1.OwnerReference
		for _, by := range owners {
			refs = append(refs, metav1.OwnerReference{APIVersion: by.GetAPIVersion(), Kind: by.GetKind(), Name: by.GetName(), UID: by.GetUID(), BlockOwnerDeletion: new(true)})
		}
		o.SetOwnerReferences(append(o.GetOwnerReferences(), refs...))
	}
}

// ownedByNobody names an owner that does not exist.
func ownedByNobody(kind schema.GroupVersionKind, name string) edit {
	o := &object{}
	o.SetGroupVersionKind(kind)
	o.SetName(name)
	o.SetUID(types.UID("0000-" + name))
	return ownedBy(o)
}

// notBlocking has an object hold up no owner.
func notBlocking(o *object) {
	refs := o.GetOwnerReferences()
	for i := range refs {
		refs[i].BlockOwnerDeletion = nil
	}
	o.SetOwnerReferences(refs)
}

// held has an object wait for the test.
func held(o *object) { o.SetFinalizers([]string{"example.com/test"}) }

func in(namespace string) edit { return func(o *object) { o.SetNamespace(namespace) } }

func newObject(kind schema.GroupVersionKind, name string, edits ...edit) *object {
	o := &object{}
	o.SetGroupVersionKind(kind)
	o.SetName(name)
	switch kind {
	case planet:
	case volume:
		_ = unstructured.SetNestedMap(o.Object, map[string]any{
			"capacity": map[string]any{"storage": "1Gi"}, "accessModes": []any{"ReadWriteOnce"}, "hostPath": map[string]any{"path": "/x"},
		}, "spec")
	default:
		o.SetNamespace("default")
	}
	for _, e := range edits {
		e(o)
	}
	return o
}

func (s *scene) make(kind schema.GroupVersionKind, name string, edits ...edit) *object {
	s.t.Helper()
	o, err := s.of(kind).Create(s.t.Context(), newObject(kind, name, edits...))
	if err != nil {
		s.t.Fatal(err)
	}
	return o
}

func (s *scene) delete(o *object, policy metav1.DeletionPropagation) {
	s.t.Helper()
	if err := s.of(o.GroupVersionKind()).Delete(s.t.Context(), client.KeyOf(o), client.Propagation(policy)); err != nil {
		s.t.Fatal(err)
	}
}

// letGo removes an object's finalizers.
func (s *scene) letGo(o *object) {
	s.t.Helper()
	if _, err := s.of(o.GroupVersionKind()).Patch(s.t.Context(), client.KeyOf(o), client.MergePatch(`{"metadata":{"finalizers":null}}`)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) eventually(o *object, check func(*meta) error) {
	s.t.Helper()
	evenkeeltest.Eventually(s.Env, client.KeyOf(o), check, client.Kind(o.GroupVersionKind()))
}

func (s *scene) gone(objects ...*object) {
	s.t.Helper()
	for _, o := range objects {
		evenkeeltest.EventuallyGone[*meta](s.Env, client.KeyOf(o), client.Kind(o.GroupVersionKind()))
	}
}

// there fails the test unless objects exist and are not being deleted.
func (s *scene) there(objects ...*object) {
	s.t.Helper()
	for _, o := range objects {
		found, err := s.of(o.GroupVersionKind()).Get(s.t.Context(), client.KeyOf(o))
		switch {
		case err != nil:
			s.t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
		case found.GetUID() != o.GetUID():
			s.t.Errorf("%s %s is another", o.GetKind(), o.GetName())
		case found.GetDeletionTimestamp() != nil:
			s.t.Errorf("%s %s is being deleted", o.GetKind(), o.GetName())
		}
	}
}

// settle waits until the collector has looked at what came before: at a new object
// of each kind that has no owner.
func (s *scene) settle() {
	s.t.Helper()
	for _, kind := range []schema.GroupVersionKind{configMap, secret, widget} {
		s.gone(s.make(kind, "settle", ownedByNobody(configMap, "settle")))
	}
}
