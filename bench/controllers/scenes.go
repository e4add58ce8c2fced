//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/even-keel/evenkeel/bench/apiserver/figure"
	"github.com/even-keel/evenkeel/bench/controllers/side"
	"github.com/even-keel/evenkeel/bench/machine"
)

func (z sizes) scenes() []scene {
	out := []scene{z.reading(), z.writingStatus()}
	for _, rate := range z.rates {
		out = append(out, z.latency(rate))
	}
	for _, pods := range z.pods {
		out = append(out, z.memory(pods))
	}
	return append(out, z.toReady())
}

func row(name string, unit figure.Unit, target figure.Target) figure.Row {
	return figure.Row{Name: name, Unit: unit, Target: target}
}

var twice = figure.Target{Times: 2}

// reading measures the start with objects, and reconciles that only read.
func (z sizes) reading() scene {
	start := "start, until all " + thousands(z.foos) + " Foos are reconciled"
	rate, cpu := "reconciles that read two objects", "CPU time of one of these"
	return scene{
		name:    "reconciles that read",
		rows:    []figure.Row{row(start, figure.PerSecond, twice), row(rate, figure.PerSecond, twice), row(cpu, figure.Micros, figure.Target{})},
		prepare: func(ctx context.Context, s *stage) error { return s.makeFoos(ctx, z.foos, true) },
		measure: func(_ context.Context, s *stage, of string) (map[string]float64, error) {
			a, err := s.once(of, side.Read)
			return map[string]float64{start: a["start"], rate: a["reconciles"], cpu: a["cpu"]}, err
		},
	}
}

// writingStatus measures reconciles that write.
func (z sizes) writingStatus() scene {
	rate, cpu := "reconciles that also write a status", "CPU time of one of these, the server's left out"
	return scene{
		name:    "reconciles that write",
		rows:    []figure.Row{row(rate, figure.PerSecond, figure.Target{}), row(cpu, figure.Micros, figure.Target{})},
		prepare: func(ctx context.Context, s *stage) error { return s.makeFoos(ctx, z.foos, true) },
		measure: func(_ context.Context, s *stage, of string) (map[string]float64, error) {
			a, err := s.once(of, side.Write)
			return map[string]float64{rate: a["reconciles"], cpu: a["cpu"]}, err
		},
	}
}

// once runs a side that has one thing to tell.
func (s *stage) once(of string, task side.Task) (side.Answer, error) {
	a, err := s.start(of, task, s.sizes.foos)
	if err != nil {
		return nil, err
	}
	defer a.Kill()
	told, err := a.answer()
	if err != nil {
		return nil, err
	}
	return told, a.end()
}

// latency measures how long it takes until changes are seen.
func (z sizes) latency(rate int) scene {
	of := ", " + thousands(rate) + " changes a second, "
	names := map[string]string{
		"event-p50": "event to reconcile" + of + "median", "event-p99": "event to reconcile" + of + "99th percentile",
		"write-p50": "write to reconcile" + of + "median", "write-p99": "write to reconcile" + of + "99th percentile",
	}
	const objects = 5000
	return scene{
		name: "latency at " + thousands(rate) + " changes a second",
		rows: []figure.Row{
			row(names["event-p50"], figure.Micros, figure.Target{}), row(names["event-p99"], figure.Micros, twice),
			row(names["write-p50"], figure.Micros, figure.Target{}), row(names["write-p99"], figure.Micros, figure.Target{}),
		},
		prepare: func(ctx context.Context, s *stage) error { return s.makeFoos(ctx, objects, false) },
		measure: func(ctx context.Context, s *stage, of string) (map[string]float64, error) {
			told, err := s.latency(ctx, of, objects, rate)
			out := map[string]float64{}
			for key, name := range names {
				out[name] = told[key]
			}
			return out, err
		},
	}
}

