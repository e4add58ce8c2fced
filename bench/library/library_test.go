package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/even-keel/evenkeel/bench/apiserver/figure"
)

// Every row finds its metrics in what its benchmark prints, and the faster peer
// counts.
func TestRowsFindTheirMetrics(t *testing.T) {
	printed := map[string]string{
		"informer": "BenchmarkSync/x-2 1 3.5 client-go-cpu-s 11.8 client-go-kB/pod 3.1 client-go-list-cpu-s 11.9 client-go-list-kB/pod" +
			" 2.5 client-go-list-s 2.9 client-go-s 1.04 compact-kB/pod 1.4 compact-s 2.0 ours-cpu-s 3.8 ours-kB/pod 1.0 ours-s",
		"cache": "BenchmarkWrites/x-2 1 200 client-go/s 2000 client-go-lists/s 1500 ours-lists/s 40000 ours/s 200 x",
		"queue": "BenchmarkAddGetDone/x-2 10 1000000 client-go/s 300000 controller-runtime/s 2500000 ours/s",
	}
	runs := 0
	table, err := gather(rows(), regexp.MustCompile("."), 2, func(b benchmark) ([]byte, error) {
		runs++
		return []byte("goos: linux\n" + printed[b.folder] + "\nPASS\n"), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if runs != 2*8 {
		t.Errorf("%d runs of 8 benchmarks in 2 rounds", runs)
	}
	out := figure.Results(table, "peer")
	for _, want := range []string{"1.00 s", "2.50 s", "2.5x", "3.80 kB", "<= 4.00 kB", "200x", "8.3x"} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "2.90 s") {
		t.Error("the slower peer counts")
	}
}

func TestAMetricThatIsMissingIsAnError(t *testing.T) {
	_, err := gather(rows(), regexp.MustCompile("queue"), 1, func(benchmark) ([]byte, error) {
		return []byte("BenchmarkAddGetDone/steady-2 10 7 ours/s\n"), nil
	})
	if err == nil {
		t.Error("nobody missed the peer")
	}
}
