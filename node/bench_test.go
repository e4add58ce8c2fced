package node_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/node"
	"github.com/even-keel/evenkeel/node/simulated"
)

// BenchmarkManyPods tells how long 500 nodes take to get 10,000 pods ready, with the
// server in the same process, and what there is then.
func BenchmarkManyPods(b *testing.B) {
	const nodes, pods = 500, 10_000
	for range b.N {
		s, err := evenkeeltest.Open()
		if err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithCancel(b.Context())
		o := node.Options{}
		for i := range nodes {
			o.Nodes = append(o.Nodes, node.Node{Name: fmt.Sprint("n", i)})
		}
		all := client.Of[*corev1.Pod](mustConnect(b, s))
		for i := range pods {
			if _, err := all.Create(ctx, web(fmt.Sprint("p", i), func(p *corev1.Pod) { p.Spec.NodeName = fmt.Sprint("n", i%nodes) })); err != nil {
				b.Fatal(err)
			}
		}
		before, began := heap(), time.Now()
		ended := make(chan error, 1)
		go func() { ended <- agent(simulated.New(simulated.Options{}), o)(ctx, s.Config()) }()
		waitForPods(ctx, b, all, pods)
		b.ReportMetric(time.Since(began).Seconds(), "s/ready")
		b.ReportMetric(float64(heap()-before)/pods, "heap-B/pod")
		b.ReportMetric(float64(runtime.NumGoroutine()), "goroutines")
		cancel()
		<-ended
		_ = s.Close()
	}
}

func mustConnect(b *testing.B, s *evenkeeltest.Server) *client.Conn {
	conn, err := client.Connect(s.Config())
	if err != nil {
		b.Fatal(err)
	}
	return conn
}

// waitForPods waits until so many pods run.
func waitForPods(ctx context.Context, b *testing.B, all *client.Client[*corev1.Pod], want int) {
	running := map[string]bool{}
	for e, err := range all.Watch(ctx, client.InitialEvents()) {
		if err != nil {
			b.Fatal(err)
		}
		if e.Object.Status.Phase == corev1.PodRunning {
			running[e.Object.Name] = true
		}
		if len(running) == want {
			return
		}
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
