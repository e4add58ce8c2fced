package storage

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/even-keel/evenkeel/storage"
	"github.com/even-keel/evenkeel/storage/embedded"
	"github.com/even-keel/evenkeel/storage/etcd"
	"github.com/even-keel/evenkeel/test/storage/etcdtest"
)

// BenchmarkCommit creates keys of 1 KiB, each synced, in turns on both engines.
// One iteration is a run of both; "x" is how many times etcd's rate ours is.
func BenchmarkCommit(b *testing.B) {
	ours, peer := openEmbedded(b), openEtcd(b)
	for _, load := range []struct{ writers, commits int }{{1, 1000}, {32, 8000}} {
		b.Run(fmt.Sprintf("writers=%d", load.writers), func(b *testing.B) {
			var oursTime, peerTime time.Duration
			for b.Loop() {
				oursTime += commit(b, ours, load.writers, load.commits)
				peerTime += commit(b, peer, load.writers, load.commits)
			}
			total := float64(b.N * load.commits)
			b.ReportMetric(total/oursTime.Seconds(), "embedded/s")
			b.ReportMetric(total/peerTime.Seconds(), "etcd/s")
			b.ReportMetric(peerTime.Seconds()/oursTime.Seconds(), "x")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func openEmbedded(b *testing.B) storage.Store {
	b.Helper()
	s, err := embedded.Open(embedded.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	closeAtEnd(b, s)
	return s
}

func closeAtEnd(b *testing.B, s storage.Store) {
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
}

// openEtcd starts etcd as its own defaults have it.
func openEtcd(b *testing.B) storage.Store {
	b.Helper()
	cluster := etcdtest.Start(b, 1, func(c *embed.Config) {
		d := embed.NewConfig()
		c.UnsafeNoFsync, c.TickMs, c.ElectionMs = false, d.TickMs, d.ElectionMs
	})
	s, err := etcd.Open(b.Context(), etcd.Options{Endpoints: cluster.Endpoints()})
	if err != nil {
		b.Fatal(err)
	}
	closeAtEnd(b, s)
	return s
}

// next numbers keys, so that no run meets those of another.
var next atomic.Int64

func commit(b *testing.B, s storage.Store, writers, commits int) time.Duration {
	b.Helper()
	value := make([]byte, 1024)
	var left atomic.Int64
	left.Store(int64(commits))
	start := time.Now()
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				key := storage.Key(fmt.Sprintf("/registry/pods/default/pod-%010d", next.Add(1)))
				if _, err := s.Commit(context.Background(), storage.Create(key, value)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}
