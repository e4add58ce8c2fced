package lean

import "fmt"

// chunks takes the framing off a body of HTTP/1.1 chunks, a piece at a time.
type chunks struct {
	state chunkState
	size  int64 // of the chunk: what is left of it, or what is read of its number
	empty bool  // of the line under way
}

type chunkState int

const (
	chunkSize chunkState = iota
	chunkExtension
	chunkData
	chunkEnd // the line break after the data
	chunkTrailer
)

// next returns the first piece of payload in p and what follows it. done is true
// at the body's end; without payload all of p is used up.
func (c *chunks) next(p []byte) (payload, rest []byte, done bool, err error) {
	for i := 0; i < len(p); i++ {
		if c.state == chunkData {
			n := min(c.size, int64(len(p)-i))
			if c.size -= n; c.size == 0 {
				c.state = chunkEnd
			}
			return p[i : i+int(n)], p[i+int(n):], false, nil
		}
		if done, err := c.framing(p[i]); done || err != nil {
			return nil, p[i+1:], done, err
		}
	}
	return nil, nil, false, nil
}

// maxChunk bounds what a peer may announce.
const maxChunk = 1 << 40

// framing takes one byte that is no data.
func (c *chunks) framing(b byte) (done bool, err error) {
	switch c.state {
	case chunkSize:
		return false, c.digit(b)
	case chunkExtension:
		if b == '\n' {
			c.begin()
		}
	case chunkEnd:
		if b == '\n' {
			c.state, c.size = chunkSize, 0
		}
	case chunkTrailer:
		switch {
		case b == '\n' && c.empty:
			return true, nil
		case b == '\n':
			c.empty = true
		case b != '\r':
			c.empty = false
		}
	}
	return false, nil
}

func (c *chunks) digit(b byte) error {
	switch {
	case b >= '0' && b <= '9':
		c.size = c.size<<4 | int64(b-'0')
	case b|0x20 >= 'a' && b|0x20 <= 'f':
		c.size = c.size<<4 | int64(b|0x20-'a'+10)
	case b == '\n':
		c.begin()
	case b == ';' || b == '\r' || b == ' ':
		c.state = chunkExtension
	default:
		return fmt.Errorf("%w: byte %q in the size of a chunk", ErrProtocol, b)
	}
	if c.size > maxChunk {
		return fmt.Errorf("%w: a chunk of %d bytes", ErrProtocol, c.size)
	}
	return nil
}

// begin starts the data of a chunk; one of no size is the last.
func (c *chunks) begin() {
	if c.size > 0 {
		c.state = chunkData
		return
	}
	c.state, c.empty = chunkTrailer, true
}
