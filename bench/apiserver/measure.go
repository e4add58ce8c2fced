//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/even-keel/evenkeel/bench/apiserver/figure"
)

// usage is CPU time at one moment.
type usage struct {
	server, generator, machine time.Duration
}

func (f family) usage() (u usage, err error) {
	if u.server, err = f.cpu(); err != nil {
		return u, err
	}
	if u.generator, err = cpuOfSelf(); err != nil {
		return u, err
	}
	u.machine, err = cpuOfMachine()
	return u, err
}

// since is the CPU time between two moments, in a time.
func (u usage) since(before usage, took time.Duration, cores int) figure.Sample {
	s := figure.Sample{Server: u.server - before.server, Generator: u.generator - before.generator}
	others := max(0, u.machine-before.machine-s.Server-s.Generator)
	s.Others = float64(others) / float64(took) / float64(cores)
	return s
}

// measure does work and returns its rate, and whose CPU time it took.
func (s *stage) measure(work func() (done float64, took time.Duration, err error)) (figure.Sample, error) {
	before, err := s.family.usage()
	if err != nil {
		return figure.Sample{}, err
	}
	done, took, err := work()
	if err != nil {
		return figure.Sample{}, err
	}
	after, err := s.family.usage()
	sample := after.since(before, took, s.cores)
	sample.Value, sample.Work = done/took.Seconds(), done
	return sample, err
}

// measureStart starts a server and returns how long it took to be ready.
func (s system) measureStart(ctx context.Context, dir string, cores int) (*instance, figure.Sample, error) {
	before, err := family(nil).usage()
	if err != nil {
		return nil, figure.Sample{}, err
	}
	i, err := s.start(ctx, dir)
	if err != nil {
		return nil, figure.Sample{}, err
	}
	after, err := i.family.usage()
	if err != nil {
		i.family.kill()
		return nil, figure.Sample{}, err
	}
	sample := after.since(before, i.took, cores)
	sample.Value = i.took.Seconds()
	return i, sample, nil
}

// peak follows the memory of a server until ctx ends, and returns the most seen.
func (f family) peak(ctx context.Context) int64 {
	var highest int64
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		if used, err := f.resident(); err == nil {
			highest = max(highest, used)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return highest
		}
	}
}

// waitQuiet waits until others leave the machine alone, as long as there is
// patience left.
func (b *bench) waitQuiet(ctx context.Context) error {
	for told := false; b.patience > 0; told = true {
		begun := time.Now()
		busy, err := busyShare(ctx, time.Second, b.cores)
		if err != nil || busy <= figure.Quiet {
			return err
		}
		if b.patience -= time.Since(begun); !told {
			fmt.Fprintf(b.say, "    others keep %.0f %% of the machine busy; waiting for them\n", 100*busy)
		}
	}
	return ctx.Err()
}

func busyShare(ctx context.Context, over time.Duration, cores int) (float64, error) {
	before, err := cpuOfMachine()
	if err != nil {
		return 0, err
	}
	if err := sleep(ctx, over); err != nil {
		return 0, err
	}
	after, err := cpuOfMachine()
	return float64(after-before) / float64(over) / float64(cores), err
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// syncTime is the median time of a small write and its sync on a disk.
func syncTime(dir string) (time.Duration, error) {
	f, err := os.Create(filepath.Join(dir, "sync"))
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	var took []float64
	for range 200 {
		begun := time.Now()
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took = append(took, float64(time.Since(begun)))
	}
	return time.Duration(figure.Median(took)), nil
}

// loadAverage is the machine's, as the kernel tells it.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(text))[:3], " ")
}
