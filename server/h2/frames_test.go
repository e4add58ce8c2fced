package h2

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// raw is a client that can say anything.
type raw struct {
	*http2.Framer
	conn net.Conn
	t    *testing.T
}

func dialRaw(t *testing.T, s *httptest.Server) raw {
	t.Helper()
	conn, err := tls.Dial("tcp", s.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	return greet(t, conn)
}

func greet(t *testing.T, conn net.Conn) raw {
	t.Helper()
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	c := raw{http2.NewFramer(conn, conn), conn, t}
	c.must(c.WriteSettings())
	return c
}

func (c raw) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// head says that a long frame follows, and no more: what the server has not read when
// it closes would keep its last word from coming.
func (c raw) head(size uint32, kind http2.FrameType) {
	c.t.Helper()
	_, err := c.conn.Write(append(binary.BigEndian.AppendUint32(nil, size<<8|uint32(kind)), 0, 0, 0, 0, 1))
	c.must(err)
}

func (c raw) get(id uint32, end bool, fields ...string) {
	c.t.Helper()
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	all := append([]string{":method", "GET", ":scheme", "https", ":authority", "x", ":path", "/"}, fields...)
	for i := 0; i < len(all); i += 2 {
		c.must(e.WriteField(hpack.HeaderField{Name: all[i], Value: all[i+1]}))
	}
	c.must(c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndStream: end, EndHeaders: true}))
}

func (c raw) trailers(id uint32) {
	c.t.Helper()
	var block bytes.Buffer
	c.must(hpack.NewEncoder(&block).WriteField(hpack.HeaderField{Name: "x-sum", Value: "1"}))
	c.must(c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true}))
}

// until reads frames until one ends the stream or the connection, and returns its code.
func (c raw) until(id uint32) (code http2.ErrCode, reset, gone bool) {
	c.t.Helper()
	for {
		f, err := c.ReadFrame()
		switch f := f.(type) {
		case *http2.RSTStreamFrame:
			if f.StreamID == id {
				return f.ErrCode, true, false
			}
		case *http2.GoAwayFrame:
			return f.ErrCode, false, true
		case *http2.HeadersFrame:
			if f.StreamID == id && f.StreamEnded() {
				return 0, false, false
			}
		case *http2.DataFrame:
			if f.StreamID == id && f.StreamEnded() {
				return 0, false, false
			}
		}
		if err != nil {
			c.t.Fatal(err)
		}
	}
}

func TestWhatAConnectionDoesNotSurvive(t *testing.T) {
	s, _ := serve(t, echo)
	for name, tt := range map[string]struct {
		say  func(c raw)
		code http2.ErrCode
	}{
		"data of no stream":         {func(c raw) { c.must(c.WriteData(5, true, nil)) }, http2.ErrCodeProtocol},
		"an even stream":            {func(c raw) { c.get(2, true) }, http2.ErrCodeProtocol},
		"a bad even stream":         {func(c raw) { c.get(2, true, "X-Upper", "1") }, http2.ErrCodeProtocol},
		"an even stream on its own": {func(c raw) { c.must(c.WritePriority(2, http2.PriorityParam{StreamDep: 2})) }, http2.ErrCodeProtocol},
		"a window of no stream":     {func(c raw) { c.must(c.WriteWindowUpdate(7, 1)) }, http2.ErrCodeProtocol},
		"a reset of no stream":      {func(c raw) { c.must(c.WriteRSTStream(7, 0)) }, http2.ErrCodeProtocol},
		"too wide a window":         {func(c raw) { c.must(c.WriteWindowUpdate(0, 1<<31-1)) }, http2.ErrCodeFlowControl},
		"a promise":                 {func(c raw) { c.must(c.WriteRawFrame(http2.FramePushPromise, 4, 1, make([]byte, 8))) }, http2.ErrCodeProtocol},
		"a frame that is too large": {func(c raw) { c.head(20_000, http2.FrameData) }, http2.ErrCodeFrameSize},
		"bad settings": {func(c raw) {
			c.must(c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 31}))
		}, http2.ErrCodeFlowControl},
	} {
		t.Run(name, func(t *testing.T) {
			c := dialRaw(t, s)
			tt.say(c)
			if code, _, gone := c.until(99); !gone || code != tt.code {
				t.Errorf("%v, ended: %v; want %v", code, gone, tt.code)
			}
		})
	}
}

