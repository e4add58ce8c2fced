package remote

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/moby/spdystream"
)

const (
	portProtocol   = "portforward.k8s.io"
	tunnelProtocol = spdy31 + "+" + portProtocol
	portHeader     = "port"
	requestHeader  = "requestID"

	// maxPending is how many connections may wait for their second stream.
	maxPending = 256
	// maxPorts is how many ports one WebSocket may have: two channels each.
	maxPorts = 127
)

// Dial connects to a port.
type Dial func(ctx context.Context, port int32) (net.Conn, error)

// Ports upgrades a request, and connects what the client opens to the ports that it
// names. The pod is named in what it is told of those that cannot be reached.
func Ports(w http.ResponseWriter, r *http.Request, pod string, dial Dial) {
	f := &forwarder{pod: pod, dial: dial, pending: map[string]*pair{}}
	if !websocket.IsWebSocketUpgrade(r) {
		if conn, _ := upgradeSPDY(w, r, []string{portProtocol}); conn != nil {
			f.serveSPDY(r.Context(), conn)
		}
		return
	}
	ports, err := portsOf(r.URL.Query())
	known := []string{tunnelProtocol}
	if err == nil {
		known = append(known, protocolV4, protocolV4Text)
	}
	if err != nil && len(websocket.Subprotocols(r)) == 0 {
		refuse(w, http.StatusBadRequest, "%v", err)
		return
	}
	switch s := openSocket(w, r, known...); {
	case s == nil:
	case s.protocol == tunnelProtocol:
		f.serveSPDY(r.Context(), &tunnel{Conn: s.NetConn(), socket: s})
	default:
		f.serveChannels(r.Context(), s, ports)
	}
}

// portsOf reads the ports that a client names before it is connected.
func portsOf(q url.Values) ([]uint16, error) {
	var out []uint16
	for _, part := range strings.Split(strings.Join(q[portHeader], ","), ",") {
		n, err := strconv.ParseUint(part, 10, 16)
		if err != nil || n == 0 {
			return nil, fmt.Errorf("%q is not a port", part)
		}
		out = append(out, uint16(n))
	}
	if len(out) > maxPorts {
		return nil, fmt.Errorf("%d ports are more than %d", len(out), maxPorts)
	}
	return out, nil
}

// forwarder connects the streams of one client to ports.
type forwarder struct {
	pod  string
	dial Dial
	work sync.WaitGroup // one for each connection

	mu      sync.Mutex
	pending map[string]*pair
	last    *spdystream.Stream // one to write to, to see whether the client is there
}

// pair is the two streams of a connection.
type pair struct{ data, fault *spdystream.Stream }

// serveSPDY serves all that the client opens, until it leaves.
func (f *forwarder) serveSPDY(ctx context.Context, conn net.Conn) {
	defer func() { _ = conn.Close() }()
	framed, err := spdystream.NewConnection(conn, true)
	if err != nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	watching.Go(func() { keepAlive(ctx, f.beat, cancel) })
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	framed.Serve(func(s *spdystream.Stream) { f.take(ctx, s) })
	cancel()
	f.work.Wait()
}

func (f *forwarder) beat() error {
	f.mu.Lock()
	last := f.last
	f.mu.Unlock()
	if last == nil {
		return nil // then nothing holds up who reads
	}
	return last.WriteData(nil, false)
}

// take accepts a stream, and connects it if it is the second of its pair.
func (f *forwarder) take(ctx context.Context, s *spdystream.Stream) {
	port, err := strconv.ParseUint(s.Headers().Get(portHeader), 10, 16)
	kind := s.Headers().Get(streamType)
	if err != nil || port == 0 || kind != "data" && kind != "error" {
		_ = s.Refuse()
		return
	}
	p, ok := f.match(s, kind)
	if !ok {
		_ = s.Refuse()
		return
	}
	if s.SendReply(http.Header{}, false) != nil || p == nil {
		return
	}
	f.work.Go(func() {
		f.forward(ctx, int32(port), spdyData{p.data}, p.fault)
		_ = p.fault.Close()
	})
}

// match puts a stream to the one that belongs to it. The pair is nil while that is
// missing; false is that there is no place for it.
func (f *forwarder) match(s *spdystream.Stream, kind string) (*pair, bool) {
	id := requestOf(s, kind)
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.pending[id]
	if p == nil && len(f.pending) >= maxPending {
		return nil, false
	}
	if p == nil {
		p = &pair{}
		f.pending[id] = p
	}
	switch {
	case kind == "data" && p.data == nil:
		p.data = s
	case kind == "error" && p.fault == nil:
		p.fault, f.last = s, s
	default: // it is there already
		return nil, false
	}
	if p.data == nil || p.fault == nil {
		return nil, true
	}
	delete(f.pending, id)
	return p, true
}

