package h2

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	// bodyWindow is how much of a body a client may send ahead, on a stream and on a
	// connection: what a connection keeps of bodies at most.
	bodyWindow = 1 << 20
	// firstWindow is a window that nobody has spoken of, frameSize such a frame.
	firstWindow = 64<<10 - 1
	frameSize   = 16 << 10
	tableSize   = 4 << 10
)

// conn is a connection. Its run reads; handlers write.
type conn struct {
	http     *http.Server
	tls      *tls.Conn
	state    tls.ConnectionState
	handler  http.Handler
	requests int
	read     *http2.Framer
	running  sync.WaitGroup // handlers, and who sends replies
	w        writer

	// mu guards what follows, and the streams. It is not held while something is sent.
	mu      sync.Mutex
	streams map[uint32]*stream // whose handlers run
	open    int                // of them for which the client waits
	last    uint32             // the newest stream
	// window is how much may be sent on all streams, first that of a new stream.
	window, first int64
	starving      int // streams that wait for window
	// room is how much the client may send, owed what it has not been told of yet.
	room, owed int64
	leaving    bool // no more requests are taken
	ended      error
}

func newConn(hs *http.Server, t *tls.Conn, h http.Handler, requests int) *conn {
	c := &conn{
		http: hs, tls: t, state: t.ConnectionState(), handler: h, requests: requests, streams: map[uint32]*stream{},
		window: firstWindow, first: firstWindow, room: bodyWindow,
	}
	c.w.init(t)
	c.read = http2.NewFramer(io.Discard, bufio.NewReader(t))
	c.read.SetReuseFrames()
	c.read.SetMaxReadFrameSize(frameSize)
	c.read.ReadMetaHeaders = hpack.NewDecoder(tableSize, nil)
	c.read.MaxHeaderListSize = uint32(maxHeader(hs))
	return c
}

func maxHeader(hs *http.Server) int {
	if hs.MaxHeaderBytes > 0 {
		return hs.MaxHeaderBytes
	}
	return http.DefaultMaxHeaderBytes
}

// run serves until the connection ends, and all handlers have.
func (c *conn) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer c.running.Wait()
	defer cancel()
	err := c.greet()
	for err == nil {
		err = c.next(ctx)
	}
	c.end(err)
}

// hello says the first frame: nothing may be said before it.
func (c *conn) hello() {
	c.reply(func(f *http2.Framer) error {
		return errors.Join(f.WriteSettings(
			http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: uint32(c.requests)},
			http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: uint32(maxHeader(c.http))},
			http2.Setting{ID: http2.SettingInitialWindowSize, Val: bodyWindow},
		), f.WriteWindowUpdate(0, bodyWindow-firstWindow))
	})
}

