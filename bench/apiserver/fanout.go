//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/even-keel/evenkeel/bench/apiserver/figure"
	"github.com/even-keel/evenkeel/bench/apiserver/lean"
)

const (
	// window is how many changes may be on their way to the watchers: writers wait
	// for them, so that what is measured is delivery. A server that drops watchers
	// gets half as many, and again, down to leastWindow.
	window      = 64
	leastWindow = 8
	// watchBuffer is what a watcher reads at once, before its socket is taken over.
	watchBuffer = 32 << 10
)

// watch opens a watch of a path on a new connection.
type watch func(conn *lean.Conn, path string) (lines, error)

func watch1(conn *lean.Conn, path string) (lines, error) {
	return conn.Stream(appendRequest(nil, "GET", path, jsonType, ""))
}

func watch2(conn *lean.Conn, path string) (lines, error) { return conn.Stream2(path, jsonType) }

var errDropped = errors.New("the server ended a watch")

// fanOut measures how many events all watchers of a collection get in a second.
func fanOut(k kind, protocol string, open watch) load {
	return func(ctx context.Context, s *stage) (figure.Sample, error) {
		ctx, cancel := context.WithTimeout(ctx, rowLimit)
		defer cancel()
		if err := s.ensure(ctx, k, inWatched, len(s.clients)); err != nil {
			return figure.Sample{}, err
		}
		writers, err := s.writers(k, inWatched, 1)
		if err != nil {
			return figure.Sample{}, err
		}
		for at := window; ; at /= 2 {
			a, err := s.openAudience(ctx, k, protocol, open)
			if err != nil {
				return figure.Sample{}, err
			}
			sample, err := s.fanOut(ctx, a, writers, at)
			a.close()
			if !errors.Is(err, errDropped) || at <= leastWindow {
				return sample, err
			}
		}
	}
}

// fanOut has the audience get changes, a window of them at a time: first a few that
// are read as they come, then all, which are read when the time is no longer taken.
func (s *stage) fanOut(ctx context.Context, a *audience, writers []*writer, window int) (figure.Sample, error) {
	n := max(1, s.sizes.changes/10)
	begun := time.Now()
	if err := s.deliver(ctx, a, writers, n, window); err != nil { // warm up
		return figure.Sample{}, err
	}
	last, err := a.check(n)
	if err != nil {
		return figure.Sample{}, err
	}
	a.learn()
	n = s.sizes.enough(n, last.Sub(begun))
	if err := a.reserve(n); err != nil {
		return figure.Sample{}, err
	}
	// Half a core is enough for the generator, and with one it looks for no work on others.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	before, err := s.family.Usage()
	if err != nil {
		return figure.Sample{}, err
	}
	begun = time.Now()
	if err := s.deliver(ctx, a, writers, n, window); err != nil {
		return figure.Sample{}, err
	}
	after, err := s.family.Usage()
	if err != nil {
		return figure.Sample{}, err
	}
	last, err = a.check(n)
	if err == nil {
		err = s.compare(ctx, a, writers)
	}
	took, done := last.Sub(begun), float64(n*len(a.watchers))
	sample := after.Since(before, took, s.cores)
	sample.Value, sample.Work = done/took.Seconds(), done
	return sample, err
}

// enough is how many changes a fast server gets: so many that they take about as long
// as rows of reads, if n took so long, but at most five times those of a slow one.
func (z sizes) enough(n int, took time.Duration) int {
	return min(max(z.changes, int(float64(n)*float64(z.reading)/float64(took))), 5*z.changes)
}

// compare has one more change be made when the time is no longer taken: every watcher
// must get it next, and those that only counted must have counted as much as those
// that recorded.
func (s *stage) compare(ctx context.Context, a *audience, writers []*writer) error {
	least, most, err := a.recount()
	if err != nil {
		return err
	}
	if err := s.deliver(ctx, a, writers, 1, 1); err != nil {
		return err
	}
	for i, w := range a.watchers {
		if w.events != 1 {
			return fmt.Errorf("watcher %d got %d events of 1", i, w.events)
		}
	}
	return a.compare(least, most)
}

// deliver has the writers make n changes, and waits until every watcher has got them.
func (s *stage) deliver(ctx context.Context, a *audience, writers []*writer, n, window int) error {
	following, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := newPace(n, window)
	followed := make(chan error, 1)
	go func() {
		err := a.follow(following, p)
		cancel(err) // with it, writers need not wait
		followed <- err
	}()
	_, _, err := s.clients.run(ctx, bound{count: n, time: rowLimit}, func(client int) step {
		return func(conn *lean.Conn, i int) error {
			if err := p.take(following); err != nil {
				return err
			}
			return writers[client].update(conn, i)
		}
	})
	p.written.Store(true)
	if err != nil {
		cancel(err)
	}
	if followErr := <-followed; followErr != nil && !errors.Is(followErr, context.Canceled) {
		return followErr
	}
	return err
}
