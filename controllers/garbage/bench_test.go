package garbage_test

import (
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
)

// BenchmarkDependents is how long it takes until an owner and all that it owns have
// gone, or the owner alone; the time of each must not grow with their number.
func BenchmarkDependents(b *testing.B) {
	for _, policy := range []metav1.DeletionPropagation{background, foreground, orphan} {
		for _, n := range []int{1_000, 10_000} {
			b.Run(fmt.Sprintf("%s/%d", policy, n), func(b *testing.B) {
				env := evenkeeltest.Start(b)
				env.Run(collect)
				maps := client.Of[*object](env.Conn(), client.Kind(configMap))
				for i := range b.N {
					b.StopTimer()
					root := plantMany(b, maps, fmt.Sprintf("root-%d", i), n)
					b.StartTimer()
					if err := maps.Delete(b.Context(), client.KeyOf(root), client.Propagation(policy)); err != nil {
						b.Fatal(err)
					}
					awaitEnd(b, maps, policy, root, n)
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(n), "µs/dependent")
			})
		}
	}
}

// plantMany makes an owner with dependents that block it.
func plantMany(b *testing.B, maps *client.Client[*object], name string, n int) *object {
	root, err := maps.Create(b.Context(), newObject(configMap, name))
	if err != nil {
		b.Fatal(err)
	}
	var work errgroup.Group
	work.SetLimit(32)
	for i := range n {
		work.Go(func() error {
			_, err := maps.Create(b.Context(), newObject(configMap, fmt.Sprintf("%s-%d", name, i), ownedBy(root)))
			return err
		})
	}
	if err := work.Wait(); err != nil {
		b.Fatal(err)
	}
	return root
}

// awaitEnd waits until an owner is gone, and in the background its dependents are.
func awaitEnd(b *testing.B, maps *client.Client[*object], policy metav1.DeletionPropagation, root *object, n int) {
	left := n + 1
	for event, err := range maps.Watch(b.Context(), client.From(root.GetResourceVersion())) {
		if err != nil {
			b.Fatal(err)
		}
		if event.Type != client.Deleted {
			continue
		}
		left--
		if left == 0 || policy != background && event.Object.GetUID() == root.GetUID() {
			return
		}
	}
	b.Fatal("the watch has ended")
}
