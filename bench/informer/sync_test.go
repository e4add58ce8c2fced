package informer

import (
	"context"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/features"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/even-keel/evenkeel/cache"
	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/informer"
)

// profiled makes BenchmarkSync leave out client-go, for profiles.
var profiled = os.Getenv("EVENKEEL_ONLY_OURS") != ""

// BenchmarkSync syncs an informer with one handler, in turns client-go's and
// ours: from nothing until the handler has been told of every pod. client-go is
// measured with WatchList, its default, and with a list. "x" is how many times
// faster ours is than the faster of the two; kB/pod is what the live heap grew by. The time of
// the processors is reported besides (cpu-s): where others use the machine too,
// "cpu-x" is the steadier figure.
func BenchmarkSync(b *testing.B) {
	for _, c := range []struct{ name, media string }{
		{"json", "application/json"},
		{"protobuf", proto},
	} {
		b.Run(c.name, func(b *testing.B) {
			cfg := &rest.Config{Host: serve(b, newCanned(b, c.media, syncPods)), QPS: -1}
			cfg.ContentType = c.media
			var streams, lists, ours, compact result
			for b.Loop() {
				if !profiled {
					streams.add(b, func() (any, func()) { return syncClientGo(b, cfg, true) })
					lists.add(b, func() (any, func()) { return syncClientGo(b, cfg, false) })
				}
				ours.add(b, func() (any, func()) { return syncOurs(b, cfg) })
				compact.add(b, func() (any, func()) {
					return syncOurs(b, cfg, informer.Compact(cache.Protobuf[corev1.Pod]()))
				})
			}
			streams.report(b, "client-go")
			lists.report(b, "client-go-list")
			ours.report(b, "ours")
			compact.report(b, "compact")
			peer := lists
			if streams.took < lists.took {
				peer = streams
			}
			b.ReportMetric(peer.took.Seconds()/ours.took.Seconds(), "x")
			b.ReportMetric(peer.cpu.Seconds()/ours.cpu.Seconds(), "cpu-x")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// result sums up the runs of one informer.
type result struct {
	took, cpu time.Duration
	heap      float64
	runs      int
}

func (r *result) add(b *testing.B, run func() (held any, stop func())) {
	b.Helper()
	before := liveHeap()
	start, cpu := time.Now(), cpuTime(b)
	held, stop := run()
	r.took += time.Since(start)
	r.cpu += cpuTime(b) - cpu
	r.heap += float64(liveHeap()) - float64(before)
	r.runs++
	runtime.KeepAlive(held)
	stop()
}

func (r *result) report(b *testing.B, name string) {
	b.ReportMetric(r.took.Seconds()/float64(r.runs), name+"-s")
	b.ReportMetric(r.cpu.Seconds()/float64(r.runs), name+"-cpu-s")
	b.ReportMetric(r.heap/float64(r.runs)/syncPods/1000, name+"-kB/pod")
}

// cpuTime is what the process has used of the processors.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func liveHeap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// gates are client-go's own, but for WatchList.
type gates struct {
	features.Gates
	watchList bool
}

func (g gates) Enabled(f features.Feature) bool {
	if f == features.WatchListClient {
		return g.watchList
	}
	return g.Gates.Enabled(f)
}

var defaultGates = features.FeatureGates()

func syncClientGo(b *testing.B, cfg *rest.Config, watchList bool) (any, func()) {
	features.ReplaceFeatureGates(gates{defaultGates, watchList})
	set, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		b.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(set, 0)
	pods := factory.Core().V1().Pods().Informer()
	var told atomic.Int64
	reg, err := pods.AddEventHandler(clientgo.ResourceEventHandlerFuncs{AddFunc: func(any) { told.Add(1) }})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	factory.StartWithContext(ctx)
	for !reg.HasSynced() {
		time.Sleep(time.Millisecond)
	}
	check(b, told.Load())
	return factory, func() {
		cancel()
		factory.Shutdown()
	}
}

func syncOurs(b *testing.B, cfg *rest.Config, opts ...informer.Option) (any, func()) {
	conn, err := client.Connect(cfg)
	if err != nil {
		b.Fatal(err)
	}
	set := informer.NewSet(conn, informer.Config{})
	pods := informer.For[*corev1.Pod](set, opts...)
	var told atomic.Int64
	reg := pods.Handle(func(informer.Delta[*corev1.Pod]) { told.Add(1) })
	set.Start()
	<-reg.Synced()
	check(b, told.Load())
	return set, set.Shutdown
}

func check(b *testing.B, told int64) {
	b.Helper()
	if told != syncPods {
		b.Fatalf("the handler was told of %d pods", told)
	}
}