// requestOf is what the two streams of a connection have in common. Old clients do not
// say it, but open the one for errors first.
func requestOf(s *spdystream.Stream, kind string) string {
	if id := s.Headers().Get(requestHeader); id != "" {
		return id
	}
	n := s.Identifier()
	if kind == "data" {
		n -= 2
	}
	return strconv.FormatUint(uint64(n), 10)
}

// end is the client's end of a connection.
type end interface {
	io.ReadWriter
	// CloseWrite says that there is no more for the client.
	CloseWrite() error
	// Reset ends both directions at once, and a Read.
	Reset() error
	// IsReset reports whether the client will read no more.
	IsReset() bool
}

// spdyData is the data stream of a connection.
type spdyData struct{ *spdystream.Stream }

func (d spdyData) CloseWrite() error { return d.Close() }
func (d spdyData) IsReset() bool     { return d.IsFinished() }

func (d spdyData) Write(p []byte) (int, error) {
	if d.IsFinished() { // the library would send it to nobody
		return 0, spdystream.ErrWriteClosedStream
	}
	return d.Stream.Write(p)
}

// forward connects a client to a port, until both sides are done or one of them is
// gone.
func (f *forwarder) forward(ctx context.Context, port int32, client end, fault io.Writer) {
	conn, err := f.dial(ctx, port)
	if err != nil {
		_, _ = fmt.Fprintf(fault, "error forwarding port %d to pod %s: %v", port, f.pod, err)
		_ = client.Reset()
		return
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(client, conn)
		_ = client.CloseWrite()
	})
	_, _ = io.Copy(conn, client)
	if half, ok := conn.(interface{ CloseWrite() error }); ok && !client.IsReset() {
		_ = half.CloseWrite()
	} else {
		_ = conn.Close()
	}
	back.Wait()
	_ = client.Reset()
}

// serveChannels serves one connection to each port, by the channels of a WebSocket: two
// for each, of data and of errors.
func (f *forwarder) serveChannels(ctx context.Context, s *socket, ports []uint16) {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	watching.Go(func() { keepAlive(ctx, s.beat, cancel) })
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	to, gone := map[byte]*io.PipeWriter{}, make(chan struct{})
	for i, port := range ports {
		data := &channelData{Writer: s.channel(byte(2 * i))}
		fault := s.channel(byte(2*i + 1))
		data.PipeReader, to[byte(2*i)] = io.Pipe()
		hello := binary.LittleEndian.AppendUint16(nil, port)
		_, _ = data.Write(hello)
		_, _ = fault.Write(hello)
		f.work.Go(func() { f.forward(ctx, int32(port), data, fault) })
	}
	watching.Go(func() {
		defer cancel()
		defer close(gone)
		s.receive(to)
	})
	f.work.Wait()
	defer time.AfterFunc(lingers, func() { _ = s.Close() }).Stop()
	s.bye()
	<-gone
	_ = s.Close()
}

// channelData is the data of a connection by a channel, of which one direction cannot
// be closed alone: when the port has no more, the client is to hear no more either.
type channelData struct {
	*io.PipeReader
	io.Writer
}

func (d *channelData) CloseWrite() error { return d.PipeReader.Close() }
func (d *channelData) Reset() error      { return d.PipeReader.Close() }
func (d *channelData) IsReset() bool     { return false }

// tunnel is a WebSocket that carries another protocol.
type tunnel struct {
	net.Conn
	socket *socket
	rest   io.Reader // of a message
	once   sync.Once
}

func (t *tunnel) Read(p []byte) (int, error) {
	for {
		if t.rest == nil {
			_, next, err := t.socket.NextReader()
			if err != nil {
				return 0, io.EOF
			}
			t.rest = next
		}
		n, err := t.rest.Read(p)
		if err == io.EOF {
			t.rest, err = nil, nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// Write is called by one at a time.
func (t *tunnel) Write(p []byte) (int, error) {
	if err := t.socket.WriteMessage(websocket.BinaryMessage, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (t *tunnel) Close() error {
	t.once.Do(func() {
		_ = t.socket.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(cutAfter))
		_ = t.socket.Close()
	})
	return nil
}
