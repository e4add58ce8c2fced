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
	// for them, so that what is measured is delivery and nobody is dropped.
	window = 64
	// readEvery is how long a watcher lets events gather before it reads again. It
	// keeps the generator cheap, and is short beside the window.
	readEvery = 5 * time.Millisecond
	// watchBuffer is what a watcher reads at once.
	watchBuffer = 32 << 10
)

// fanOut measures how many events all watchers of a collection get in a second.
func fanOut(k kind) load {
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
		a, err := s.openAudience(ctx, k)
		if err != nil {
			return figure.Sample{}, err
		}
		defer a.close()
		sent := 0
		change := func(n int) (float64, time.Duration, error) {
			first := sent
			sent += n
			took, err := a.deliver(ctx, s.clients, writers, first, n)
			return float64(n * len(a.conns)), took, err
		}
		if _, _, err := change(s.sizes.changes / 10); err != nil { // warm up
			return figure.Sample{}, err
		}
		return s.measure(func() (float64, time.Duration, error) { return change(s.sizes.changes) })
	}
}

// audience is the watchers of a collection, who read all the time.
type audience struct {
	conns   clients
	got     atomic.Int64 // events, of all watchers
	closing atomic.Bool
	wg      sync.WaitGroup
	failed  chan error // holds the first failure
}

// openAudience opens watches from now on, and has them read.
func (s *stage) openAudience(ctx context.Context, k kind) (*audience, error) {
	newest, err := expect(s.clients[0], appendRequest(nil, "GET", k.collection(inWatched)+"?limit=1", jsonType, ""), 200)
	if err != nil {
		return nil, err
	}
	request := appendRequest(nil, "GET", k.collection(inWatched)+"?watch=1&resourceVersion="+versionIn(newest.Body), jsonType, "")
	conns, err := dial(ctx, s.instance, s.sizes.watchers, watchBuffer)
	if err != nil {
		return nil, err
	}
	a := &audience{conns: conns, failed: make(chan error, 1)}
	conns.expire(time.Now().Add(rowLimit + answerWithin))
	for i, conn := range conns {
		stream, err := conn.Stream(request)
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

func (a *audience) read(stream *lean.Stream) {
	for {
		events, err := stream.Lines()
		a.got.Add(int64(events))
		if err != nil {
			a.fail(err)
			return
		}
		time.Sleep(readEvery)
	}
}

func (a *audience) fail(err error) {
	if a.closing.Load() {
		return
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("the server ended a watch")
	}
	select {
	case a.failed <- err:
	default:
	}
}

// deliver has the writers make n changes after the first so many, and waits until
// every watcher has got them.
func (a *audience) deliver(ctx context.Context, c clients, writers []*writer, first, n int) (time.Duration, error) {
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
