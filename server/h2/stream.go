package h2

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// wake takes the lock, so that it does not come between a look at the clock and the
// wait that follows from it.
func (s *stream) wake() {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.moved.Broadcast()
}

// data takes a piece of a body.
func (c *conn) data(f *http2.DataFrame) error {
	size := int64(f.Length)
	c.mu.Lock()
	if c.room -= size; c.room < 0 {
		c.mu.Unlock()
		return http2.ConnectionError(http2.ErrCodeFlowControl)
	}
	s := c.streams[f.StreamID]
	if s == nil || s.gone || s.bodyOver || s.room < size {
		code, err := c.misplacedLocked(f.StreamID, s)
		c.mu.Unlock()
		c.refund(nil, size)
		if err == nil {
			c.breakOff(f.StreamID, code)
		}
		return err
	}
	s.room -= size
	kept := int64(len(f.Data()))
	if s.ended == nil && s.bodyErr == nil {
		s.body.add(f.Data())
	} else {
		kept = 0
	}
	s.got += int64(len(f.Data()))
	tooMuch := s.req.ContentLength >= 0 && s.got > s.req.ContentLength
	s.moved.Broadcast()
	c.mu.Unlock()
	c.refund(s, size-kept)
	switch {
	case tooMuch:
		c.breakOff(s.id, http2.ErrCodeProtocol)
	case f.StreamEnded():
		c.bodyEnds(s)
	}
	return nil
}

// misplacedLocked says what is wrong with data that no body has room for.
func (c *conn) misplacedLocked(id uint32, s *stream) (http2.ErrCode, error) {
	if s == nil {
		return http2.ErrCodeStreamClosed, c.knownLocked(id)
	}
	if s.gone || s.bodyOver {
		return http2.ErrCodeStreamClosed, nil
	}
	return http2.ErrCodeFlowControl, nil
}

// bodyEnds says that all of a body has come. One that is shorter than it was told to
// be must not look whole to its handler.
func (c *conn) bodyEnds(s *stream) {
	c.mu.Lock()
	short := s.req.ContentLength >= 0 && s.got != s.req.ContentLength
	s.bodyEndsLocked(short)
	c.mu.Unlock()
	if short {
		c.breakOff(s.id, http2.ErrCodeProtocol)
	}
}

func (s *stream) bodyEndsLocked(short bool) {
	s.bodyOver = true
	switch {
	case s.bodyErr != nil:
	case short:
		s.bodyErr = io.ErrUnexpectedEOF
	default:
		s.bodyErr = io.EOF
	}
	s.moved.Broadcast()
}

// refund has the client send as much more, on the connection and on the stream if
// there is one. It is told when it is worth a frame.
func (c *conn) refund(s *stream, n int64) {
	var all, own int64
	c.mu.Lock()
	if c.owed += n; c.owed >= bodyWindow/4 {
		all, c.owed = c.owed, 0
		c.room += all
	}
	if s != nil && !s.bodyOver {
		if s.owed += n; s.owed >= bodyWindow/4 {
			own, s.owed = s.owed, 0
			s.room += own
		}
	}
	c.mu.Unlock()
	if all > 0 {
		c.reply(func(w *http2.Framer) error { return w.WriteWindowUpdate(0, uint32(all)) })
	}
	if own > 0 {
		c.reply(func(w *http2.Framer) error { return w.WriteWindowUpdate(s.id, uint32(own)) })
	}
}

// body is a request's.
type body struct{ s *stream }

// Read implements [io.Reader].
func (b body) Read(p []byte) (int, error) {
	s := b.s
	if err := s.ask(); err != nil {
		return 0, err
	}
	n, err := s.readBody(p)
	s.c.refund(s, int64(n))
	return n, err
}

func (s *stream) readBody(p []byte) (int, error) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	for s.body.size == 0 {
		switch {
		case s.bodyErr != nil:
			return 0, s.bodyErr
		case s.ended != nil:
			return 0, fmt.Errorf("the body is cut short: %w", s.ended)
		case len(p) == 0:
			return 0, nil
		}
		if err := s.wait(s.readBy); err != nil {
			return 0, err
		}
	}
	return s.body.take(p), nil
}

// ask has a client go on that waits to be asked.
func (s *stream) ask() error {
	s.c.mu.Lock()
	expects := s.expects && s.ended == nil
	s.expects = false
	s.c.mu.Unlock()
	if !expects {
		return nil
	}
	return s.c.w.answer(s, http.StatusContinue, nil, nil, false)
}

// Close implements [io.Closer]. What comes later is thrown away.
func (b body) Close() error {
	b.s.c.mu.Lock()
	left := b.s.body.drop()
	if b.s.bodyErr == nil || errors.Is(b.s.bodyErr, io.EOF) {
		b.s.bodyErr = http.ErrBodyReadAfterClose
	}
	b.s.expects = false
	b.s.moved.Broadcast() // somebody may be reading
	b.s.c.mu.Unlock()
	b.s.c.refund(b.s, left)
	return nil
}
