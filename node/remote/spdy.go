package remote

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/moby/spdystream"
)

const (
	spdy31          = "SPDY/3.1"
	protocolHeader  = "X-Stream-Protocol-Version"
	acceptedHeader  = "X-Accepted-Stream-Protocol-Versions"
	streamType      = "streamType"
	maxSPDYReceived = 8 // streams that wait to be taken
)

// The protocols of commands over SPDY. From v4 on, the end is told as an object; from
// v3 on, terminals have sizes.
var commandProtocols = []string{protocolV4, "v3.channel.k8s.io", "v2.channel.k8s.io", protocolV1}

// upgradeSPDY upgrades a request, or answers that it cannot be. It returns the protocol
// of the streams.
func upgradeSPDY(w http.ResponseWriter, r *http.Request, known []string) (net.Conn, string) {
	if !strings.Contains(strings.ToLower(r.Header.Get("Connection")), "upgrade") || !strings.EqualFold(r.Header.Get("Upgrade"), spdy31) {
		refuse(w, http.StatusBadRequest, "this is neither a WebSocket nor %s", spdy31)
		return nil, ""
	}
	var wanted []string
	for _, part := range strings.Split(strings.Join(r.Header.Values(protocolHeader), ","), ",") {
		wanted = append(wanted, strings.TrimSpace(part))
	}
	protocol, ok := choose(wanted, known)
	if !ok {
		w.Header()[acceptedHeader] = known
		refuse(w, http.StatusForbidden, "unable to negotiate protocol: client supports %v, server accepts %v", wanted, known)
		return nil, ""
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		refuse(w, http.StatusInternalServerError, "%v", err)
		return nil, ""
	}
	_ = conn.SetDeadline(time.Time{})
	if _, err := fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n%s: %s\r\n\r\n", spdy31, protocolHeader, protocol); err != nil {
		_ = conn.Close()
		return nil, ""
	}
	return &onceConn{Conn: conn, from: buffered.Reader}, protocol
}

// onceConn is a connection of which something was read before, and that can be closed
// more than once.
type onceConn struct {
	net.Conn
	from *bufio.Reader
	once sync.Once
}

func (c *onceConn) Read(p []byte) (int, error) { return c.from.Read(p) }

func (c *onceConn) Close() (err error) {
	c.once.Do(func() { err = c.Conn.Close() })
	return err
}

// acceptSPDY makes a session of a SPDY connection, when the client has opened all its
// streams.
func acceptSPDY(w http.ResponseWriter, r *http.Request, want Want) *session {
	conn, protocol := upgradeSPDY(w, r, commandProtocols)
	if conn == nil {
		return nil
	}
	framed, err := spdystream.NewConnection(conn, true)
	if err != nil {
		_ = conn.Close()
		return nil
	}
	s := &session{conn: conn, gone: make(chan struct{})}
	opened := make(chan *spdystream.Stream, maxSPDYReceived)
	s.work.Go(func() {
		defer close(s.gone)
		framed.Serve(func(stream *spdystream.Stream) { take(stream, opened) })
	})
	if !s.connect(opened, want, protocol) {
		_ = conn.Close()
		s.work.Wait()
		return nil
	}
	return s
}

// take accepts a stream. Its reply is sent before anything of it is read, on which the
// library depends.
func take(stream *spdystream.Stream, opened chan<- *spdystream.Stream) {
	if stream.SendReply(http.Header{}, false) != nil {
		return
	}
	select {
	case opened <- stream:
	default: // no client has that many
		_ = stream.Reset()
	}
}

// connect waits for the streams that the client is to open, and connects the session
// to them.
func (s *session) connect(opened <-chan *spdystream.Stream, want Want, protocol string) bool {
	missing := map[string]bool{
		"error": true, "stdin": want.Stdin, "stdout": want.Stdout, "stderr": want.Stderr,
		"resize": want.TTY && (protocol == protocolV4 || protocol == "v3.channel.k8s.io"),
	}
	all := map[string]*spdystream.Stream{}
	late := time.NewTimer(opensWithin)
	defer late.Stop()
	for anyOf(missing) {
		select {
		case stream := <-opened:
			kind := stream.Headers().Get(streamType)
			if !missing[kind] {
				_ = stream.Reset()
				continue
			}
			missing[kind], all[kind] = false, stream
		case <-s.gone:
			return false
		case <-late.C:
			return false
		}
	}
	s.use(all, protocol == protocolV4)
	return true
}

func anyOf(missing map[string]bool) bool {
	for _, is := range missing {
		if is {
			return true
		}
	}
	return false
}

// use connects the session to the client's streams.
func (s *session) use(all map[string]*spdystream.Stream, asObject bool) {
	if in := all["stdin"]; in != nil {
		var to *io.PipeWriter
		s.stdin, to = io.Pipe()
		s.work.Go(func() {
			_, _ = io.Copy(to, in)
			_ = to.Close()
			_, _ = io.Copy(io.Discard, in) // nobody takes it: it must not hold up the rest
		})
	}
	if out := all["stdout"]; out != nil {
		s.stdout = out
	}
	if out := all["stderr"]; out != nil {
		s.stderr = out
	}
	if sizes := all["resize"]; sizes != nil {
		s.sizes = sizes
	}
	status := all["error"]
	s.beat = func() error { return status.WriteData(nil, false) }
	s.end = func(err error) {
		writeStatus(status, asObject, err)
		for _, kind := range []string{"error", "stdout", "stderr"} {
			if stream := all[kind]; stream != nil {
				_ = stream.Close()
			}
		}
	}
}
