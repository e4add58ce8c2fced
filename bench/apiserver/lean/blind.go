package lean

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"net"
)

// Blind sends one request again and again, and finds the end of each answer
// without decrypting it: TLS records show their length, and all answers are as
// long as the first. Where answers are large this costs a third of reading them.
//
// An answer of another length, an error for example, is noticed: it is too long,
// or its end never comes, and the connection's deadline passes.
type Blind struct {
	tls     *tls.Conn // for writing only
	wire    net.Conn
	request []byte
	first   Answer
	length  int64 // of an answer with its head, decrypted
	in      []byte
	r, w    int
}

// Blind sends a request twice, reads both answers as [Conn.Do] does, and returns
// what repeats it. The connection serves nothing else from then on.
func (c *Conn) Blind(request []byte) (*Blind, error) {
	var lengths [2]int64
	var first Answer
	for i := range lengths {
		before := c.decrypted
		a, err := c.Do(request)
		if err != nil {
			return nil, err
		}
		first, lengths[i] = a, c.decrypted-before
	}
	below, ok := c.tls.NetConn().(*buffered)
	switch {
	case !ok || c.r != c.w || below.r != below.w:
		return nil, fmt.Errorf("%w: there is more after an answer", ErrProtocol)
	case c.tls.ConnectionState().Version != tls.VersionTLS13:
		return nil, fmt.Errorf("%w: not TLS 1.3", ErrProtocol)
	case lengths[0] != lengths[1]:
		return nil, fmt.Errorf("%w: answers of %d and %d bytes to one request", ErrProtocol, lengths[0], lengths[1])
	}
	return &Blind{tls: c.tls, wire: below.Conn, request: request, first: first, length: lengths[0], in: below.in}, nil
}

// First is an answer as it was read, without its body.
func (b *Blind) First() Answer { return Answer{Status: b.first.Status, Bytes: b.first.Bytes} }

// A record of TLS 1.3 begins with its type, a version and its length; the end of
// what is encrypted is a type again and the tag.
const (
	recordHead     = 5
	recordOverhead = 1 + 16
	recordData     = 23
)

// Do sends the request and skips the answer.
func (b *Blind) Do() error {
	if _, err := b.tls.Write(b.request); err != nil {
		return err
	}
	for got := int64(0); got < b.length; {
		n, err := b.record()
		if err != nil {
			return err
		}
		if got += n; got > b.length {
			return fmt.Errorf("%w: an answer of more than %d bytes", ErrProtocol, b.length)
		}
	}
	return nil
}

// record skips one record and returns the length of its data.
func (b *Blind) record() (int64, error) {
	for b.w-b.r < recordHead {
		if err := b.fill(); err != nil {
			return 0, err
		}
	}
	head := b.in[b.r : b.r+recordHead]
	length := int(binary.BigEndian.Uint16(head[3:]))
	if head[0] != recordData || length < recordOverhead {
		return 0, fmt.Errorf("%w: a TLS record that begins with % x", ErrProtocol, head)
	}
	b.r += recordHead
	for left := length; left > 0; {
		if b.r == b.w {
			if err := b.fill(); err != nil {
				return 0, err
			}
		}
		n := min(left, b.w-b.r)
		b.r, left = b.r+n, left-n
	}
	return int64(length - recordOverhead), nil
}

// fill reads more; what is left, at most a part of a record's head, goes first.
func (b *Blind) fill() error {
	b.r, b.w = 0, copy(b.in, b.in[b.r:b.w])
	n, err := b.wire.Read(b.in[b.w:])
	if b.w += n; n > 0 {
		return nil
	}
	return err
}
