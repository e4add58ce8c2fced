package scheduler

import (
	"context"
	"fmt"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/informer"
)

// From a cluster of 1,000 nodes with 10,000 pods that wait to one in which all are
// bound, as a watch shows it: server, scheduler and watch in one process.
func BenchmarkServer(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		s := fullScene(b)
		b.StartTimer()
		stop := s.Run(runScheduler(Options{}, informer.Config{}))
		s.awaitBound(b)
		b.StopTimer()
		stop()
		b.StartTimer()
	}
	b.ReportMetric(float64(benchPods*b.N)/b.Elapsed().Seconds(), "pods/s")
}

// fullScene is a server with nodes and pods, and without a scheduler.
func fullScene(b *testing.B) *scene {
	s := newScene(b)
	inParallel(b, benchNodes, func(i int) error {
		n := newNode(fmt.Sprintf("node-%04d", i), inZone(fmt.Sprintf("zone-%d", i%10)))
		_, err := s.nodes.Create(b.Context(), n)
		return err
	})
	inParallel(b, benchPods, func(i int) error {
		// The server keeps pods off nodes that nobody has said to be ready.
		p := newPod(fmt.Sprintf("pod-%05d", i), asks("cpu", "100m", "memory", "256Mi"), tolerating(corev1.TaintNodeNotReady))
		p.UID = ""
		_, err := s.pods.Create(b.Context(), p)
		return err
	})
	return s
}

func inParallel(b *testing.B, n int, do func(i int) error) {
	const workers = 32
	var work sync.WaitGroup
	for w := range workers {
		work.Go(func() {
			for i := w; i < n; i += workers {
				if err := do(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	work.Wait()
	if b.Failed() {
		b.FailNow()
	}
}

// awaitBound returns when all pods have a node.
func (s *scene) awaitBound(b *testing.B) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	bound := map[client.Key]bool{}
	for event, err := range client.Of[*corev1.Pod](s.Conn()).Watch(ctx, client.InitialEvents()) {
		if err != nil {
			b.Fatal(err)
		}
		if event.Type == client.Bookmark || event.Object.Spec.NodeName == "" {
			continue
		}
		if bound[client.KeyOf(event.Object)] = true; len(bound) == benchPods {
			return
		}
	}
	b.Fatal("the watch has ended")
}
