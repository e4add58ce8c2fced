//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/even-keel/evenkeel/bench/apiserver/lean"
)

// lines is a watch that is read.
type lines interface{ Lines() (int, error) }

// watcher is one watch.
type watcher struct {
	conn   *lean.Conn
	stream lines
	tape   *lean.Tape
	events int // as they were read
	// counts says that what it gets is only measured while the time is taken.
	counts bool
}

// read takes all that is on the tape.
func (w *watcher) read() error {
	if ready, err := w.tape.Resume(w.conn); err != nil || !ready {
		return err
	}
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
	// recounts says that events are read as they come, though their size is known.
	recounts bool
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
	a.watchers = append(a.watchers, &watcher{conn: conn, stream: stream, tape: tape})
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
	return a.rewind(nil, 0)
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

// rewind begins all tapes anew, and the counts with them. Of those that record each
// gets so much of the memory, if it is given.
func (a *audience) rewind(mem []byte, each int) error {
	a.got = 0
	for _, w := range a.watchers {
		var own []byte
		if mem != nil && !w.counts {
			own, mem = mem[:each], mem[each:]
		}
		if err := w.tape.Rewind(own); err != nil {
			return err
		}
		w.events = 0
	}
	return nil
}

// oneIn so many watchers record what they get while the time is taken.
const oneIn = 10

// reserve has a tenth of the watchers record n events, and gets memory for them. It
// is touched: the kernel's time for that is not the server's. The others count.
func (a *audience) reserve(n int) error {
	const slack, overhead = 1 << 20, 64 // of a tape, of the record of an event
	each, recording := slack+n*(int(a.size)+overhead), 0
	for i, w := range a.watchers {
		if w.counts = i%oneIn != 0; w.counts {
			w.tape.Skip()
		} else {
			recording++
		}
	}
	mem, err := syscall.Mmap(-1, 0, each*recording, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return fmt.Errorf("memory for what watchers get: %w", err)
	}
	a.tapes = mem
	_ = syscall.Madvise(mem, 14) // MADV_HUGEPAGE, where there are any
	for i := 0; i < len(mem); i += 4096 {
		mem[i] = 1
	}
	return a.rewind(mem, each)
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
		if err == nil && a.reads() {
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

// reads says that what comes is read at once.
func (a *audience) reads() bool { return a.size == 0 || a.recounts }

// count sets how many events there are.
func (a *audience) count() {
	a.got = 0
	for _, w := range a.watchers {
		if a.reads() {
			a.got += int64(w.events)
		} else {
			a.got += int64(float64(w.tape.Payload()) / a.size)
		}
	}
}

// check reads what was recorded: every watcher that records must have got n events.
// It returns when the last watcher got something.
func (a *audience) check(n int) (last time.Time, err error) {
	if err := a.read(); err != nil {
		return last, err
	}
	for i, w := range a.watchers {
		if !w.counts && w.events != n {
			return last, fmt.Errorf("watcher %d got %d events of %d", i, w.events, n)
		}
		if w.tape.Last().After(last) {
			last = w.tape.Last()
		}
	}
	return last, nil
}

// recount ends the counting: from now on all watchers record, and what comes is read
// at once. It returns how much those that recorded got, at least and at most.
func (a *audience) recount() (least, most int64, err error) {
	least = math.MaxInt64
	for _, w := range a.watchers {
		if w.counts {
			w.tape.Keep()
			continue
		}
		least, most = min(least, w.tape.Payload()), max(most, w.tape.Payload())
		if err := w.tape.Rewind(nil); err != nil {
			return 0, 0, err
		}
	}
	for _, w := range a.watchers {
		w.events = 0
	}
	a.got, a.recounts = 0, true
	return least, most, nil
}

// compare wants that those that counted got as much as those that recorded, up to
// half an event: frames need not be the same. Each has got one event since, which
// tells how many records it had counted.
func (a *audience) compare(least, most int64) error {
	for i, w := range a.watchers {
		if !w.counts {
			continue
		}
		if got := float64(w.tape.Payload()) - a.size; got < float64(least)-a.size/2 || got > float64(most)+a.size/2 {
			return fmt.Errorf("watcher %d got %.0f bytes, those that were read %d to %d", i, got, least, most)
		}
	}
	return nil
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
