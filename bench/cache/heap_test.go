package cache

import (
	"runtime"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/even-keel/evenkeel/bench/cache/pods"
	"github.com/even-keel/evenkeel/cache"
)

// heapPods is how many pods the heap is measured with.
const heapPods = 50_000

// BenchmarkHeap fills each cache with pods that were decoded from protobuf, and
// reports what the live heap grew by, per pod.
func BenchmarkHeap(b *testing.B) {
	for _, c := range []struct {
		name string
		fill func(*testing.B) any
	}{
		{"client-go", fillClientGo},
		{"as-is", fillPods(cache.Options[*corev1.Pod]{AsIs: true})},
		{"hot", fillPods(cache.Options[*corev1.Pod]{})},
		{"compact", fillPods(cache.Options[*corev1.Pod]{Compact: cache.Protobuf[corev1.Pod]()})},
		{"unstructured-as-is", fillUnstructured(cache.Options[*unstructured.Unstructured]{AsIs: true})},
		{"unstructured-hot", fillUnstructured(cache.Options[*unstructured.Unstructured]{})},
		{"unstructured-compact", fillUnstructured(cache.Options[*unstructured.Unstructured]{Compact: cache.JSON[unstructured.Unstructured]()})},
	} {
		b.Run(c.name, func(b *testing.B) {
			var total float64
			for b.Loop() {
				before := liveHeap()
				held := c.fill(b)
				total += float64(liveHeap() - before)
				if s, ok := held.(interface{ Stats() cache.Stats }); ok {
					b.ReportMetric(float64(s.Stats().Bytes())/heapPods/1000, "kB/pod-by-Stats")
				}
				runtime.KeepAlive(held)
			}
			b.ReportMetric(total/float64(b.N)/heapPods/1000, "kB/pod")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func liveHeap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// decode returns a pod as it comes from a server: its memory is its own.
func decode(b *testing.B, i int) *corev1.Pod {
	pod, err := pods.Decode(pods.Encode(i))
	if err != nil {
		b.Fatal(err)
	}
	return pod
}

func fillClientGo(b *testing.B) any {
	store := newClientGo()
	for i := range heapPods {
		if err := store.Add(decode(b, i)); err != nil {
			b.Fatal(err)
		}
	}
	return store
}

func newClientGo() clientgo.Indexer {
	return clientgo.NewIndexer(clientgo.MetaNamespaceKeyFunc, clientgo.Indexers{
		clientgo.NamespaceIndex: clientgo.MetaNamespaceIndexFunc,
		"byNode":                func(obj any) ([]string, error) { return byNode(obj.(*corev1.Pod)), nil },
	})
}

func byNode(p *corev1.Pod) []string { return []string{p.Spec.NodeName} }

func fillPods(opts cache.Options[*corev1.Pod]) func(*testing.B) any {
	opts.Indexes = map[string]func(*corev1.Pod) []string{"byNode": byNode}
	return func(b *testing.B) any { return fill(opts, func(i int) *corev1.Pod { return decode(b, i) }) }
}

func fillUnstructured(opts cache.Options[*unstructured.Unstructured]) func(*testing.B) any {
	return func(b *testing.B) any {
		return fill(opts, func(i int) *unstructured.Unstructured {
			pod := decode(b, i)
			pod.APIVersion, pod.Kind = "v1", "Pod"
			content, err := kruntime.DefaultUnstructuredConverter.ToUnstructured(pod)
			if err != nil {
				b.Fatal(err)
			}
			return (&unstructured.Unstructured{Object: content}).DeepCopy()
		})
	}
}

// fill applies batches of 500, as an informer does that lists in pages.
func fill[T cache.Object](opts cache.Options[T], get func(int) T) any {
	store := cache.New(opts)
	var batch cache.Batch[T]
	for i := range heapPods {
		batch.Set(get(i))
		if i%500 == 499 {
			batch.Complete(cache.Revision(strconv.Itoa(i)))
			store.Apply(&batch)
			batch = cache.Batch[T]{}
		}
	}
	return store
}