func TestWhatAStreamDoesNotSurvive(t *testing.T) {
	s, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Wait") != "" {
			<-r.Context().Done()
		}
		echo(w, r)
	})
	for name, tt := range map[string]struct {
		say  func(c raw)
		code http2.ErrCode
	}{
		"a bad path":             {func(c raw) { c.get(1, true, ":path", "x") }, http2.ErrCodeProtocol},
		"too long a body":        {func(c raw) { c.get(1, false, "content-length", "1"); c.must(c.WriteData(1, true, []byte("xx"))) }, http2.ErrCodeProtocol},
		"too short a body":       {func(c raw) { c.get(1, false, "content-length", "3"); c.must(c.WriteData(1, true, []byte("xx"))) }, http2.ErrCodeProtocol},
		"a second request":       {func(c raw) { c.get(1, true, "x-wait", "1"); c.get(1, true) }, http2.ErrCodeStreamClosed},
		"a request for trailers": {func(c raw) { c.get(1, false); c.get(1, true) }, http2.ErrCodeProtocol},
		"a bad length":           {func(c raw) { c.get(1, true, "content-length", "3") }, http2.ErrCodeProtocol},
		"too wide a window": {func(c raw) { c.get(1, false); c.must(c.WriteWindowUpdate(1, 1<<31-1)) },
			http2.ErrCodeFlowControl},
	} {
		t.Run(name, func(t *testing.T) {
			c := dialRaw(t, s)
			tt.say(c)
			if code, reset, _ := c.until(1); !reset || code != tt.code {
				t.Errorf("%v, reset: %v; want %v", code, reset, tt.code)
			}
			c.get(3, true)
			if code, reset, gone := c.until(3); reset || gone {
				t.Errorf("the next stream: %v", code)
			}
		})
	}
}

// A client that has cancelled would take an end for one that came before.
func TestNothingIsSentOnAStreamThatWasReset(t *testing.T) {
	s, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		if r.Header.Get("X-Wait") != "" {
			<-r.Context().Done()
		}
	})
	c := dialRaw(t, s)
	c.get(1, true, "x-wait", "1")
	for id := uint32(1); id < 5; {
		f, err := c.ReadFrame()
		c.must(err)
		switch f := f.(type) {
		case *http2.HeadersFrame:
			if id = f.StreamID; id == 1 {
				c.must(c.WriteRSTStream(1, http2.ErrCodeCancel))
				c.get(3, true) // the answer shows that the reset has been read
			}
			if id == 3 {
				c.get(5, true)
			}
		case *http2.DataFrame, *http2.RSTStreamFrame:
			if f.Header().StreamID == 1 {
				t.Fatal(f)
			}
		}
	}
}

func TestRequestsAreLimited(t *testing.T) {
	for name, tt := range map[string]struct {
		requests int
		back     bool // they are taken back, and their handlers run on
	}{
		"that are open":      {100, false},
		"whose handlers run": {200, true},
	} {
		t.Run(name, func(t *testing.T) {
			release := make(chan struct{})
			defer close(release)
			s, _ := serve(t, func(http.ResponseWriter, *http.Request) { <-release })
			c := dialRaw(t, s)
			id := uint32(1)
			for range tt.requests {
				c.get(id, true)
				if tt.back {
					c.must(c.WriteRSTStream(id, http2.ErrCodeCancel))
				}
				id += 2
			}
			c.get(id, true)
			if code, reset, _ := c.until(id); !reset || code != http2.ErrCodeRefusedStream {
				t.Errorf("one too many: %v", code)
			}
		})
	}
}

// A client may wait to be read from before it reads.
func TestTheServerReadsOnWhileItsClientDoesNot(t *testing.T) {
	reached := make(chan struct{})
	s, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Last") != "" {
			close(reached)
			return
		}
		for {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	})
	c := dialRaw(t, s)
	c.must(c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: maxWindow}))
	c.must(c.WriteWindowUpdate(0, maxWindow-firstWindow))
	for id := uint32(1); id < 9; id += 2 {
		c.get(id, true)
	}
	for range 100 {
		c.must(c.WritePing(false, [8]byte{}))
		c.must(c.WriteSettings(http2.Setting{ID: http2.SettingHeaderTableSize, Val: 100}))
	}
	c.get(9, true, "x-last", "1")
	select {
	case <-reached:
	case <-time.After(20 * time.Second):
		t.Error("a request was not read")
	}
}

