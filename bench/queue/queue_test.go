package queue

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clientgo "k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/even-keel/evenkeel/workqueue"
)

// BenchmarkAddGetDone passes keys from 8 goroutines that add to 8 that get and
// are done at once, in turns through three queues. One iteration is a run of
// all; "x-client-go" is how many times client-go's rate ours is.
//
// Every producer adds a batch of keys of its own and waits until all of it was
// handed out: batches of 100 keep the queues short, one of 6,250 is the 50,000
// keys of an initial list at once. The peers run without metrics; ours knows
// no such choice. Our workers range over Items, which ends one turn and begins
// the next under one lock; the peers have only Get and Done.
func BenchmarkAddGetDone(b *testing.B) {
	for _, load := range []struct {
		name           string
		batch, batches int
	}{{"steady", 100, 125}, {"burst", 6250, 2}} {
		b.Run(load.name, func(b *testing.B) {
			queues := []queue{newOurs(), newClientGo(), newControllerRuntime()}
			took := make([]time.Duration, len(queues))
			for _, q := range queues {
				b.Cleanup(q.ShutDown)
			}
			keys := makeKeys(load.batch)
			for b.Loop() {
				for i, q := range queues {
					runtime.GC() // the garbage of one is not the next one's burden
					took[i] += pass(q, keys, load.batches)
				}
			}
			total := float64(b.N * producers * load.batch * load.batches)
			b.ReportMetric(total/took[0].Seconds(), "ours/s")
			b.ReportMetric(total/took[1].Seconds(), "client-go/s")
			b.ReportMetric(total/took[2].Seconds(), "controller-runtime/s")
			b.ReportMetric(took[1].Seconds()/took[0].Seconds(), "x-client-go")
			b.ReportMetric(took[2].Seconds()/took[0].Seconds(), "x-controller-runtime")
			b.ReportMetric(0, "ns/op")
		})
	}
}

const (
	producers = 8
	consumers = 8
)

type key = types.NamespacedName

// makeKeys makes the batch of every producer. The last digit of a namespace is
// the producer.
func makeKeys(batch int) [producers][]key {
	var keys [producers][]key
	for p := range keys {
		for i := range batch {
			keys[p] = append(keys[p], key{
				Namespace: fmt.Sprintf("namespace-%d", p),
				Name:      fmt.Sprintf("pod-%08d", i),
			})
		}
	}
	return keys
}

func producerOf(k key) int { return int(k.Namespace[len(k.Namespace)-1] - '0') }

// queue is what the three have in common.
type queue interface {
	add(key)
	// work gets keys, calls saw and is done with them, until saw returns false.
	work(saw func(key) bool)
	ShutDown()
}

// poison ends the work of the consumer who gets it.
var poison = [consumers]key{
	{Name: "0"}, {Name: "1"}, {Name: "2"}, {Name: "3"}, {Name: "4"}, {Name: "5"}, {Name: "6"}, {Name: "7"},
}

// pass measures how long it takes until all batches are handed out.
func pass(q queue, keys [producers][]key, batches int) time.Duration {
	var (
		left            [producers]atomic.Int64
		finished        [producers]chan struct{}
		adding, working sync.WaitGroup
	)
	for p := range finished {
		finished[p] = make(chan struct{}, 1)
	}
	start := time.Now()
	for range consumers {
		working.Go(func() {
			q.work(func(k key) bool {
				if k.Namespace == "" {
					return false
				}
				if p := producerOf(k); left[p].Add(-1) == 0 {
					finished[p] <- struct{}{}
				}
				return true
			})
		})
	}
	for p := range producers {
		adding.Go(func() {
			for range batches {
				left[p].Store(int64(len(keys[p])))
				for _, k := range keys[p] {
					q.add(k)
				}
				<-finished[p]
			}
		})
	}
	adding.Wait()
	took := time.Since(start)
	for _, k := range poison {
		q.add(k)
	}
	working.Wait()
	return took
}

type ours struct{ *workqueue.Queue[key] }

func newOurs() queue { return ours{workqueue.New(workqueue.Options[key]{})} }

func (q ours) add(k key) { q.Add(k) }

func (q ours) work(saw func(key) bool) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for item := range q.Items(ctx) {
		if !saw(item.Key) {
			return
		}
	}
}

// peer is a queue with the methods of client-go's.
type peer struct {
	clientgo.TypedRateLimitingInterface[key]
}

func newClientGo() queue {
	return peer{clientgo.NewTypedRateLimitingQueue(clientgo.DefaultTypedControllerRateLimiter[key]())}
}

func newControllerRuntime() queue { return peer{priorityqueue.New[key]("")} }

func (q peer) add(k key) { q.Add(k) }

func (q peer) work(saw func(key) bool) {
	for {
		k, _ := q.Get()
		more := saw(k)
		q.Done(k)
		if !more {
			return
		}
	}
}
