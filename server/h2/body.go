package h2

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"golang.org/x/net/http2"
)

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

// backlog is what of a body has come and has not been read. Its memory is used again.
type backlog struct {
	pieces []*[]byte
	read   int // of the first piece
	size   int
}

var pieces = sync.Pool{New: func() any { p := make([]byte, 0, frameSize); return &p }}

func (b *backlog) add(p []byte) {
	b.size += len(p)
	for len(p) > 0 {
		if n := len(b.pieces); n == 0 || len(*b.pieces[n-1]) == frameSize {
			b.pieces = append(b.pieces, pieces.Get().(*[]byte))
		}
		last := b.pieces[len(b.pieces)-1]
		n := min(len(p), frameSize-len(*last))
		*last = append(*last, p[:n]...)
		p = p[n:]
	}
}

// take moves as much as there is to p.
func (b *backlog) take(p []byte) (n int) {
	for len(p) > n && b.size > 0 {
		m := copy(p[n:], (*b.pieces[0])[b.read:])
		n, b.read, b.size = n+m, b.read+m, b.size-m
		if b.read == len(*b.pieces[0]) {
			b.dropFirst()
		}
	}
	return n
}

// drop forgets all, and returns how much that was.
func (b *backlog) drop() (n int64) {
	n, b.size = int64(b.size), 0
	for len(b.pieces) > 0 {
		b.dropFirst()
	}
	return n
}

func (b *backlog) dropFirst() {
	first := b.pieces[0]
	b.pieces[0] = nil
	b.pieces, b.read = b.pieces[1:], 0
	*first = (*first)[:0]
	pieces.Put(first)
}
