package lean

import (
	"bytes"
	"fmt"
	"io"
)

// Stream is an answer that goes on, of one line an event. Its lines are counted by
// Lines, or read by Read.
type Stream struct {
	conn   *Conn
	frames chunks
	left   []byte // of a piece that Read has begun
}

// Stream sends a request and reads the head of its answer, which must be 200 and
// without an end. The connection serves nothing else from then on.
func (c *Conn) Stream(request []byte) (*Stream, error) {
	h, err := c.send(request)
	if err != nil {
		return nil, err
	}
	if h.status != 200 || !h.chunked {
		return nil, fmt.Errorf("%w: status %d for a stream", ErrProtocol, h.status)
	}
	return &Stream{conn: c}, nil
}

// Lines blocks until something comes, and returns how many lines ended in it;
// that may be none. When the server ends the stream it returns [io.EOF].
func (s *Stream) Lines() (int, error) {
	c := s.conn
	if c.r == c.w {
		if err := c.fill(); err != nil {
			return 0, err
		}
	}
	lines := 0
	for c.r < c.w {
		payload, rest, done, err := s.frames.next(c.in[c.r:c.w])
		c.r = c.w - len(rest)
		if done && err == nil {
			err = io.EOF
		}
		lines += bytes.Count(payload, []byte{'\n'})
		if err != nil {
			return lines, err
		}
	}
	return lines, nil
}

// Read reads what the server sends, without its framing.
func (s *Stream) Read(p []byte) (int, error) {
	c := s.conn
	for len(s.left) == 0 {
		if c.r == c.w {
			if err := c.fill(); err != nil {
				return 0, err
			}
		}
		payload, rest, done, err := s.frames.next(c.in[c.r:c.w])
		c.r = c.w - len(rest)
		if done && err == nil {
			err = io.EOF
		}
		if err != nil {
			return 0, err
		}
		s.left = payload
	}
	n := copy(p, s.left)
	s.left = s.left[n:]
	return n, nil
}
