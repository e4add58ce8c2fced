package h2

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// FuzzConn: whatever a client says, all its handlers return when it has gone, nothing
// of their bodies is left, and others are answered.
func FuzzConn(f *testing.F) {
	for _, seed := range conversations() {
		f.Add(true, seed)
		f.Add(false, seed)
	}
	served := make(chan *conn)
	s := httptest.NewUnstartedServer(http.HandlerFunc(various))
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Config.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){
		"h2": func(hs *http.Server, t *tls.Conn, h http.Handler) {
			c := newConn(hs, t, h, 4)
			c.run(context.Background())
			served <- c
		},
	}
	s.StartTLS()
	f.Cleanup(s.Close)
	f.Fuzz(func(t *testing.T, reads bool, said []byte) {
		c := dialRaw(t, s)
		converse(c, reads, said)
		checkOver(t, ended(t, served))

		c = dialRaw(t, s)
		c.get(1, true)
		if code, reset, gone := c.until(1); reset || gone {
			t.Errorf("the next client got %v", code)
		}
		_ = c.conn.Close()
		checkOver(t, ended(t, served))
	})
}

// various answers in the way that is asked for.
func various(w http.ResponseWriter, r *http.Request) {
	switch r.Header.Get("X-Way") {
	case "long":
		_, _ = w.Write(make([]byte, 100_000))
	case "wait":
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	case "close":
		_ = r.Body.Close()
		_, _ = io.WriteString(w, "closed")
	case "panic":
		panic(http.ErrAbortHandler)
	case "leave":
	default:
		echo(w, r)
	}
}

var ways = []string{"echo", "long", "wait", "close", "panic", "leave"}

func ended(t *testing.T, served chan *conn) *conn {
	t.Helper()
	select {
	case c := <-served:
		return c
	case <-time.After(20 * time.Second):
		t.Fatal("the connection goes on without its client")
		return nil
	}
}

// checkOver checks that a connection's counts are as in the beginning.
func checkOver(t *testing.T, c *conn) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open != 0 || len(c.streams) != 0 {
		t.Errorf("%d are open of %d streams", c.open, len(c.streams))
	}
	if left := bodyWindow - c.room - c.owed; c.room >= 0 && left != 0 {
		t.Errorf("%d bytes were not given back", left)
	}
}

// converse says all that it can until the server closes, and goes.
func converse(c raw, reads bool, said []byte) {
	conn := c.conn.(*tls.Conn)
	defer func() { _ = conn.Close() }()
	c.AllowIllegalWrites = true
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		if reads {
			_, _ = io.Copy(io.Discard, conn)
		}
	}()
	s := newScript(c.Framer, said)
	for len(s.rest) > 0 && s.next() == nil {
	}
	_ = conn.CloseWrite()
	<-heard
}

// script is what a client says: a byte tells what kind of frame comes next, and
// those after it what is in it.
type script struct {
	*http2.Framer
	rest  []byte
	block bytes.Buffer
	table *hpack.Encoder
}

func newScript(f *http2.Framer, said []byte) *script {
	s := &script{Framer: f, rest: said}
	s.table = hpack.NewEncoder(&s.block)
	return s
}

// take returns n bytes, or as many as there are.
func (s *script) take(n int) []byte {
	n = min(n, len(s.rest))
	p := s.rest[:n]
	s.rest = s.rest[n:]
	return p
}

// one is the next byte.
func (s *script) one() int {
	if p := s.take(1); len(p) == 1 {
		return int(p[0])
	}
	return 0
}

// number is a small one, or one near a power of two.
func (s *script) number() uint32 {
	n := s.one()
	if n < 128 {
		return uint32(n)
	}
	return uint32(1)<<(n%32) - uint32(n>>5&1)
}

func (s *script) id() uint32 { return uint32(s.one() % 16) }

const (
	sayRequest = iota
	sayData
	sayPadded
	sayReset
	saySettings
	sayWindow
	sayPing
	sayPriority
	sayTrailers
	sayContinuation
	sayFrame
	sayAnything
	kindsOfFrames
)

