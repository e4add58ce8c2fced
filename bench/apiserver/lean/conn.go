// Package lean is an HTTP/1.1 client over TLS for load generators. Requests are
// bytes that the caller has made before; of answers it reads status and length,
// and throws the body away but for its beginning. It allocates nothing on the way.
package lean

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

// ErrProtocol is wrapped by errors of answers that cannot be understood.
var ErrProtocol = errors.New("not the HTTP/1.1 that a server should speak")

// Conn is a connection that is kept alive. One goroutine uses it at a time.
type Conn struct {
	tls  *tls.Conn
	in   []byte // in[r:w] is read and not yet taken
	r, w int
	body []byte // the beginning of the last body
	// decrypted counts all that was read.
	decrypted int64
}

// Answer is what came back.
type Answer struct {
	Status int
	// Bytes is the length of the body, Body its first 16 KiB; the latter is good
	// until the next call.
	Bytes int64
	Body  []byte
}

const bodyKept = 16 << 10

// Dial connects; the connection reads up to buffer bytes from the system at once.
func Dial(ctx context.Context, address string, config *tls.Config, buffer int) (*Conn, error) {
	var dialer net.Dialer
	plain, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	c := tls.Client(&buffered{Conn: plain, in: make([]byte, buffer)}, config)
	if err := c.HandshakeContext(ctx); err != nil {
		_ = plain.Close()
		return nil, fmt.Errorf("TLS handshake with %s: %w", address, err)
	}
	return &Conn{tls: c, in: make([]byte, max(buffer, bodyKept)), body: make([]byte, 0, bodyKept)}, nil
}

// Close ends the connection; a call under way fails.
func (c *Conn) Close() error { return c.tls.NetConn().Close() }

// SetDeadline is when calls fail that are not done; the zero time is never. It
// may be called while another goroutine is in a call.
func (c *Conn) SetDeadline(t time.Time) error { return c.tls.NetConn().SetDeadline(t) }

// Do sends a request and reads the whole answer.
func (c *Conn) Do(request []byte) (Answer, error) {
	h, err := c.send(request)
	if err != nil {
		return Answer{}, err
	}
	a := Answer{Status: h.status}
	if h.chunked {
		a.Bytes, err = c.readChunks()
	} else {
		a.Bytes, err = h.length, c.readLength(h.length)
	}
	a.Body = c.body
	return a, err
}

func (c *Conn) send(request []byte) (head, error) {
	c.body = c.body[:0]
	if _, err := c.tls.Write(request); err != nil {
		return head{}, err
	}
	return c.readHead()
}

func (c *Conn) readLength(left int64) error {
	for {
		n := min(left, int64(c.w-c.r))
		c.keep(c.in[c.r : c.r+int(n)])
		c.r += int(n)
		if left -= n; left == 0 {
			return nil
		}
		if err := c.fill(); err != nil {
			return err
		}
	}
}

func (c *Conn) readChunks() (total int64, err error) {
	var frames chunks
	for {
		payload, rest, done, err := frames.next(c.in[c.r:c.w])
		c.r = c.w - len(rest)
		if err != nil || done {
			return total, err
		}
		c.keep(payload)
		total += int64(len(payload))
		if len(rest) == 0 {
			if err := c.fill(); err != nil {
				return total, err
			}
		}
	}
}

func (c *Conn) keep(p []byte) {
	c.body = append(c.body, p[:min(len(p), cap(c.body)-len(c.body))]...)
}

// fill reads more, after what is there.
func (c *Conn) fill() error {
	if c.r == c.w {
		c.r, c.w = 0, 0
	}
	if c.w == len(c.in) {
		return fmt.Errorf("%w: a head of over %d bytes", ErrProtocol, len(c.in))
	}
	n, err := c.tls.Read(c.in[c.w:])
	c.w += n
	c.decrypted += int64(n)
	if n > 0 {
		return nil
	}
	return err
}

// head is what is needed of an answer's head.
type head struct {
	status  int
	length  int64
	chunked bool
}

var (
	headEnd   = []byte("\r\n\r\n")
	lengthKey = []byte("\r\nContent-Length: ")
	chunkKey  = []byte("\r\nTransfer-Encoding: chunked\r\n")
)

func (c *Conn) readHead() (head, error) {
	for {
		if i := bytes.Index(c.in[c.r:c.w], headEnd); i >= 0 {
			text := c.in[c.r : c.r+i+2]
			c.r += i + len(headEnd)
			return parseHead(text)
		}
		if err := c.fill(); err != nil {
			return head{}, err
		}
	}
}

// parseHead wants the header names as Go's servers write them.
func parseHead(text []byte) (head, error) {
	const statusAt = len("HTTP/1.1 ")
	if len(text) < statusAt+3 || !bytes.HasPrefix(text, []byte("HTTP/1.1 ")) {
		return head{}, fmt.Errorf("%w: %q", ErrProtocol, text)
	}
	status, err := strconv.Atoi(string(text[statusAt : statusAt+3]))
	if err != nil {
		return head{}, fmt.Errorf("%w: %q", ErrProtocol, text)
	}
	h := head{status: status, chunked: bytes.Contains(text, chunkKey)}
	if h.chunked {
		return h, nil
	}
	_, after, found := bytes.Cut(text, lengthKey)
	number, _, _ := bytes.Cut(after, headEnd[:2])
	if h.length, err = strconv.ParseInt(string(number), 10, 64); !found || err != nil || h.length < 0 {
		return head{}, fmt.Errorf("%w: an answer without a length: %q", ErrProtocol, text)
	}
	return h, nil
}

// buffered reads from the system in large pieces, for TLS asks for small ones. With
// a tape it reads from there, and the connection is closed.
type buffered struct {
	net.Conn
	in   []byte
	r, w int
	tape *Tape
}

func (b *buffered) Read(p []byte) (int, error) {
	if b.tape != nil {
		return b.tape.play(p)
	}
	if b.r == b.w {
		if len(p) >= len(b.in) {
			return b.Conn.Read(p)
		}
		n, err := b.Conn.Read(b.in)
		if b.r, b.w = 0, n; n == 0 {
			return 0, err
		}
	}
	n := copy(p, b.in[b.r:b.w])
	b.r += n
	return n, nil
}

func (b *buffered) Write(p []byte) (int, error) {
	if b.tape != nil {
		return b.tape.write(p)
	}
	return b.Conn.Write(p)
}

func (b *buffered) Close() error {
	if b.tape != nil {
		return b.tape.close()
	}
	return b.Conn.Close()
}

// SetDeadline does nothing to a tape, which never waits.
func (b *buffered) SetDeadline(t time.Time) error {
	if b.tape != nil {
		return nil
	}
	return b.Conn.SetDeadline(t)
}
