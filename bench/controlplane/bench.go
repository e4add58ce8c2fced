//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"

	"github.com/even-keel/evenkeel/bench/apiserver/figure"
	"github.com/even-keel/evenkeel/bench/machine"
)

// bench measures scene after scene.
type bench struct {
	dir, program, profile string
	sizes                 sizes
	rounds                int
	say                   io.Writer
	// figures are what has a value, steps what one server did one after the other.
	figures, steps []figure.Row
}

// scene is something to measure, in a folder of its own.
type scene struct {
	name string
	play func(b *bench, ctx context.Context, dir string) error
}

var scenes = []scene{
	{"idle", (*bench).idle},
	{"cluster", (*bench).cluster},
	{"scheduler, alone", (*bench).schedulerAlone},
	{"scheduler, end to end", (*bench).schedulerServed},
}

// run measures the scenes whose names match.
func (b *bench) run(ctx context.Context, names *regexp.Regexp) error {
	for _, s := range scenes {
		if !names.MatchString(s.name) {
			continue
		}
		for range b.rounds {
			fmt.Fprintf(b.say, "==> %s\n", s.name)
			if err := b.once(ctx, s); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	return nil
}

func (b *bench) once(ctx context.Context, s scene) (err error) {
	dir, err := os.MkdirTemp(b.dir, "scene-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	return s.play(b, ctx, dir)
}

// keep adds a sample to the row of a name, which is made if it is the first.
func (b *bench) keep(rows *[]figure.Row, name string, unit figure.Unit, target figure.Target, s figure.Sample) {
	i := slices.IndexFunc(*rows, func(r figure.Row) bool { return r.Name == name })
	if i < 0 {
		i = len(*rows)
		*rows = append(*rows, figure.Row{Name: name, Unit: unit, Target: target})
	}
	r := &(*rows)[i]
	r.Ours = append(r.Ours, s)
	fmt.Fprintf(b.say, "    %-60s %s\n", name, r.Show(s))
}

// idle measures a control plane as it is by default that nobody uses.
func (b *bench) idle(ctx context.Context, dir string) error {
	server, err := machine.Serve(ctx, b.program, dir)
	if err != nil {
		return err
	}
	defer server.Kill()
	if err := machine.Sleep(ctx, b.sizes.resting); err != nil {
		return err
	}
	used, err := machine.Family{server.Child}.Resident()
	if err != nil {
		return err
	}
	b.keep(&b.figures, "start to ready, everything on, one node", figure.Seconds, figure.Target{AtMost: 0.2}, figure.Sample{Value: server.Took.Seconds()})
	b.keep(&b.figures, "idle, resident", figure.Megabytes, figure.Target{AtMost: 60}, figure.Sample{Value: float64(used) / 1e6})
	return errors.Join(server.Failed(), server.Stop())
}
