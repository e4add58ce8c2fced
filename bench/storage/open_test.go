package storage

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/even-keel/evenkeel/storage"
	"github.com/even-keel/evenkeel/storage/embedded"
)

const keys = 100_000

// BenchmarkOpen opens a store of 100,000 keys of 1 KiB in a process of its own,
// and reads that process's memory while it idles.
func BenchmarkOpen(b *testing.B) {
	program := filepath.Join(b.TempDir(), "idle")
	if out, err := exec.Command("go", "build", "-o", program, "./idle").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	full := b.TempDir()
	fill(b, full)
	for _, c := range []struct{ name, dir string }{{"keys=0", b.TempDir()}, {"keys=100000", full}} {
		b.Run(c.name, func(b *testing.B) {
			var opened time.Duration
			var heap, resident int
			for b.Loop() {
				var took time.Duration
				took, heap, resident = openInProcess(b, program, c.dir)
				opened += took
			}
			b.ReportMetric(float64(opened.Microseconds())/1e3/float64(b.N), "open-ms")
			b.ReportMetric(float64(heap)/1e6, "heap-MB")
			b.ReportMetric(float64(resident)/1e6, "rss-MB")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func openInProcess(b *testing.B, program, dir string) (took time.Duration, heap, resident int) {
	b.Helper()
	cmd := exec.Command(program, dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		b.Fatal(err)
	}
	if _, err := fmt.Sscan(string(out), (*int64)(&took), &heap, &resident); err != nil {
		b.Fatalf("the idle process said %q: %v", out, err)
	}
	return took, heap, resident
}

func fill(b *testing.B, dir string) {
	b.Helper()
	s, err := embedded.Open(embedded.Options{Dir: dir, NoSync: true})
	if err != nil {
		b.Fatal(err)
	}
	value := make([]byte, 1024)
	var wg sync.WaitGroup
	for writer := range 8 {
		wg.Go(func() {
			for i := writer; i < keys; i += 8 {
				key := storage.Key(fmt.Sprintf("/registry/pods/ns-%03d/pod-%06d", i%100, i))
				if _, err := s.Commit(b.Context(), storage.Create(key, value)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}
