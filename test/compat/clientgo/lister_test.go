package clientgo

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"

	"github.com/even-keel/evenkeel/test/compat/cluster"
)

// TestListers: what typed, dynamic and metadata factories list from their caches
// is what is written, by namespace and by labels.
func TestListers(t *testing.T) {
	cluster.Each(t, func(t *testing.T, s *cluster.Server) {
		c, ns := connect(t, s)
		ctx, stop := context.WithCancel(t.Context())
		typed := informers.NewSharedInformerFactory(c, 0)
		untyped := dynamicinformer.NewDynamicSharedInformerFactory(must(dynamic.NewForConfig(s.Admin()))(t), 0)
		partial := metadatainformer.NewSharedInformerFactory(must(metadata.NewForConfig(s.Admin()))(t), 0)
		pods := corev1.SchemeGroupVersion.WithResource("pods")
		lister := typed.Core().V1().Pods().Lister()
		ways := map[string]func(labels.Selector) ([]runtime.Object, error){
			"typed":    func(by labels.Selector) ([]runtime.Object, error) { return objectsOf(lister.Pods(ns).List(by)) },
			"dynamic":  untyped.ForResource(pods).Lister().ByNamespace(ns).List,
			"metadata": partial.ForResource(pods).Lister().ByNamespace(ns).List,
		}
		for _, f := range []interface {
			Start(<-chan struct{})
			Shutdown()
		}{typed, untyped, partial} {
			f.Start(ctx.Done())
			t.Cleanup(f.Shutdown)
		}
		t.Cleanup(stop) // before factories shut down

		elsewhere := newNamespace(t, c)
		must(c.CoreV1().Pods(elsewhere).Create(ctx, pod("a"), metav1.CreateOptions{}))(t)
		for _, name := range []string{"a", "b", "c"} {
			must(c.CoreV1().Pods(ns).Create(ctx, pod(name), metav1.CreateOptions{}))(t)
		}
		now := int64(0)
		check(t, c.CoreV1().Pods(ns).Delete(ctx, "b", metav1.DeleteOptions{GracePeriodSeconds: &now}))
		for name, list := range ways {
			comesToList(t, name, list, labels.Everything(), "a", "c")
			comesToList(t, name, list, labels.SelectorFromSet(labels.Set{"app": "c"}), "c")
		}
		if _, err := lister.Pods(elsewhere).Get("c"); !apierrors.IsNotFound(err) {
			t.Errorf("the lister got another namespace's pod: %v", err)
		}
	})
}

func objectsOf[T runtime.Object](list []T, err error) (out []runtime.Object, _ error) {
	for _, obj := range list {
		out = append(out, obj)
	}
	return out, err
}

// comesToList waits until a lister lists objects of these names.
func comesToList(t *testing.T, way string, list func(labels.Selector) ([]runtime.Object, error), by labels.Selector, want ...string) {
	t.Helper()
	var got []string
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		objects, err := list(by)
		got = got[:0]
		for _, obj := range objects {
			got = append(got, must(meta.Accessor(obj))(t).GetName())
		}
		slices.Sort(got)
		return slices.Equal(got, want), err
	})
	if err != nil {
		t.Errorf("%s, by %q: listed %v, want %v: %v", way, by, got, want, err)
	}
}
