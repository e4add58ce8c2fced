package informers

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/even-keel/evenkeel/test/compat/cluster"
)

// TestInformersResume restarts the server twice while informers cannot reach it,
// and writes in between. None may ask for the state again.
func TestInformersResume(t *testing.T) {
	all := keep(t, 1)
	for _, w := range all {
		// A reflector that has seen no event of a short watch starts over.
		recolour(t, w.client, w.namespaces[0], "red", "blue", "red")
		w.mustSettle(t)
		w.proxy.Shut()
		w.server.Restart()
		recolour(t, w.client, w.namespaces[0], "blue", "red", "blue")
		w.server.Restart()
		recolour(t, w.client, w.namespaces[0], "red", "blue", "red")
		w.proxy.Open()
	}
	for _, w := range all {
		w.mustSettle(t)
		for name, k := range w.informers {
			if n := k.states(); n != 1 {
				t.Errorf("%s: %s asked for the state %d times", w.Name, name, n)
			}
		}
	}
}

// recolour gives a config map one colour after the other.
func recolour(t *testing.T, c kubernetes.Interface, ns string, colors ...string) {
	t.Helper()
	for _, color := range colors {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one", Labels: map[string]string{"color": color}}}
		_, err := c.CoreV1().ConfigMaps(ns).Update(t.Context(), cm, metav1.UpdateOptions{})
		if apierrors.IsNotFound(err) {
			_, err = c.CoreV1().ConfigMaps(ns).Create(t.Context(), cm, metav1.CreateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestInformersOfEveryKind has the factory's informers sync in both encodings.
func TestInformersOfEveryKind(t *testing.T) {
	cluster.Each(t, func(t *testing.T, s *cluster.Server) {
		served := watchable(t, s)
		for name, media := range map[string]string{"json": runtime.ContentTypeJSON, "protobuf": runtime.ContentTypeProtobuf} {
			t.Run(name, func(t *testing.T) {
				config := s.Admin()
				config.ContentType, config.AcceptContentTypes = media, media
				c := must(kubernetes.NewForConfig(config))(t)
				factory := informers.NewSharedInformerFactory(c, 0)
				var known []schema.GroupVersionResource
				for _, gvr := range served {
					if i, err := factory.ForResource(gvr); err == nil {
						i.Informer()
						known = append(known, gvr)
					}
				}
				if len(known) < 40 {
					t.Errorf("only %d of %d resources are known to client-go", len(known), len(served))
				}
				ctx, cancel := context.WithCancel(t.Context())
				factory.Start(ctx.Done())
				t.Cleanup(factory.Shutdown)
				t.Cleanup(cancel)
				for _, gvr := range known {
					i, _ := factory.ForResource(gvr)
					within, cancel := context.WithTimeout(ctx, 30*time.Second)
					if !cache.WaitForCacheSync(within.Done(), i.Informer().HasSynced) {
						t.Errorf("the informer of %s does not sync", gvr)
					}
					cancel()
				}
				roles, _ := factory.ForResource(schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"})
				want := must(c.RbacV1().ClusterRoles().List(ctx, metav1.ListOptions{}))(t)
				if got := len(roles.Informer().GetStore().List()); got != len(want.Items) || got == 0 {
					t.Errorf("%d cluster roles are cached, %d listed", got, len(want.Items))
				}
			})
		}
	})
}

// watchable returns what the server says can be watched.
func watchable(t *testing.T, s *cluster.Server) (served []schema.GroupVersionResource) {
	t.Helper()
	d := must(discovery.NewDiscoveryClientForConfig(s.Admin()))(t)
	_, lists, err := d.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	lists = discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "watch"}}, lists)
	gvrs := must(discovery.GroupVersionResources(lists))(t)
	for gvr := range gvrs {
		served = append(served, gvr)
	}
	return served
}