// latency runs a side while objects are changed: a second to warm up, and then as
// long as it is measured.
func (s *stage) latency(ctx context.Context, of string, objects, rate int) (told side.Answer, err error) {
	a, err := s.start(of, side.Latency, objects)
	if err != nil {
		return nil, err
	}
	defer a.Kill()
	if _, err := a.answer(); err != nil {
		return nil, err
	}
	if err := s.apart(a); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.together()) }()
	for _, n := range []int{rate, int(float64(rate) * s.sizes.writing.Seconds())} {
		if err := s.change(ctx, objects, n, rate); err != nil {
			return nil, err
		}
		if told, err = a.waits(ctx, n); err != nil {
			return nil, err
		}
	}
	return told, a.end()
}

// apart gives a side half of the processors, and the server and the generator the
// other: what these do is not to be what is measured.
func (s *stage) apart(a *actor) error {
	lower, upper := machine.Halves()
	return errors.Join(machine.PinSelf(lower), s.Pin(lower), a.Pin(upper))
}

func (s *stage) together() error {
	lower, upper := machine.Halves()
	all := append(lower, upper...)
	return errors.Join(machine.PinSelf(all), s.Pin(all))
}

// waits has the side tell of n changes, once it has seen them all.
func (a *actor) waits(ctx context.Context, n int) (side.Answer, error) {
	for deadline := time.Now().Add(30 * time.Second); ; {
		told, err := a.ask("count")
		if err != nil {
			return nil, err
		}
		if int(told["count"]) == n {
			return a.ask("waits")
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("%v of %d changes were seen", told["count"], n)
		}
		if err := machine.Sleep(ctx, 50*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// memory measures a side that has pods in its cache.
func (z sizes) memory(pods int) scene {
	resident, live := "memory with "+thousands(pods)+" Pods, resident", "memory with "+thousands(pods)+" Pods, live heap"
	return scene{
		name:    "memory with " + thousands(pods) + " Pods",
		rows:    []figure.Row{row(resident, figure.Megabytes, twice), row(live, figure.Megabytes, twice)},
		prepare: func(ctx context.Context, s *stage) error { return s.makePods(ctx, pods) },
		measure: func(ctx context.Context, s *stage, of string) (map[string]float64, error) {
			a, err := s.start(of, side.Memory, pods)
			if err != nil {
				return nil, err
			}
			defer a.Kill()
			if _, err := a.answer(); err != nil {
				return nil, err
			}
			if err := machine.Sleep(ctx, z.resting); err != nil {
				return nil, err
			}
			used, err := machine.Family{a.Child}.Resident()
			if err != nil {
				return nil, err
			}
			told, err := a.ask("heap")
			if err != nil {
				return nil, err
			}
			return map[string]float64{resident: float64(used) / 1e6, live: told["heap"]}, a.end()
		},
	}
}

// toReady measures how long it takes until Foos are ready.
func (z sizes) toReady() scene {
	name := thousands(z.ready) + " Foos, from the first to all ready"
	cpu := "CPU time for that, the server's left out"
	return scene{
		name:    "Foos to ready",
		rows:    []figure.Row{row(name, figure.Seconds, figure.Target{}), row(cpu, figure.Seconds, figure.Target{})},
		prepare: func(ctx context.Context, s *stage) error { return s.define(s.conns[0]) },
		measure: func(ctx context.Context, s *stage, of string) (map[string]float64, error) {
			a, err := s.start(of, side.Foo, 0)
			if err != nil {
				return nil, err
			}
			defer a.Kill()
			if _, err := s.becomeReady(ctx, max(1, z.ready/10)); err != nil { // warm up
				return nil, fmt.Errorf("warm up: %w\n%s", err, a.LastWords())
			}
			before, err := a.ask("cpu")
			if err != nil {
				return nil, err
			}
			took, err := s.becomeReady(ctx, z.ready)
			if err != nil {
				return nil, fmt.Errorf("%w\n%s", err, a.LastWords())
			}
			after, err := a.ask("cpu")
			if err != nil {
				return nil, err
			}
			return map[string]float64{name: took.Seconds(), cpu: after["cpu"] - before["cpu"]}, a.end()
		},
	}
}

// thousands groups digits by commas.
func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