// greet reads the first frames.
func (c *conn) greet() error {
	if d := c.http.ReadHeaderTimeout; d > 0 {
		_ = c.tls.SetReadDeadline(time.Now().Add(d)) // a connection that is closed fails below
	}
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(c.tls, preface); err != nil {
		return err
	}
	if string(preface) != http2.ClientPreface {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	f, err := c.read.ReadFrame()
	if err != nil {
		return err
	}
	settings, ok := f.(*http2.SettingsFrame)
	if !ok || settings.IsAck() {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	c.mu.Lock()
	c.rest()
	c.mu.Unlock()
	return c.settings(settings)
}

// next acts on a frame. An error ends the connection.
func (c *conn) next(ctx context.Context) error {
	f, err := c.read.ReadFrame()
	var broken http2.StreamError
	if errors.As(err, &broken) {
		return c.refuse(broken.StreamID, broken.Code)
	}
	if err != nil {
		return err
	}
	switch f := f.(type) {
	case *http2.MetaHeadersFrame:
		return c.headers(ctx, f)
	case *http2.DataFrame:
		return c.data(f)
	case *http2.SettingsFrame:
		return c.settings(f)
	case *http2.WindowUpdateFrame:
		return c.widen(f)
	case *http2.PingFrame:
		if !f.IsAck() {
			c.reply(func(w *http2.Framer) error { return w.WritePing(true, f.Data) })
		}
	case *http2.RSTStreamFrame:
		return c.reset(f)
	case *http2.PriorityFrame:
		if f.StreamDep == f.StreamID {
			return c.refuse(f.StreamID, http2.ErrCodeProtocol)
		}
	case *http2.PushPromiseFrame:
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	return nil // the client may go away, or say what we have no use for
}

// reply sends frames as soon as the client reads what was before.
func (c *conn) reply(add func(*http2.Framer) error) { c.w.reply(add, c.running.Go) }

func (c *conn) settings(f *http2.SettingsFrame) error {
	if f.IsAck() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.first // the last one that is said; to go through all streams for each would take long
	err := f.ForeachSetting(func(s http2.Setting) error {
		switch s.ID {
		case http2.SettingInitialWindowSize:
			first = int64(s.Val)
		case http2.SettingHeaderTableSize:
			c.w.limitTable(s.Val)
		}
		return s.Valid()
	})
	if err == nil {
		err = c.setFirstLocked(first)
	}
	if err == nil {
		c.reply((*http2.Framer).WriteSettingsAck) // before anybody makes use of them
	}
	return err
}

// setFirstLocked changes what all streams may send by as much as the first window.
func (c *conn) setFirstLocked(size int64) error {
	more := size - c.first
	if more == 0 {
		return nil
	}
	c.first = size
	for _, s := range c.streams {
		if s.window += more; s.window > maxWindow {
			return http2.ConnectionError(http2.ErrCodeFlowControl)
		}
		s.moved.Broadcast()
	}
	return nil
}

// maxWindow is what no window may exceed.
const maxWindow = 1<<31 - 1

func (c *conn) widen(f *http2.WindowUpdateFrame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.StreamID == 0 {
		full := c.window <= 0 // else nobody waits for it who has not been woken
		if c.window += int64(f.Increment); c.window > maxWindow {
			return http2.ConnectionError(http2.ErrCodeFlowControl)
		}
		if full {
			c.feedLocked()
		}
		return nil
	}
	s := c.streams[f.StreamID]
	if s == nil {
		return c.knownLocked(f.StreamID)
	}
	if s.window += int64(f.Increment); s.window > maxWindow {
		s.endLocked(http2.StreamError{StreamID: s.id, Code: http2.ErrCodeFlowControl})
		s.resets = http2.ErrCodeFlowControl
	}
	s.moved.Broadcast()
	return nil
}

// knownLocked is for frames of streams that are over: those that have not been are
// an error.
func (c *conn) knownLocked(id uint32) error {
	if (id > c.last && !c.leaving) || id%2 == 0 {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	return nil
}

func (c *conn) reset(f *http2.RSTStreamFrame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.streams[f.StreamID]
	if s == nil {
		return c.knownLocked(f.StreamID)
	}
	s.goneLocked(http2.StreamError{StreamID: s.id, Code: f.ErrCode})
	return nil
}

// refuse breaks a stream off, if it is one that a client may have.
func (c *conn) refuse(id uint32, code http2.ErrCode) error {
	if id%2 == 0 {
		return http2.ConnectionError(code)
	}
	c.breakOff(id, code)
	return nil
}

// breakOff ends a stream with an error, which its client is told. Of one that came
// too late to be looked at it is told, or will be, that it can be had elsewhere.
func (c *conn) breakOff(id uint32, code http2.ErrCode) {
	c.mu.Lock()
	late := c.leaving && id > c.last
	if !late {
		c.last = max(c.last, id)
	}
	if s := c.streams[id]; s != nil {
		s.goneLocked(http2.StreamError{StreamID: id, Code: code})
	}
	c.mu.Unlock()
	if !late {
		c.reply(func(w *http2.Framer) error { return w.WriteRSTStream(id, code) })
	}
}

// headers begins a stream, or ends the body of one.
func (c *conn) headers(ctx context.Context, f *http2.MetaHeadersFrame) error {
	id := f.StreamID
	c.mu.Lock()
	s := c.streams[id]
	fresh := id > c.last && id%2 == 1
	over := s != nil && (s.bodyOver || s.gone)
	answered := over && s.closed && !s.gone
	leaving, full := c.leaving, c.fullLocked()
	if fresh && !leaving {
		c.last = id
	}
	c.mu.Unlock()
	switch {
	case answered:
		return http2.ConnectionError(http2.ErrCodeStreamClosed)
	case over:
		c.breakOff(id, http2.ErrCodeStreamClosed)
	case s != nil && f.StreamEnded() && len(f.PseudoFields()) == 0: // trailers, which nobody reads
		c.bodyEnds(s)
	case s != nil, f.Priority.StreamDep == id:
		c.breakOff(id, http2.ErrCodeProtocol)
	case leaving && id%2 == 1: // the client knows, or will know, that it was not looked at
	case !fresh:
		return http2.ConnectionError(http2.ErrCodeProtocol)
	case full:
		c.breakOff(id, http2.ErrCodeRefusedStream)
	default:
		c.begin(ctx, f)
	}
	return nil
}

// fullLocked says that a client has as many requests as it may, or has taken back so
// many that their handlers are twice as many.
func (c *conn) fullLocked() bool { return c.open >= c.requests || len(c.streams) >= 2*c.requests }

// begin has a handler answer a request.
func (c *conn) begin(ctx context.Context, f *http2.MetaHeadersFrame) {
	s, ok := c.newStream(ctx, f)
	if !ok {
		c.breakOff(f.StreamID, http2.ErrCodeProtocol)
		return
	}
	c.mu.Lock()
	if len(c.streams) == 0 {
		_ = c.tls.SetReadDeadline(time.Time{}) // a connection that is closed fails when it is read
	}
	s.window = c.first
	c.streams[s.id] = s
	c.open++
	c.mu.Unlock()
	c.running.Go(s.serve)
}

// rest is called with the lock when no handler runs: the client has a while for its
// next request, unless the connection is to end.
func (c *conn) rest() {
	switch d := c.http.IdleTimeout; {
	case c.leaving:
		_ = c.tls.SetReadDeadline(time.Unix(1, 0))
	case d > 0:
		_ = c.tls.SetReadDeadline(time.Now().Add(d))
	default:
		_ = c.tls.SetReadDeadline(time.Time{})
	}
}

// leave takes no more requests, and ends the connection with the last one.
func (c *conn) leave() {
	c.mu.Lock()
	if c.leaving {
		c.mu.Unlock()
		return
	}
	c.leaving = true
	last := c.last
	c.mu.Unlock()
	_ = c.w.frames(func(w *http2.Framer) error { return w.WriteGoAway(last, http2.ErrCodeNo, nil) }) // else it has gone
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.streams) == 0 {
		c.rest()
	}
}

// end tells the client why, and all who write or read bodies.
func (c *conn) end(err error) {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // to whom reads a body
	}
	c.mu.Lock()
	c.ended = err
	for _, s := range c.streams {
		s.goneLocked(err)
	}
	last := c.last
	c.mu.Unlock()
	c.w.stopReplies()
	defer func() { _ = c.tls.Close() }() // who writes does not do so any longer
	code := http2.ErrCodeNo
	var broken http2.ConnectionError
	switch {
	case errors.As(err, &broken):
		code = http2.ErrCode(broken)
	case errors.Is(err, http2.ErrFrameTooLarge):
		code = http2.ErrCodeFrameSize
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return // it is closed, or nothing that comes from it can be trusted
	}
	c.sayGoodbye(last, code)
}

// lastWords is how long a client has to read why its connection ends.
const lastWords = time.Second

// sayGoodbye reads on for a while: a client may have to be read from before it reads,
// and to close a connection with something unread takes back what it has not read.
func (c *conn) sayGoodbye(last uint32, code http2.ErrCode) {
	_ = c.tls.SetDeadline(time.Now().Add(lastWords)) // a connection that is closed fails below
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = io.Copy(io.Discard, c.tls) }) // until the client closes, or the deadline
	defer reading.Wait()
	err := c.w.frames(func(w *http2.Framer) error { return w.WriteGoAway(last, code, nil) })
	if err != nil || c.tls.CloseWrite() != nil {
		_ = c.tls.Close() // there is nothing to wait for
	}
}
