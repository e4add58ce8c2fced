package events

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// What a field of [Options] that is zero stands for. The first four are client-go's.
const (
	DefaultBurst         = 25
	DefaultRefill        = 5 * time.Minute
	DefaultSimilar       = 10
	DefaultSimilarWithin = 10 * time.Minute
	DefaultSeriesFor     = 30 * time.Minute
	DefaultMaxSeries     = 4096
	DefaultWriters       = 4
	DefaultGrace         = 5 * time.Second
)

// Options say who reports events, and how many. Component is needed; zero is right
// for the rest.
type Options struct {
	// Component is who reports: events tell it as reportingController. It is a
	// name as labels have it, such as foo-controller or example.com/foo-controller.
	Component string
	// Instance tells this process from others of the component. The default is the
	// component and the host's name.
	Instance string

	// Burst is how many writes there may be at once for events about one object
	// with one type and reason, and Refill how long it takes until there may be one
	// more. New events beyond that are dropped; those that go on are still counted.
	Burst  int
	Refill time.Duration
	// Similar is how many events about one object with one type and reason, but
	// different notes, are told apart within SimilarWithin. More are combined.
	Similar       int
	SimilarWithin time.Duration
	// SeriesFor is how long after an event the same is a part of its series, and
	// not a new one.
	SeriesFor time.Duration
	// MaxSeries bounds the series that are remembered, and so what can be pending.
	// Those that were silent for longest are forgotten first; if the server has yet
	// to hear of all of them, new events are dropped.
	MaxSeries int

	// Writers is how many requests there are at once.
	Writers int
	// Grace is how long [Recorder.Run] goes on when its context has ended, for what
	// is pending.
	Grace time.Duration
	// Logger hears of what is dropped; the default is [slog.Default].
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	orElse(&o.Burst, DefaultBurst)
	orElse(&o.Refill, DefaultRefill)
	orElse(&o.Similar, DefaultSimilar)
	orElse(&o.SimilarWithin, DefaultSimilarWithin)
	orElse(&o.SeriesFor, DefaultSeriesFor)
	orElse(&o.MaxSeries, DefaultMaxSeries)
	orElse(&o.Writers, DefaultWriters)
	orElse(&o.Grace, DefaultGrace)
	if o.Instance == "" {
		host, _ := os.Hostname()
		o.Instance = cut(o.Component+"-"+host, maxWord)
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

func orElse[T int | time.Duration](v *T, to T) {
	if *v <= 0 {
		*v = to
	}
}

func (o Options) check() error {
	if problems := validation.IsQualifiedName(o.Component); len(problems) > 0 {
		return fmt.Errorf("component %q: %w: %s", o.Component, ErrOption, strings.Join(problems, ", "))
	}
	if len(o.Instance) > maxWord {
		return fmt.Errorf("instance %q: %w: it has more than %d bytes", o.Instance, ErrOption, maxWord)
	}
	return nil
}
