package client

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// scanner splits a stream of JSON into values without decoding them. It finds
// where values end; whether they are valid is for who decodes them.
type scanner struct {
	from    io.Reader
	buf     []byte
	at, end int
	failed  error
	name    []byte // of the last field
}

// scanBuffer is how much is read at once of a list, watchBuffer of a watch: a program
// may have many of these, and most of them are idle.
const (
	scanBuffer  = 64 << 10
	watchBuffer = 8 << 10
)

func newScanner(from io.Reader, buffer int) *scanner {
	return &scanner{from: from, buf: make([]byte, buffer)}
}

// fill reads more once all that was read is used up.
func (s *scanner) fill() error {
	s.at, s.end = 0, 0
	for s.failed == nil && s.end == 0 {
		s.end, s.failed = s.from.Read(s.buf)
	}
	if s.end > 0 {
		return nil
	}
	return s.failed
}

// peek skips white space and returns the next byte.
func (s *scanner) peek() (byte, error) {
	for {
		for ; s.at < s.end; s.at++ {
			switch c := s.buf[s.at]; c {
			case ' ', '\t', '\n', '\r':
			default:
				return c, nil
			}
		}
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
}

// expect skips one byte that has to be c. Within a value, an end is unexpected.
func (s *scanner) expect(c byte) error {
	got, err := s.peek()
	if err != nil {
		return cut(err)
	}
	if got != c {
		return fmt.Errorf("%w: JSON: %q where %q should be", ErrMalformed, got, c)
	}
	s.at++
	return nil
}

// cut is the error for a stream that ends within a value.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// field reads the name of the next field of an object, and the colon; first says
// that none has been read yet. At the object's end, more is false.
func (s *scanner) field(first bool) (name []byte, more bool, err error) {
	c, err := s.peek()
	if err != nil {
		return nil, false, cut(err)
	}
	if c == '}' {
		s.at++
		return nil, false, nil
	}
	if !first {
		if err := s.expect(','); err != nil {
			return nil, false, err
		}
		if c, err = s.peek(); err != nil {
			return nil, false, cut(err)
		}
	}
	if c != '"' {
		return nil, false, fmt.Errorf("%w: JSON: %q where a name should be", ErrMalformed, c)
	}
	if s.name, err = s.value(s.name[:0]); err != nil {
		return nil, false, err
	}
	return s.name[1 : len(s.name)-1], true, s.expect(':')
}

// skip reads a value and drops it.
func (s *scanner) skip() error {
	var drop [512]byte
	_, err := s.scan(drop[:0], false)
	return err
}

// value appends the next value to into.
func (s *scanner) value(into []byte) ([]byte, error) { return s.scan(into, true) }

func (s *scanner) scan(into []byte, keep bool) ([]byte, error) {
	c, err := s.peek()
	if err != nil {
		return into, cut(err)
	}
	e := extent{}
	switch c {
	case '{', '[', '"':
	case '}', ']', ',', ':':
		return into, fmt.Errorf("%w: JSON: %q where a value should be", ErrMalformed, c)
	default:
		e.scalar = true
	}
	for size := 0; ; {
		n, done := e.of(s.buf[s.at:s.end])
		if keep {
			into = append(into, s.buf[s.at:s.at+n]...)
		}
		s.at += n
		if size += n; size > MaxObject {
			return into, ErrTooLarge
		}
		if done {
			return into, nil
		}
		if err := s.fill(); err != nil {
			if e.scalar && errors.Is(err, io.EOF) {
				return into, nil
			}
			return into, cut(err)
		}
	}
}

// extent finds the end of a value that may come in pieces.
type extent struct {
	depth           int
	inText, escaped bool
	scalar          bool // a number or a word, which ends where something else begins
}

// of returns how much of a piece belongs to the value.
func (e *extent) of(piece []byte) (n int, done bool) {
	if e.scalar {
		n = bytes.IndexAny(piece, ",]}: \t\r\n")
		if n < 0 {
			return len(piece), false
		}
		return n, true
	}
	for i := 0; i < len(piece); i++ {
		if e.inText {
			if i = e.text(piece, i); i == len(piece) {
				return i, false
			}
			if e.depth == 0 {
				return i + 1, true
			}
			continue
		}
		switch piece[i] {
		case '"':
			e.inText = true
		case '{', '[':
			e.depth++
		case '}', ']':
			if e.depth--; e.depth <= 0 {
				return i + 1, true
			}
		}
	}
	return len(piece), false
}

// text goes on within a string, and returns where its last quote is. If the piece
// ends before that, inText stays.
func (e *extent) text(piece []byte, i int) int {
	if e.escaped {
		e.escaped = false
		i++
	}
	for ; i < len(piece); i++ {
		if c := piece[i]; c == '"' {
			e.inText = false
			return i
		} else if c == '\\' {
			i++
		}
	}
	if i > len(piece) { // the last byte was a backslash
		e.escaped = true
	}
	return len(piece)
}

// drain reads the rest of an answer, so that its connection can be used again,
// unless there is much left.
func drain(r io.Reader) {
	_, _ = io.CopyN(io.Discard, r, scanBuffer)
}
