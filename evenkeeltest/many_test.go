package evenkeeltest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
)

// TestHundredsAtOnce: all servers are there before the first is used, and none is
// closed before all were. What is left behind, TestMain sees.
func TestHundredsAtOnce(t *testing.T) {
	const many = 200
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var all [many]*evenkeeltest.Server
	each(t, all[:], func(i int, _ *evenkeeltest.Server) (err error) {
		all[i], err = evenkeeltest.Open()
		return err
	})
	t.Cleanup(func() { each(t, all[:], func(_ int, s *evenkeeltest.Server) error { return s.Close() }) })
	each(t, all[:], func(i int, s *evenkeeltest.Server) error { return useServer(t.Context(), s, fmt.Sprint("only-", i)) })
	runtime.GC()
	runtime.ReadMemStats(&after)
	t.Logf("%d servers: %d kB of heap each", many, (after.HeapInuse-before.HeapInuse)/many>>10)
}

// each does something to all servers at the same time.
func each(t *testing.T, all []*evenkeeltest.Server, do func(int, *evenkeeltest.Server) error) {
	t.Helper()
	var g errgroup.Group
	for i, s := range all {
		g.Go(func() error { return do(i, s) })
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}

// useServer creates, reads and watches an object that no other server has.
func useServer(ctx context.Context, s *evenkeeltest.Server, name string) error {
	maps, err := client.New[*corev1.ConfigMap](s.Config())
	if err != nil {
		return err
	}
	maps = maps.In("default")
	created, err := maps.Create(ctx, config(name))
	if err != nil {
		return err
	}
	if got, err := maps.Get(ctx, client.KeyOf(created)); err != nil || got.UID != created.UID {
		return fmt.Errorf("get %s: %v, %w", name, got, err)
	}
	for event, err := range maps.Watch(ctx, client.InitialEvents(), client.Field("metadata.namespace", "default")) {
		switch {
		case err != nil:
			return err
		case event.Type == client.Added && event.Object.Name == name:
			return nil
		case event.Type == client.Added && event.Object.Name != "kube-root-ca.crt":
			return fmt.Errorf("%s sees %s", name, event.Object.Name)
		}
	}
	return errors.New("the watch has ended")
}
