//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/even-keel/evenkeel/bench/apiserver/figure"
	"github.com/even-keel/evenkeel/bench/machine"
)

// The sides, as their programs are called.
const (
	ours = "ours"
	peer = "peer"
)

// scene is a server with objects, and what is measured on it, as often as rounds say.
type scene struct {
	name string
	rows []figure.Row
	// prepare makes the objects.
	prepare func(context.Context, *stage) error
	// measure runs one side once, and returns a value for each row by its name.
	measure func(ctx context.Context, s *stage, side string) (map[string]float64, error)
}

// bench measures scene after scene.
type bench struct {
	dir, profile string
	server       string // the program
	sizes        sizes
	rounds       int
	scenes       []scene
	rows         []figure.Row
	say          io.Writer
}

// choose keeps the scenes that have rows whose names match, and these rows.
func (b *bench) choose(names *regexp.Regexp) {
	for _, s := range b.sizes.scenes() {
		before := len(b.rows)
		for _, r := range s.rows {
			if names.MatchString(r.Name) {
				b.rows = append(b.rows, r)
			}
		}
		if len(b.rows) > before {
			b.scenes = append(b.scenes, s)
		}
	}
}

func (b *bench) run(ctx context.Context) error {
	for _, s := range b.scenes {
		if err := b.play(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// play measures a scene on a server of its own.
func (b *bench) play(ctx context.Context, s scene) (err error) {
	fmt.Fprintf(b.say, "==> %s\n", s.name)
	dir, err := os.MkdirTemp(b.dir, "scene-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	server, err := machine.Serve(ctx, b.server, dir, machine.APIAlone...)
	if err != nil {
		return err
	}
	defer server.Kill()
	st := &stage{bench: b, dir: dir, Server: server}
	if err := st.open(ctx); err != nil {
		return err
	}
	defer st.close()
	if err := s.prepare(ctx, st); err != nil {
		return err
	}
	for range b.rounds {
		for _, side := range []string{ours, peer} {
			if err := b.measure(ctx, s, st, side); err != nil {
				return errors.Join(fmt.Errorf("%s: %w", side, err), server.Failed())
			}
		}
	}
	return nil
}

// measure runs one side once, and keeps what that tells.
func (b *bench) measure(ctx context.Context, s scene, st *stage, side string) error {
	u, err := st.before()
	if err != nil {
		return err
	}
	values, err := s.measure(ctx, st, side)
	if err != nil {
		return err
	}
	others, err := st.others(u)
	if err != nil {
		return err
	}
	var told []string
	for i := range b.rows {
		row := &b.rows[i]
		value, ok := values[row.Name]
		if !ok {
			continue
		}
		sample := figure.Sample{Value: value, Others: others}
		if side == ours {
			row.Ours = append(row.Ours, sample)
		} else {
			row.Peer = append(row.Peer, sample)
		}
		told = append(told, fmt.Sprintf("    %-5s %-60s %s", side, row.Name, row.Show(sample)))
	}
	fmt.Fprintln(b.say, strings.Join(told, "\n"))
	return nil
}
