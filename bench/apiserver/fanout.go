//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
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
	// watchBuffer is what a watcher reads at once.
	watchBuffer = 32 << 10
)

// lines is a watch that is read.
type lines interface{ Lines() (int, error) }

// watch opens a watch of a path on a new connection.
type watch func(conn *lean.Conn, path string) (lines, error)

func watch1(conn *lean.Conn, path string) (lines, error) {
	return conn.Stream(appendRequest(nil, "GET", path, jsonType, ""))
}

func watch2(conn *lean.Conn, path string) (lines, error) { return conn.Stream2(path, jsonType) }

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

// fanOut has the audience get changes, a window of them at a time.
func (s *stage) fanOut(ctx context.Context, a *audience, writers []*writer, window int) (figure.Sample, error) {
	sent := 0
	change := func(n int) (float64, time.Duration, error) {
		first := sent
		sent += n
		took, err := a.deliver(ctx, s.clients, writers, first, n, window)
		return float64(n * len(a.conns)), took, err
	}
	if _, _, err := change(s.sizes.changes / 10); err != nil { // warm up
		return figure.Sample{}, err
	}
	return s.measure(func() (float64, time.Duration, error) { return change(s.sizes.changes) })
}

var errDropped = errors.New("the server ended a watch")

// audience is the watchers of a collection, who read all the time.
type audience struct {
	conns   clients
	got     atomic.Int64 // events, of all watchers
	closing atomic.Bool
	wg      sync.WaitGroup
	failed  chan error // holds the first failure
}

// openAudience opens watches from now on, and has them read.
func (s *stage) openAudience(ctx context.Context, k kind, protocol string, open watch) (*audience, error) {
	newest, err := expect(s.clients[0], appendRequest(nil, "GET", k.collection(inWatched)+"?limit=1", jsonType, ""), 200)
	if err != nil {
		return nil, err
	}
	path := k.collection(inWatched) + "?watch=1&resourceVersion=" + versionIn(newest.Body)
	conns, err := dial(ctx, s.instance, s.sizes.watchers, watchBuffer, protocol)
	if err != nil {
		return nil, err
	}
	a := &audience{conns: conns, failed: make(chan error, 1)}
	conns.expire(time.Now().Add(rowLimit + answerWithin))
	for i, conn := range conns {
		stream, err := open(conn, path)
		if err != nil {
			a.close()
			return nil, fmt.Errorf("open watch %d: %w", i, err)
		}
		a.wg.Go(func() { a.read(stream) })
	}
	return a, nil
}

// close ends the watches and waits for their readers.
func (a *audience) close() {
	a.closing.Store(true)
	a.conns.close()
	a.wg.Wait()
}

func (a *audience) read(stream lines) {
	for {
		events, err := stream.Lines()
		a.got.Add(int64(events))
		if err != nil {
			a.fail(err)
			return
		}
	}
}

func (a *audience) fail(err error) {
	if a.closing.Load() {
		return
	}
	if errors.Is(err, io.EOF) {
		err = errDropped
	}
	select {
	case a.failed <- err:
	default:
	}
}

// deliver has the writers make n changes after the first so many, and waits until
// every watcher has got them.
func (a *audience) deliver(ctx context.Context, c clients, writers []*writer, first, n, window int) (time.Duration, error) {
	begun := time.Now()
	_, _, err := c.run(ctx, bound{count: n, time: rowLimit}, func(client int) step {
		return func(conn *lean.Conn, i int) error {
			if err := a.wait(ctx, first+i-window); err != nil {
				return err
			}
			return writers[client].update(conn, i)
		}
	})
	if err == nil {
		err = a.wait(ctx, first+n)
	}
	return time.Since(begun), err
}

// wait blocks until the watchers have got so many changes, all together.
func (a *audience) wait(ctx context.Context, changes int) error {
	want := int64(changes) * int64(len(a.conns))
	for a.got.Load() < want {
		select {
		case err := <-a.failed:
			a.fail(err) // for the others
			return err
		case <-ctx.Done():
			return fmt.Errorf("%d of %d events were delivered: %w", a.got.Load(), want, ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}