// A client makes its request elsewhere if it is told that it was not looked at.
func TestAServerThatStopsSaysSoToNewClients(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(echo))
	s.EnableHTTP2 = true
	h := &server{requests: 100, conns: map[*conn]struct{}{}, stopping: true}
	s.Config.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){"h2": h.serve}
	s.StartTLS()
	t.Cleanup(s.Close)
	c := dialRaw(t, s)
	c.get(1, true)
	f, err := c.ReadFrame()
	if c.must(err); f.Header().Type != http2.FrameSettings {
		t.Fatal(f)
	}
	for err == nil {
		if g, ok := f.(*http2.GoAwayFrame); ok {
			if g.LastStreamID != 0 || g.ErrCode != http2.ErrCodeNo {
				t.Error(g)
			}
			return
		}
		f, err = c.ReadFrame()
	}
	t.Error(err)
}

// On a pipe, each end waits until the other reads.
func TestTheServerReadsOnWhileItSaysWhyItEnds(t *testing.T) {
	near, far := net.Pipe()
	conns := make(chan net.Conn, 1)
	conns <- far
	s := httptest.NewUnstartedServer(http.HandlerFunc(echo))
	s.EnableHTTP2 = true
	s.Listener = pipes{s.Listener, conns}
	Configure(s.Config, 100)
	s.StartTLS()
	t.Cleanup(s.Close)
	c := greet(t, tls.Client(near, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}))
	f, err := c.ReadFrame()
	for ; err == nil && f.Header().Type != http2.FrameWindowUpdate; f, err = c.ReadFrame() {
	}
	c.must(err)
	f, err = c.ReadFrame() // the acknowledgement of the settings is the last that is due
	if c.must(err); f.Header().Type != http2.FrameSettings {
		t.Fatal(f)
	}
	c.get(2, true)
	for range 3 {
		c.must(c.WritePing(false, [8]byte{}))
	}
	if code, _, gone := c.until(99); !gone || code != http2.ErrCodeProtocol {
		t.Errorf("%v, %v", code, gone)
	}
}

// pipes is a listener of connections that there are.
type pipes struct {
	net.Listener
	conns <-chan net.Conn
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	default:
		return p.Listener.Accept()
	}
}

func TestAClientThatReadsNoRepliesIsLeft(t *testing.T) {
	s, _ := serve(t, echo)
	c := dialRaw(t, s)
	for range 10_000_000 {
		if err := c.WritePing(false, [8]byte{}); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the server neither reads nor ends the connection")
			}
			return
		}
	}
	t.Error("the server keeps replies without bound")
}

func TestSmallWindowsAndSettings(t *testing.T) {
	s, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 10)) })
	c := dialRaw(t, s)
	c.must(c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}))
	c.get(1, true)
	got, headers := 0, false
	for got < 10 {
		f, err := c.ReadFrame()
		c.must(err)
		switch f := f.(type) {
		case *http2.HeadersFrame:
			headers = true
			c.must(c.WriteWindowUpdate(1, 3))
		case *http2.DataFrame:
			if got += len(f.Data()); got == 3 {
				c.must(c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 100}))
			}
		}
	}
	if !headers || got != 10 {
		t.Errorf("%d bytes", got)
	}
}

func TestPingIsAnswered(t *testing.T) {
	s, _ := serve(t, echo)
	c := dialRaw(t, s)
	c.must(c.WritePing(false, [8]byte{1, 2, 3}))
	for {
		f, err := c.ReadFrame()
		c.must(err)
		if p, ok := f.(*http2.PingFrame); ok {
			if !p.IsAck() || p.Data != [8]byte{1, 2, 3} {
				t.Errorf("%v", p)
			}
			return
		}
	}
}

func TestAnIdleConnectionEnds(t *testing.T) {
	s, _ := serve(t, echo, func(s *http.Server) { s.IdleTimeout = 20 * time.Millisecond })
	c := dialRaw(t, s)
	if code, _, gone := c.until(99); !gone || code != http2.ErrCodeNo {
		t.Errorf("%v, %v", code, gone)
	}
	if _, err := c.ReadFrame(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}