func (s *script) next() error {
	switch s.one() % kindsOfFrames {
	case sayRequest:
		return s.request(s.id(), s.one(), s.one())
	case sayData:
		return s.WriteData(s.id(), s.one()%2 == 1, make([]byte, s.one()<<6))
	case sayPadded:
		return s.WriteDataPadded(s.id(), s.one()%2 == 1, make([]byte, s.one()), make([]byte, s.one()))
	case sayReset:
		return s.WriteRSTStream(s.id(), http2.ErrCode(s.one()))
	case saySettings:
		return s.WriteSettings(http2.Setting{ID: http2.SettingID(s.one() % 8), Val: s.number()},
			http2.Setting{ID: http2.SettingID(s.one() % 8), Val: s.number()})
	case sayWindow:
		return s.WriteWindowUpdate(s.id(), s.number())
	case sayPing:
		return s.WritePing(s.one()%2 == 1, [8]byte{})
	case sayPriority:
		return s.WritePriority(s.id(), http2.PriorityParam{StreamDep: s.id()})
	case sayTrailers:
		return s.trailers(s.id(), s.one())
	case sayContinuation:
		return s.WriteContinuation(s.id(), s.one()%2 == 1, s.take(s.one()))
	case sayFrame:
		return s.WriteRawFrame(http2.FrameType(s.one()%18), http2.Flags(s.one()), s.id(), s.take(s.one()))
	default:
		return s.WriteRawFrame(http2.FrameType(s.one()), http2.Flags(s.one()), s.number(), make([]byte, s.one()<<8))
	}
}

// request asks for an answer in some way; how tells whether the header is right, and
// whether a body follows.
func (s *script) request(id uint32, way, how int) error {
	fields := []string{":method", "POST", ":scheme", "https", ":path", "/", ":authority", "x", "x-way", ways[way%len(ways)]}
	if how&2 != 0 {
		fields = append(fields, "expect", "100-continue")
	}
	if how&4 != 0 {
		fields = append(fields, "content-length", "64")
	}
	if how&56 == 56 {
		fields = fields[how>>6:] // not whole
	}
	return s.headers(id, how&1 != 0, fields)
}

func (s *script) trailers(id uint32, how int) error {
	return s.headers(id, how&1 != 0, []string{"x-sum", "1"})
}

func (s *script) headers(id uint32, end bool, fields []string) error {
	s.block.Reset()
	for i := 0; i+1 < len(fields); i += 2 {
		_ = s.table.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}) // to memory
	}
	return s.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: s.block.Bytes(), EndStream: end, EndHeaders: true})
}

// conversations are some that come to each part of the server.
func conversations() [][]byte {
	return [][]byte{
		{},
		{sayRequest, 1, 0, 1},
		{sayRequest, 1, 0, 0, sayData, 1, 0, 255, sayPadded, 1, 1, 100, 200},
		{sayRequest, 1, 0, 6, sayData, 1, 1, 1},
		{sayRequest, 1, 0, 4, sayData, 1, 1, 2},
		{sayRequest, 1, 1, 1, sayWindow, 0, 144, sayWindow, 1, 144, sayWindow, 1, 159, sayWindow, 1, 159},
		{sayRequest, 1, 2, 1, sayReset, 1, 8, sayRequest, 3, 2, 0, sayReset, 3, 8, sayData, 3, 1, 9},
		{sayRequest, 1, 2, 1, sayRequest, 3, 2, 1, sayRequest, 5, 2, 1, sayRequest, 7, 2, 1, sayRequest, 9, 2, 1},
		{saySettings, 4, 0, 1, 0, sayRequest, 1, 1, 1, saySettings, 4, 127, 4, 144, sayPing, 0},
		{sayRequest, 1, 3, 0, sayData, 1, 0, 255, sayData, 1, 0, 255, sayTrailers, 1, 1},
		{sayRequest, 1, 5, 0, sayData, 1, 0, 255, sayData, 1, 1, 255, sayRequest, 3, 4, 1},
		{sayRequest, 1, 0, 0, sayTrailers, 1, 0, sayRequest, 3, 0, 255},
		{sayPriority, 3, 3, sayRequest, 2, 0, 1},
		{sayContinuation, 1, 1, 0},
		{sayFrame, 7, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0},
		{sayAnything, 0, 0, 1, 255, sayRequest, 1, 0, 1},
	}
}
