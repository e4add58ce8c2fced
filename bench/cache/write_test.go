package cache

import (
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	listers "k8s.io/client-go/listers/core/v1"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/even-keel/evenkeel/bench/cache/pods"
	"github.com/even-keel/evenkeel/cache"
)

const (
	writePods = 10_000
	readers   = 10
	namespace = "shop"
	// turn is for how long each cache is written to, up to maxWrites.
	turn      = 2 * time.Second
	maxWrites = 60_000
	// settled is how many lists each reader has made when the clock starts.
	settled = 20
)

// BenchmarkWrites updates pods one by one while ten readers list them in a tight
// loop, in turns on each cache; "x" is how many times client-go's rate ours is.
// The readers ask both caches the same, as a user of each would: for everything;
// for a namespace, which all pods are in; for a label in it that all have. A list
// of client-go's is a slice; ours is read to its end. How many lists the readers
// got meanwhile is reported too.
func BenchmarkWrites(b *testing.B) {
	shop := labels.SelectorFromSet(labels.Set{"app.kubernetes.io/part-of": "shop"})
	for _, c := range []struct {
		name    string
		readers int
		list    func(clientgo.Indexer)
		queries []cache.Query
	}{
		{"readers=0", 0, nil, nil},
		{"readers=10/list=all", readers, func(s clientgo.Indexer) { s.List() }, nil},
		{"readers=10/list=namespace", readers, func(s clientgo.Indexer) { s.ByIndex(clientgo.NamespaceIndex, namespace) },
			[]cache.Query{cache.InNamespace(namespace)}},
		{"readers=10/list=selector", readers, func(s clientgo.Indexer) { listers.NewPodLister(s).Pods(namespace).List(shop) },
			[]cache.Query{cache.InNamespace(namespace), cache.Selector(shop)}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var ours, compact, peer rate
			for b.Loop() {
				peer.add(writeClientGo(b, c.readers, c.list))
				ours.add(writeStore(cache.Options[*corev1.Pod]{}, c.readers, c.queries))
				if c.readers == 0 || c.queries == nil {
					compact.add(writeStore(cache.Options[*corev1.Pod]{Compact: cache.Protobuf[corev1.Pod]()}, c.readers, c.queries))
				}
			}
			b.ReportMetric(peer.perSecond(), "client-go/s")
			b.ReportMetric(ours.perSecond(), "ours/s")
			if compact.done > 0 {
				b.ReportMetric(compact.perSecond(), "compact/s")
			}
			b.ReportMetric(ours.perSecond()/peer.perSecond(), "x")
			if c.readers > 0 {
				b.ReportMetric(float64(peer.lists)/peer.in.Seconds(), "client-go-lists/s")
				b.ReportMetric(float64(ours.lists)/ours.in.Seconds(), "ours-lists/s")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// newPod returns a pod in the namespace that all are in.
func newPod(i int) *corev1.Pod {
	pod := pods.Make(i)
	pod.Namespace = namespace
	return pod
}

// rate is how much was done in how long.
type rate struct {
	done  int
	lists int64
	in    time.Duration
}

func (r *rate) add(o rate) { r.done, r.lists, r.in = r.done+o.done, r.lists+o.lists, r.in+o.in }

func (r *rate) perSecond() float64 { return float64(r.done) / r.in.Seconds() }

// underReaders writes for one turn, while others list. Each write is of an object
// that nobody has seen: a status update, made before the clock starts. It starts
// when readers and writer have run for a while: under client-go's lock a writer
// may get in 10,000 writes before it first meets all readers, and some hundred in
// the rest of the turn. That made its figure anything from 60 to 1,300 a second.
func underReaders(listers int, list func(), write func(*corev1.Pod)) rate {
	updates := make([]*corev1.Pod, maxWrites)
	for i := range updates {
		updates[i] = newPod(i % writePods)
		updates[i].ManagedFields = nil
		updates[i].ResourceVersion = strconv.Itoa(20_000_000 + i)
		updates[i].Status.Conditions[2].LastTransitionTime.Time = time.Unix(1_800_000_000+int64(i), 0)
	}
	runtime.GC()
	var wg sync.WaitGroup
	var stop atomic.Bool
	var lists atomic.Int64
	for range listers {
		wg.Go(func() {
			for !stop.Load() {
				list()
				lists.Add(1)
			}
		})
	}
	for lists.Load() < int64(settled*listers) && len(updates) > maxWrites/2 {
		write(updates[0])
		updates = updates[1:]
	}
	var r rate
	before := lists.Load()
	for start := time.Now(); r.in < turn && r.done < len(updates); r.in = time.Since(start) {
		write(updates[r.done])
		r.done++
	}
	r.lists = lists.Load() - before
	stop.Store(true)
	wg.Wait()
	return r
}

func writeClientGo(b *testing.B, listers int, list func(clientgo.Indexer)) rate {
	store := newClientGo()
	for i := range writePods {
		if err := store.Add(newPod(i)); err != nil {
			b.Fatal(err)
		}
	}
	return underReaders(listers, func() { list(store) }, func(p *corev1.Pod) {
		if err := store.Update(p); err != nil {
			b.Error(err)
		}
	})
}

func writeStore(opts cache.Options[*corev1.Pod], listers int, queries []cache.Query) rate {
	opts.Indexes = map[string]func(*corev1.Pod) []string{"byNode": byNode}
	store := cache.New(opts)
	var all []*corev1.Pod
	for i := range writePods {
		all = append(all, newPod(i))
	}
	store.Replace("1", all)
	return underReaders(listers, func() {
		for pod := range store.List(queries...) {
			sink(pod)
		}
	}, func(p *corev1.Pod) { store.Set(p) })
}

//go:noinline
func sink(p *corev1.Pod) bool { return p.Generation > 100 }

// BenchmarkStore times single operations.
func BenchmarkStore(b *testing.B) {
	store := cache.New(cache.Options[*corev1.Pod]{Indexes: map[string]func(*corev1.Pod) []string{"byNode": byNode}})
	var all []*corev1.Pod
	for i := range writePods {
		all = append(all, pods.Make(i))
	}
	store.Replace("1", all)
	some := all[7]
	b.Run("get", func(b *testing.B) {
		for b.Loop() {
			store.Get(some.Namespace, some.Name)
		}
	})
	for name, query := range map[string]cache.Query{
		"label": cache.Label("pod-template-hash", some.Labels["pod-template-hash"]),
		"node":  cache.Index("byNode", some.Spec.NodeName), "all": cache.InNamespace(""),
	} {
		b.Run("list-"+name, func(b *testing.B) {
			for b.Loop() {
				for pod := range store.List(query) {
					sink(pod)
				}
			}
		})
	}
	b.Run("set", func(b *testing.B) {
		updates := make([]*corev1.Pod, writePods)
		for i := range updates {
			updates[i] = pods.Make(i)
			updates[i].ManagedFields = nil
		}
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			pod := *updates[i%writePods]
			store.Set(&pod)
		}
	})
	b.Run("share", func(b *testing.B) {
		in := cache.NewInterner()
		for i := range writePods {
			in.Share(pods.Make(i))
		}
		encoded := pods.Encode(8)
		var sharing time.Duration
		for b.Loop() {
			pod, err := pods.Decode(encoded)
			if err != nil {
				b.Fatal(err)
			}
			pod.ManagedFields = nil
			start := time.Now()
			in.Share(pod)
			sharing += time.Since(start)
		}
		b.ReportMetric(float64(sharing.Nanoseconds())/float64(b.N), "ns-shared/op")
	})
}
