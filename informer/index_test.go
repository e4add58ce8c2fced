package informer_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/cache"
	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/informer"
)

func TestARevisionCanBeWaitedFor(t *testing.T) {
	g := &gate{}
	direct, conn := connect(t, nil), connect(t, g.through)
	ns := namespace(t, direct)
	maps := client.Of[*corev1.ConfigMap](direct).In(ns)
	set := informer.NewSet(conn, informer.Config{})
	defer set.Shutdown()
	in := informer.For[*corev1.ConfigMap](set, informer.InNamespace(ns))
	set.Start()
	if err := in.WaitForRevision(t.Context(), ""); err != nil || !in.HasSynced() {
		t.Fatal(err)
	}
	g.shut()
	defer g.let()
	made, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- in.WaitForRevision(ctx, cache.Revision(made.ResourceVersion)) }()
	cancel() // nothing is told, and so it waits
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("it did not wait: %v", err)
	}
	g.let()
	if err := in.WaitForRevision(t.Context(), cache.Revision(made.ResourceVersion)); err != nil {
		t.Fatal(err)
	}
	if _, ok := in.Get(ns, "a"); !ok {
		t.Error("the cache has not what it waited for")
	}
}
