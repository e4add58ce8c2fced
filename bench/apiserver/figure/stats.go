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
	// Work is how much was done in the time, in the unit without "per second".
	// It is zero for a row without load, and then so is all below.
	Work    float64
	Elapsed time.Duration
	// Server, Generator and Others are CPU time of the machine while the row ran.
	Server, Generator, Others time.Duration
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

// medianOf is the median of one property of the samples.
func medianOf(samples []Sample, of func(Sample) float64) float64 {
	values := make([]float64, 0, len(samples))
	for _, s := range samples {
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

// othersShare is the part of the machine's cores that others kept busy.
func othersShare(cores int) func(Sample) float64 {
	return func(s Sample) float64 {
		if s.Elapsed <= 0 || cores == 0 {
			return 0
		}
		return float64(s.Others) / float64(s.Elapsed) / float64(cores)
	}
}
