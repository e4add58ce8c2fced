//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/even-keel/evenkeel/bench/apiserver/lean"
)

// lines is a watch that is read.
type lines interface{ Lines() (int, error) }

// watcher is one watch.
type watcher struct {
	stream lines
	tape   *lean.Tape
	events int // as they were read
}

// read takes all that is on the tape.
func (w *watcher) read() error {
	for {
		n, err := w.stream.Lines()
		w.events += n
		switch {
		case errors.Is(err, lean.ErrDry):
			return nil
		case errors.Is(err, io.EOF):
			return errDropped
		case err != nil:
			return err
		}
	}
}

// audience is the watchers of a collection. One thread records what all of them
// get; how many events that is it knows from its length, and what is in it when
// the time is no longer taken.
type audience struct {
	conns    clients
	watchers []*watcher
	poll     int
	ready    []syscall.EpollEvent
	tapes    []byte // of all watchers
	// size is the payload of an event, as the warm-up showed; 0 is not known yet.
	size float64
	// got is how many events there are, of all watchers.
	got int64
}

const (
	// warmTape is the memory of a watcher while what it gets is read at once.
	warmTape = 1 << 20
	// every so often watchers read.
	every = time.Millisecond
	// quietFor so long nothing comes after all has, stuckFor when all has not.
	quietFor = 300 * time.Millisecond
	stuckFor = 5 * time.Second
)

// openAudience opens watches from now on.
func (s *stage) openAudience(ctx context.Context, k kind, protocol string, open watch) (a *audience, err error) {
	newest, err := expect(s.clients[0], appendRequest(nil, "GET", k.collection(inWatched)+"?limit=1", jsonType, ""), 200)
	if err != nil {
		return nil, err
	}
	path := k.collection(inWatched) + "?watch=1&resourceVersion=" + versionIn(newest.Body)
	conns, err := dial(ctx, s.instance, s.sizes.watchers, watchBuffer, protocol)
	if err != nil {
		return nil, err
	}
	a = &audience{conns: conns, poll: -1, ready: make([]syscall.EpollEvent, len(conns))}
	defer func() {
		if err != nil {
			a.close()
		}
	}()
	if a.poll, err = syscall.EpollCreate1(syscall.EPOLL_CLOEXEC); err != nil {
		return nil, err
	}
	conns.expire(time.Now().Add(answerWithin))
	for i, conn := range conns {
		if err := a.add(conn, path, open); err != nil {
			return nil, fmt.Errorf("open watch %d: %w", i, err)
		}
	}
	return a, a.settle()
}

func (a *audience) add(conn *lean.Conn, path string, open watch) error {
	stream, err := open(conn, path)
	if err != nil {
		return err
	}
	tape, err := conn.Tape(warmTape)
	if err != nil {
		return err
	}
	event := syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(len(a.watchers))}
	a.watchers = append(a.watchers, &watcher{stream: stream, tape: tape})
	return syscall.EpollCtl(a.poll, syscall.EPOLL_CTL_ADD, tape.Socket(), &event)
}

// settle reads what comes before any event, so that tapes begin with a record.
func (a *audience) settle() error {
	for last := time.Now(); time.Since(last) < quietFor; {
		n, err := a.record()
		if n > 0 {
			last = time.Now()
		}
		if err == nil {
			err = a.read()
		}
		if err != nil {
			return err
		}
	}
	return a.rewind(nil)
}

// close ends the watches.
func (a *audience) close() {
	a.conns.close()
	if a.poll >= 0 {
		_ = syscall.Close(a.poll) // nothing is pending on it
	}
	if a.tapes != nil {
		_ = syscall.Munmap(a.tapes)
	}
}

// record waits a moment, and records what has come. It does not ask to be woken:
// whoever sends would do that, for each piece, at the cost of the server.
func (a *audience) record() (n int, err error) {
	time.Sleep(every)
	ready, err := syscall.EpollWait(a.poll, a.ready, 0)
	if errors.Is(err, syscall.EINTR) {
		return 0, nil
	}
	for _, e := range a.ready[:max(ready, 0)] {
		w := a.watchers[e.Fd]
		more, recordErr := w.tape.Record()
		n += more
		if errors.Is(recordErr, io.EOF) {
			recordErr = errDropped
		}
		err = errors.Join(err, recordErr)
	}
	return n, err
}

