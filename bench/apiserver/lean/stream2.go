package lean

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Stream2 is a Stream over HTTP/2, which Kubernetes' own clients speak. It has its
// connection for itself, and windows that never close.
type Stream2 struct {
	conn *Conn
	// Of the frame that is being read: its header, as far as it has come, and how
	// much of its payload is left.
	head  [9]byte
	have  int
	left  int
	small []byte // the payload, unless it is data
	ready bool   // the answer's head has come
	early int    // lines that came with it
}

// Stream2 asks for a path and waits for the head of the answer, which must be
// 200. The connection must have agreed on HTTP/2 and be new.
func (c *Conn) Stream2(path, accept string) (*Stream2, error) {
	if p := c.tls.ConnectionState().NegotiatedProtocol; p != http2.NextProtoTLS {
		return nil, fmt.Errorf("%w: the server chose %q", ErrProtocol, p)
	}
	if _, err := c.tls.Write(appendOpening(nil, path, accept)); err != nil {
		return nil, err
	}
	s := &Stream2{conn: c}
	for !s.ready {
		n, err := s.Lines()
		if err != nil {
			return nil, err
		}
		s.early += n
	}
	return s, nil
}

// appendOpening makes all that the client has to say.
func appendOpening(dst []byte, path, accept string) []byte {
	out := bytes.NewBuffer(append(dst, http2.ClientPreface...))
	f := http2.NewFramer(out, nil)
	var fields bytes.Buffer
	e := hpack.NewEncoder(&fields)
	for _, h := range [][2]string{
		{":method", "GET"}, {":scheme", "https"}, {":authority", "127.0.0.1"}, {":path", path},
		{"accept", accept}, {"user-agent", "bench"},
	} {
		_ = e.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}) // to memory
	}
	_ = f.WriteSettings(
		http2.Setting{ID: http2.SettingEnablePush, Val: 0},
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1<<31 - 1},
	)
	_ = f.WriteWindowUpdate(0, 1<<31-1-65535)
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: fields.Bytes(), EndStream: true, EndHeaders: true})
	return out.Bytes()
}

// Lines is like [Stream.Lines].
func (s *Stream2) Lines() (int, error) {
	c := s.conn
	lines := s.early
	if s.early = 0; lines > 0 {
		return lines, nil
	}
	if c.r == c.w {
		if err := c.fill(); err != nil {
			return 0, err
		}
	}
	for c.r < c.w {
		n, err := s.take(c.in[c.r:c.w], &lines)
		c.r += n
		if err != nil {
			return lines, err
		}
	}
	return lines, nil
}

// take reads a part of a frame and returns how long it was.
func (s *Stream2) take(in []byte, lines *int) (int, error) {
	if s.have < len(s.head) {
		n := copy(s.head[s.have:], in)
		if s.have += n; s.have == len(s.head) {
			s.left = int(s.head[0])<<16 | int(s.head[1])<<8 | int(s.head[2])
			s.small = s.small[:0]
			if s.left == 0 {
				return n, s.done()
			}
		}
		return n, nil
	}
	n := min(len(in), s.left)
	if s.kind() == http2.FrameData {
		*lines += bytes.Count(in[:n], []byte{'\n'})
	} else {
		s.small = append(s.small, in[:n]...)
	}
	if s.left -= n; s.left == 0 {
		return n, s.done()
	}
	return n, nil
}

func (s *Stream2) kind() http2.FrameType { return http2.FrameType(s.head[3]) }

func (s *Stream2) flags() http2.Flags { return http2.Flags(s.head[4]) }

// done acts on a frame that is complete.
func (s *Stream2) done() error {
	s.have = 0
	switch s.kind() {
	case http2.FrameData:
		if s.flags().Has(http2.FlagDataEndStream) {
			return io.EOF
		}
	case http2.FrameHeaders:
		return s.answered()
	case http2.FrameSettings:
		if !s.flags().Has(http2.FlagSettingsAck) {
			return s.answer(http2.FrameSettings, nil)
		}
	case http2.FramePing:
		if !s.flags().Has(http2.FlagPingAck) {
			return s.answer(http2.FramePing, s.small)
		}
	case http2.FrameRSTStream, http2.FrameGoAway:
		return errors.New("the server broke the stream off")
	}
	return nil
}

// answer acknowledges a frame; both kinds do so with flag 1.
func (s *Stream2) answer(kind http2.FrameType, payload []byte) error {
	frame := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	frame = append(frame, 1, 0, 0, 0, 0)
	_, err := s.conn.tls.Write(append(frame, payload...))
	return err
}

func (s *Stream2) answered() error {
	status := ""
	_, err := hpack.NewDecoder(4096, func(f hpack.HeaderField) {
		if f.Name == ":status" {
			status = f.Value
		}
	}).Write(s.small)
	if err != nil || (!s.ready && status != "200") {
		return fmt.Errorf("%w: status %q for a stream: %w", ErrProtocol, status, errors.Join(err))
	}
	s.ready = true
	return nil
}
