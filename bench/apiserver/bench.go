//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"

	"github.com/even-keel/evenkeel/bench/apiserver/figure"
	"github.com/even-keel/evenkeel/bench/machine"
)

// The rows without load.
const (
	rowStart   = "start to ready, no data"
	rowRestart = "start to ready, with the data of the rows below"
	rowIdle    = "memory, idle"
	rowPeak    = "memory, highest under load"
	rowAfter   = "memory, after load"
)

// entry is a row to measure; those without load are filled in by the round.
type entry struct {
	row  figure.Row
	load load
}

// entries are all rows, with the budgets of the design.
func entries() []entry {
	cm, small := configMap(850), pod(420)
	row := func(name string, unit figure.Unit, t figure.Target) figure.Row {
		return figure.Row{Name: name, Unit: unit, Target: t}
	}
	ready, idle := figure.Target{AtMost: 0.15}, figure.Target{AtMost: 40}
	five, ten := figure.Target{Times: 5}, figure.Target{Times: 10}
	return []entry{
		{row(rowStart, figure.Seconds, ready), nil},
		{row(rowRestart, figure.Seconds, figure.Target{}), nil},
		{row(rowIdle, figure.Megabytes, idle), nil},
		{row(rowPeak, figure.Megabytes, figure.Target{}), nil},
		{row(rowAfter, figure.Megabytes, figure.Target{}), nil},
		{row("create ConfigMaps", figure.PerSecond, five), creates(cm)},
		{row("create Pods", figure.PerSecond, five), creates(small)},
		{row("get ConfigMaps", figure.PerSecond, five), gets(cm)},
		{row("get Pods", figure.PerSecond, five), gets(small)},
		{row("update ConfigMaps", figure.PerSecond, figure.Target{}), updates(cm)},
		{row("update Pods", figure.PerSecond, figure.Target{}), updates(small)},
		{row("list ConfigMaps, JSON", figure.MBPerSecond, figure.Target{}), lists(configMap(1000), jsonType)},
		{row("list ConfigMaps, protobuf", figure.MBPerSecond, figure.Target{}), lists(configMap(1000), protoType)},
		{row("list Pods, JSON", figure.MBPerSecond, ten), lists(pod(0), jsonType)},
		{row("list Pods, protobuf", figure.MBPerSecond, ten), lists(pod(0), protoType)},
		{row("create custom resources", figure.PerSecond, figure.Target{}), ofCustom(creates(widget(850)))},
		{row("apply custom resources", figure.PerSecond, figure.Target{}), ofCustom(applies(widget(850)))},
		{row("list custom resources, JSON", figure.MBPerSecond, figure.Target{}), ofCustom(lists(widget(850), jsonType))},
		{row("definition to first answer", figure.Seconds, figure.Target{AtMost: 0.05}), defining},
		{row(rowDefine, figure.Seconds, figure.Target{AtMost: 60}), nil},
		{row(rowDefinedMemory, figure.Megabytes, figure.Target{AtMost: 400}), nil},
		{row(rowDefinedStart, figure.Seconds, figure.Target{AtMost: 3}), nil},
		{row("watch fan-out, ConfigMaps, HTTP/2", figure.EventsPerS, ten), fanOut(cm, http2, watch2)},
		{row("watch fan-out, ConfigMaps, HTTP/1.1", figure.EventsPerS, figure.Target{}), fanOut(cm, http1, watch1)},
		{row("watch fan-out, Pods, HTTP/2", figure.EventsPerS, figure.Target{}), fanOut(pod(0), http2, watch2)},
		{row("watch fan-out, Pods, HTTP/1.1", figure.EventsPerS, figure.Target{}), fanOut(pod(0), http1, watch1)},
	}
}

// chosen are the entries whose names match.
func chosen(all []entry, names *regexp.Regexp) []entry {
	var out []entry
	for _, e := range all {
		if names.MatchString(e.row.Name) {
			out = append(out, e)
		}
	}
	return out
}

// bench measures two servers in turns.
type bench struct {
	ours, peer system
	dir        string
	sizes      sizes
	rounds     int
	idle       time.Duration
	patience   time.Duration // to wait for a quiet machine, of all runs together
	cores      int
	entries    []entry
	say        io.Writer
}

