//go:build linux

package machine

import (
	"context"
	"time"

	"github.com/even-keel/evenkeel/bench/apiserver/figure"
)

// Usage is CPU time at one moment.
type Usage struct {
	server, generator, machine time.Duration
}

// Usage is what has been used until now.
func (f Family) Usage() (u Usage, err error) {
	if u.server, err = f.CPU(); err != nil {
		return u, err
	}
	if u.generator, err = CPUOfSelf(); err != nil {
		return u, err
	}
	u.machine, err = CPUOfMachine()
	return u, err
}

// Since is the CPU time between two moments, in a time.
func (u Usage) Since(before Usage, took time.Duration, cores int) figure.Sample {
	s := figure.Sample{Server: u.server - before.server, Generator: u.generator - before.generator}
	others := max(0, u.machine-before.machine-s.Server-s.Generator)
	s.Others = float64(others) / float64(took) / float64(cores)
	return s
}

// Peak follows the memory of a server until ctx ends, and returns the most seen.
func (f Family) Peak(ctx context.Context) int64 {
	var highest int64
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		if used, err := f.Resident(); err == nil {
			highest = max(highest, used)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return highest
		}
	}
}

// BusyShare is the share of the cores that were busy, over a time.
func BusyShare(ctx context.Context, over time.Duration, cores int) (float64, error) {
	before, err := CPUOfMachine()
	if err != nil {
		return 0, err
	}
	if err := Sleep(ctx, over); err != nil {
		return 0, err
	}
	after, err := CPUOfMachine()
	return float64(after-before) / float64(over) / float64(cores), err
}

// Sleep waits, but not beyond the end of ctx.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
