package main

import (
	"fmt"

	"github.com/even-keel/evenkeel/bench/apiserver/figure"
)

// row is a figure, and by which metrics of which benchmark it is told. Of several
// peers the better one counts.
type row struct {
	figure.Row
	of    benchmark
	ours  string
	peers []string
}

// sample adds what a run of the row's benchmark has told.
func (r row) sample(to *figure.Row, metrics map[string]float64) error {
	ours, ok := metrics[r.ours]
	best := 0.0
	for _, name := range r.peers {
		v, found := metrics[name]
		ok = ok && found
		if best == 0 || r.better(v, best) {
			best = v
		}
	}
	if !ok {
		return fmt.Errorf("%s: benchmark %s did not report %s and %v", r.Name, r.of.name, r.ours, r.peers)
	}
	to.Ours = append(to.Ours, figure.Sample{Value: ours})
	to.Peer = append(to.Peer, figure.Sample{Value: best})
	return nil
}

func (r row) better(v, than float64) bool {
	if r.Unit == figure.PerSecond {
		return v > than
	}
	return v < than
}

// rows are the budgets of the design for the library, and what stands beside them.
func rows() []row {
	var (
		inJSON    = benchmark{"informer", "BenchmarkSync/json"}
		inProto   = benchmark{"informer", "BenchmarkSync/protobuf"}
		steady    = benchmark{"queue", "BenchmarkAddGetDone/steady"}
		burst     = benchmark{"queue", "BenchmarkAddGetDone/burst"}
		bothWays  = []string{"client-go-s", "client-go-list-s"}
		bothHeaps = []string{"client-go-kB/pod", "client-go-list-kB/pod"}
		byClient  = []string{"client-go/s"}
	)
	named := func(name string, unit figure.Unit, target figure.Target, of benchmark, ours string, peers []string) row {
		return row{figure.Row{Name: name, Unit: unit, Target: target}, of, ours, peers}
	}
	times := func(n float64) figure.Target { return figure.Target{Times: n} }
	writes := func(readers, name string, target figure.Target) row {
		of := benchmark{"cache", "BenchmarkWrites/" + readers}
		return named("cache: writes, "+name, figure.PerSecond, target, of, "ours/s", byClient)
	}
	lists := func(readers, name string) row {
		of := benchmark{"cache", "BenchmarkWrites/" + readers}
		return named("cache: lists meanwhile, "+name, figure.PerSecond, figure.Target{}, of, "ours-lists/s", []string{"client-go-lists/s"})
	}
	return []row{
		named("informer: sync 50,000 pods, JSON", figure.Seconds, times(3), inJSON, "ours-s", bothWays),
		named("informer: sync 50,000 pods, protobuf", figure.Seconds, times(2), inProto, "ours-s", bothWays),
		named("informer: its CPU time, protobuf", figure.Seconds, figure.Target{}, inProto, "ours-cpu-s", []string{"client-go-cpu-s", "client-go-list-cpu-s"}),
		named("informer: sync, protobuf, compact", figure.Seconds, figure.Target{}, inProto, "compact-s", bothWays),
		named("informer: heap per pod", figure.Kilobytes, figure.Target{AtMost: 4}, inProto, "ours-kB/pod", bothHeaps),
		named("informer: heap per pod, compact", figure.Kilobytes, figure.Target{AtMost: 1.2}, inProto, "compact-kB/pod", bothHeaps),
		writes("readers=0", "no readers", figure.Target{}),
		writes("readers=10/list=all", "10 readers list all", times(100)),
		writes("readers=10/list=namespace", "10 readers list a namespace", times(100)),
		writes("readers=10/list=selector", "10 readers list by label", times(100)),
		lists("readers=10/list=all", "of all"),
		lists("readers=10/list=namespace", "of a namespace"),
		lists("readers=10/list=selector", "by label"),
		named("queue: 8 + 8 goroutines, client-go's typed queue", figure.PerSecond, times(2), steady, "ours/s", byClient),
		named("queue: the same, 50,000 keys at once", figure.PerSecond, figure.Target{}, burst, "ours/s", byClient),
		named("queue: 8 + 8 goroutines, controller-runtime's priority queue", figure.PerSecond, times(5), steady, "ours/s", []string{"controller-runtime/s"}),
		named("queue: the same, 50,000 keys at once", figure.PerSecond, figure.Target{}, burst, "ours/s", []string{"controller-runtime/s"}),
	}
}