// run measures round after round, ours first, and returns the rows.
func (b *bench) run(ctx context.Context) ([]figure.Row, error) {
	for round := range b.rounds {
		for _, s := range []system{b.ours, b.peer} {
			if s.start == nil {
				continue
			}
			fmt.Fprintf(b.say, "==> %s, run %d of %d\n", s.name, round+1, b.rounds)
			if err := b.round(ctx, s); err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
			switch err := b.many(ctx, s); {
			case err != nil && s.name == b.peer.name && ctx.Err() == nil:
				fmt.Fprintf(b.say, "    %s: not measured: %v\n", rowDefine, err)
			case err != nil:
				return nil, fmt.Errorf("%s, definitions: %w", s.name, err)
			}
		}
	}
	var rows []figure.Row
	for _, e := range b.entries {
		rows = append(rows, e.row)
	}
	return rows, nil
}

// round measures all rows of one server once, from an empty folder on.
func (b *bench) round(ctx context.Context, s system) (err error) {
	dir, err := os.MkdirTemp(b.dir, "run-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := b.waitQuiet(ctx); err != nil {
		return err
	}
	i, sample, err := s.measureStart(ctx, dir, b.cores)
	if err != nil {
		return err
	}
	defer i.family.Kill()
	b.add(s, rowStart, sample)
	if err := b.settled(ctx, s, i, rowIdle); err != nil {
		return err
	}
	if err := b.loads(ctx, s, i); err != nil {
		return errors.Join(err, i.family.Failed())
	}
	if err := b.settled(ctx, s, i, rowAfter); err != nil {
		return err
	}
	return b.restart(ctx, s, i, dir)
}

// settled measures memory after a while without requests.
func (b *bench) settled(ctx context.Context, s system, i *instance, row string) error {
	if err := machine.Sleep(ctx, b.idle); err != nil {
		return err
	}
	used, err := i.family.Resident()
	b.add(s, row, figure.Sample{Value: float64(used) / 1e6})
	return err
}

// loads measures the rows with load.
func (b *bench) loads(ctx context.Context, s system, i *instance) error {
	st, err := newStage(ctx, i, b.sizes, b.cores)
	if err != nil {
		return err
	}
	defer st.clients.close()
	following, cancel := context.WithCancel(ctx)
	highest := make(chan int64, 1)
	go func() { highest <- i.family.Peak(following) }()
	defer func() {
		cancel()
		b.add(s, rowPeak, figure.Sample{Value: float64(<-highest) / 1e6})
	}()
	for _, e := range b.entries {
		if e.load == nil {
			continue
		}
		if err := b.waitQuiet(ctx); err != nil {
			return err
		}
		sample, err := e.load(ctx, st)
		if err != nil {
			return fmt.Errorf("%s: %w", e.row.Name, err)
		}
		b.add(s, e.row.Name, sample)
	}
	return nil
}

// restart stops the server and measures how it starts with data.
func (b *bench) restart(ctx context.Context, s system, i *instance, dir string) error {
	if err := i.family.Stop(); err != nil {
		return err
	}
	if err := b.waitQuiet(ctx); err != nil {
		return err
	}
	again, sample, err := s.measureStart(ctx, dir, b.cores)
	if err != nil {
		return err
	}
	defer again.family.Kill()
	b.add(s, rowRestart, sample)
	c, err := dial(ctx, again, 1, clientBuffer, http1)
	if err != nil {
		return err
	}
	defer c.close()
	if _, err := expect(c[0], appendRequest(nil, "GET", "/api/v1/namespaces/"+inBench, jsonType, ""), 200); err != nil {
		return fmt.Errorf("the data after a restart: %w", err)
	}
	return again.family.Stop()
}

// add keeps a sample of a row, if the row was chosen.
func (b *bench) add(s system, name string, sample figure.Sample) {
	for n := range b.entries {
		row := &b.entries[n].row
		if row.Name != name {
			continue
		}
		if s.name == b.ours.name {
			row.Ours = append(row.Ours, sample)
		} else {
			row.Peer = append(row.Peer, sample)
		}
		fmt.Fprintf(b.say, "    %-48s %s\n", name, row.Show(sample))
	}
}
