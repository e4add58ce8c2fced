//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/even-keel/evenkeel/bench/apiserver/figure"
	"github.com/even-keel/evenkeel/bench/machine"
)

// measure does work and returns its rate, and whose CPU time it took.
func (s *stage) measure(work func() (done float64, took time.Duration, err error)) (figure.Sample, error) {
	before, err := s.family.Usage()
	if err != nil {
		return figure.Sample{}, err
	}
	done, took, err := work()
	if err != nil {
		return figure.Sample{}, err
	}
	after, err := s.family.Usage()
	sample := after.Since(before, took, s.cores)
	sample.Value, sample.Work = done/took.Seconds(), done
	return sample, err
}

// measureStart starts a server and returns how long it took to be ready.
func (s system) measureStart(ctx context.Context, dir string, cores int) (*instance, figure.Sample, error) {
	before, err := machine.Family(nil).Usage()
	if err != nil {
		return nil, figure.Sample{}, err
	}
	i, err := s.start(ctx, dir)
	if err != nil {
		return nil, figure.Sample{}, err
	}
	after, err := i.family.Usage()
	if err != nil {
		i.family.Kill()
		return nil, figure.Sample{}, err
	}
	sample := after.Since(before, i.took, cores)
	sample.Value = i.took.Seconds()
	return i, sample, nil
}

// waitQuiet waits until others leave the machine alone, as long as there is
// patience left.
func (b *bench) waitQuiet(ctx context.Context) error {
	for told := false; b.patience > 0; told = true {
		begun := time.Now()
		busy, err := machine.BusyShare(ctx, time.Second, b.cores)
		if err != nil || busy <= figure.Quiet {
			return err
		}
		if b.patience -= time.Since(begun); !told {
			fmt.Fprintf(b.say, "    others keep %.0f %% of the machine busy; waiting for them\n", 100*busy)
		}
	}
	return ctx.Err()
}
