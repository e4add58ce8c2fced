// Package figure holds what a benchmark measured, side by side with a peer, and
// prints it as tables. It is pure.
package figure

import (
	"slices"
	"time"
)

// Sample is what one run of a row measured.
type Sample struct {
	// Value is in the row's unit.
	Value float64
	// Work is how much was done, in the unit without "per second"; zero in a row
	// without load.
	Work float64
	// Server and Generator are the CPU time that they took.
	Server, Generator time.Duration
	// Others is the share of the machine's cores that others kept busy meanwhile.
	Others float64
	// Memory is what the server has resident at the end, Peak the most meanwhile, and
	// Disk what its data takes at the end, in MB; zero if nobody looked.
	Memory, Peak, Disk float64
}

// Quiet is how much others may take of the machine before a sample is held to be
// disturbed.
const Quiet = 0.1

// counted are the samples that others did not disturb, or all if they disturbed
// every one.
func counted(samples []Sample) []Sample {
	var quiet []Sample
	for _, s := range samples {
		if s.Others <= Quiet {
			quiet = append(quiet, s)
		}
	}
	if len(quiet) == 0 {
		return samples
	}
	return quiet
}

// Median is the middle of the values, or the mean of the two in the middle. It
// is zero if there are none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	mid := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[mid]
	}
	return (sorted[mid-1] + sorted[mid]) / 2
}

// medianOf is the median of one property of the samples that count.
func medianOf(samples []Sample, of func(Sample) float64) float64 {
	var values []float64
	for _, s := range counted(samples) {
		values = append(values, of(s))
	}
	return Median(values)
}

func value(s Sample) float64 { return s.Value }

// serverCost and generatorCost are microseconds of CPU for one unit of work.
func serverCost(s Sample) float64 { return perWork(s.Server, s.Work) }

func generatorCost(s Sample) float64 { return perWork(s.Generator, s.Work) }

func perWork(cpu time.Duration, work float64) float64 {
	if work == 0 {
		return 0
	}
	return float64(cpu) / float64(time.Microsecond) / work
}

func others(s Sample) float64 { return s.Others }