// read decrypts all that is recorded.
func (a *audience) read() error {
	for _, w := range a.watchers {
		if err := w.read(); err != nil {
			return err
		}
	}
	return nil
}

// rewind begins all tapes anew, and the counts with them.
func (a *audience) rewind(mem []byte) error {
	a.got = 0
	each := len(mem) / len(a.watchers)
	for i, w := range a.watchers {
		var own []byte
		if mem != nil {
			own = mem[i*each : (i+1)*each]
		}
		if err := w.tape.Rewind(own); err != nil {
			return err
		}
		w.events = 0
	}
	return nil
}

// reserve gets memory for n events of each watcher, and touches it: the kernel's
// time for that is not the server's.
func (a *audience) reserve(n int) error {
	const slack, overhead = 1 << 20, 64 // of a tape, of the record of an event
	each := slack + n*(int(a.size)+overhead)
	mem, err := syscall.Mmap(-1, 0, each*len(a.watchers), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return fmt.Errorf("memory for what watchers get: %w", err)
	}
	a.tapes = mem
	_ = syscall.Madvise(mem, 14) // MADV_HUGEPAGE, where there are any
	for i := 0; i < len(mem); i += 4096 {
		mem[i] = 1
	}
	return a.rewind(mem)
}

// pace is how far writers may be ahead of the watchers: they take a token for each
// of n changes.
type pace struct {
	n, window int
	tokens    chan struct{}
	given     int
	// written says that all changes are made.
	written atomic.Bool
}

func newPace(n, window int) *pace {
	return &pace{n: n, window: window, tokens: make(chan struct{}, n)}
}

// give has the writers go on when so many changes have come to everybody.
func (p *pace) give(changes int) {
	for ; p.given < min(changes+p.window, p.n); p.given++ {
		p.tokens <- struct{}{}
	}
}

// take blocks until another change may be made.
func (p *pace) take(ctx context.Context) error {
	select {
	case <-p.tokens:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// follow records until all changes have come to every watcher and quiet falls, or
// ctx ends. With the size of an event known it only measures what comes.
func (a *audience) follow(ctx context.Context, p *pace) error {
	all := int64(p.n) * int64(len(a.watchers))
	p.give(0)
	for last := time.Now(); ctx.Err() == nil; {
		came, err := a.record()
		if err == nil && a.size == 0 {
			err = a.read()
		}
		if err != nil {
			return err
		}
		if came > 0 {
			last = time.Now()
			a.count()
			p.give(int(a.got) / len(a.watchers))
			continue
		}
		quiet := time.Since(last)
		switch {
		case p.written.Load() && a.got >= all*199/200 && quiet >= quietFor:
			return nil
		case quiet >= stuckFor:
			return errors.Join(a.read(), fmt.Errorf("%d of %d events were delivered in time", a.got, all))
		}
	}
	return ctx.Err()
}

// count sets how many events there are.
func (a *audience) count() {
	a.got = 0
	for _, w := range a.watchers {
		if a.size == 0 {
			a.got += int64(w.events)
		} else {
			a.got += int64(float64(w.tape.Payload()) / a.size)
		}
	}
}

// check reads what was recorded: every watcher must have got n events. It returns
// when the last of them had.
func (a *audience) check(n int) (last time.Time, err error) {
	if err := a.read(); err != nil {
		return last, err
	}
	for i, w := range a.watchers {
		if w.events != n {
			return last, fmt.Errorf("watcher %d got %d events of %d", i, w.events, n)
		}
		if w.tape.Last().After(last) {
			last = w.tape.Last()
		}
	}
	return last, nil
}

// learn takes the size of an event from what was read since the last rewind.
func (a *audience) learn() {
	var payload, events float64
	for _, w := range a.watchers {
		payload += float64(w.tape.Payload())
		events += float64(w.events)
	}
	a.size = payload / events
}
