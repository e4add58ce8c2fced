package h2

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/net/http2"
)

// stream is a request and its answer. Its fields are guarded by its connection's lock,
// except for those that do not change, and where it is said.
type stream struct {
	c      *conn
	id     uint32
	req    *http.Request
	answer http.Handler
	cancel context.CancelFunc

	// answered says that the head of the answer was sent. The writer's lock guards it.
	answered bool

	// moved is told when a window grows, when a piece of the body comes, and at the end.
	moved  *sync.Cond
	window int64
	// starves says that somebody waits for the connection's window, and no other.
	starves bool
	// ended says why nothing more can be sent or read.
	ended error
	// gone says that the client knows, resets what it is to be told, closed that it
	// waits for nothing more.
	gone   bool
	resets http2.ErrCode
	closed bool
	// writeBy and readBy are deadlines; zero is none.
	writeBy, readBy time.Time

	// Of the body: what has come and not been read, and whether there is more.
	body     backlog
	bodyOver bool
	bodyErr  error
	room     int64 // how much the client may send
	owed     int64 // of it that it has not been told of
	got      int64
	expects  bool // the client waits to be asked for it
}

// serve runs the handler.
func (s *stream) serve() {
	w := &response{s: s, header: http.Header{}}
	defer s.over()
	defer s.cancel()
	if s.handle(w) {
		w.finish()
	}
	if form := s.req.MultipartForm; form != nil {
		_ = form.RemoveAll() // what is left are temporary files
	}
}

// handle reports whether the handler came to its end. One that did not, by a panic or
// by [runtime.Goexit], breaks its answer off.
func (s *stream) handle(w *response) (done bool) {
	defer func() {
		if done {
			return
		}
		if p := recover(); p != nil && p != http.ErrAbortHandler {
			s.logf("http2: panic serving %s: %v\n%s", s.req.RemoteAddr, p, debug.Stack())
		}
		s.breaks()
	}()
	s.answer.ServeHTTP(w, s.req)
	return true
}

// breaks has the client told that its answer is not whole.
func (s *stream) breaks() {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.resets = http2.ErrCodeInternal
}

func (s *stream) logf(format string, args ...any) {
	if l := s.c.http.ErrorLog; l != nil {
		l.Printf(format, args...)
		return
	}
	log.Printf(format, args...)
}

// over ends the stream when its handler has. A client that goes on to send a body is
// asked to stop.
func (s *stream) over() {
	c := s.c
	c.mu.Lock()
	code, reset := s.resets, s.resets != http2.ErrCodeNo || !s.bodyOver
	reset = reset && !s.gone
	left := s.body.drop()
	s.endLocked(http.ErrBodyReadAfterClose)
	s.closeLocked()
	c.mu.Unlock()
	if reset {
		c.reply(func(w *http2.Framer) error { return w.WriteRSTStream(s.id, code) })
	}
	c.refund(nil, left)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.streams, s.id)
	if len(c.streams) == 0 && c.ended == nil {
		c.rest()
	}
}

// endLocked has all who use the stream stop.
func (s *stream) endLocked(err error) {
	if s.ended == nil {
		s.ended = err
	}
	s.cancel()
	s.moved.Broadcast()
}

// goneLocked is for a stream of which the client wants to hear no more.
func (s *stream) goneLocked(err error) {
	s.gone = true
	s.closeLocked()
	s.endLocked(err)
}

// closeLocked lets the client make another request.
func (s *stream) closeLocked() {
	if !s.closed {
		s.closed = true
		s.c.open--
	}
}

// take waits until some of n bytes may be sent, and returns how many. All of the last
// ones end the stream.
func (s *stream) take(n int, last bool) (int, error) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	m, err := s.takeLocked(n, last)
	for m == 0 && err == nil {
		if err = s.waitToSend(); err == nil {
			m, err = s.takeLocked(n, last)
		}
		s.c.feedLocked() // this one may have been woken for more than it took
	}
	return m, err
}

// takeLocked returns 0 if nothing may be sent now.
func (s *stream) takeLocked(n int, last bool) (int, error) {
	if s.ended != nil {
		return 0, fmt.Errorf("the stream is over: %w", s.ended)
	}
	m := max(0, min(int64(n), s.window, s.c.window))
	s.spendLocked(m, last && m == int64(n))
	return int(m), nil
}

// waitToSend is called with the lock when nothing may be sent.
func (s *stream) waitToSend() error {
	if s.window > 0 {
		s.starves = true
		s.c.starving++
		defer s.fedLocked()
	}
	err := s.wait(s.writeBy)
	if err != nil {
		s.resets = http2.ErrCodeCancel
		s.endLocked(err) // an end that came later would make what was sent look whole
	}
	return err
}

// feedLocked wakes one of the streams that starve, if there is something for it. That
// one wakes the next: if all were woken for each little that the client allows, it
// could keep a server of many streams busy with nothing.
func (c *conn) feedLocked() {
	if c.window <= 0 || c.starving == 0 {
		return
	}
	for _, s := range c.streams {
		if s.starves {
			s.fedLocked()
			s.moved.Broadcast()
			return
		}
	}
}

func (s *stream) fedLocked() {
	if s.starves {
		s.starves = false
		s.c.starving--
	}
}

// takeAll reports whether n bytes may be sent now; then they are taken.
func (s *stream) takeAll(n int, last bool) (bool, error) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if s.ended != nil {
		return false, fmt.Errorf("the stream is over: %w", s.ended)
	}
	if n > 0 && int64(n) > min(s.window, s.c.window) { // a window may be less than nothing
		return false, nil
	}
	s.spendLocked(int64(n), last)
	return true, nil
}

func (s *stream) spendLocked(n int64, last bool) {
	s.window -= n
	s.c.window -= n
	if last {
		s.closeLocked() // before the client hears of it
	}
}

// wait is called with the lock, and returns when something has changed.
func (s *stream) wait(by time.Time) error {
	if !by.IsZero() {
		left := time.Until(by)
		if left <= 0 {
			return os.ErrDeadlineExceeded
		}
		timer := time.AfterFunc(left, s.wake)
		defer timer.Stop()
	}
	s.moved.Wait()
	return nil
}

// setDeadline sets writeBy or readBy.
func (s *stream) setDeadline(by *time.Time, t time.Time) error {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	*by = t
	s.moved.Broadcast()
	return nil
}

// wake takes the lock, so that it does not come between a look at the clock and the
// wait that follows from it.
func (s *stream) wake() {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.moved.Broadcast()
}
