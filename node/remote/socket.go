package remote

import (
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// The channels of a command.
const (
	stdinChannel = iota
	stdoutChannel
	stderrChannel
	statusChannel
	sizeChannel
)

// closeSignal, in the place of a channel's number, says that the client has no more
// for the channel whose number follows.
const closeSignal = 255

const (
	protocolV5     = "v5.channel.k8s.io"
	protocolV4     = "v4.channel.k8s.io"
	protocolV4Text = "v4.base64.channel.k8s.io"
	protocolV1     = "channel.k8s.io"
	protocolV1Text = "base64.channel.k8s.io"
)

var upgrader = websocket.Upgrader{
	ReadBufferSize: chunk, WriteBufferSize: chunk + 1, // a message is one frame
	// Who a client is, others have asked.
	CheckOrigin: func(*http.Request) bool { return true },
}

// socket is a WebSocket whose messages begin with the number of a channel.
type socket struct {
	*websocket.Conn
	protocol string

	mu sync.Mutex // held while a message is written
}

// openSocket upgrades a request, or answers that it cannot be. Without a protocol, the
// oldest is meant.
func openSocket(w http.ResponseWriter, r *http.Request, known ...string) *socket {
	var header http.Header
	protocol, wanted := "", websocket.Subprotocols(r)
	if len(wanted) > 0 {
		var ok bool
		if protocol, ok = choose(wanted, known); !ok {
			refuse(w, http.StatusForbidden, "requested protocol(s) are not supported: %v; supports %v", wanted, known)
			return nil
		}
		header = http.Header{"Sec-Websocket-Protocol": {protocol}}
	}
	conn, err := upgrader.Upgrade(w, r, header)
	if err != nil {
		return nil // it was answered
	}
	return &socket{Conn: conn, protocol: protocol}
}

// text reports whether messages are texts, with their content in base64.
func (s *socket) text() bool { return strings.Contains(s.protocol, "base64.") }

func (s *socket) beat() error {
	err := s.WriteControl(websocket.PingMessage, nil, time.Now().Add(beatEvery))
	if late, ok := err.(net.Error); ok && late.Timeout() {
		return nil // a slow client holds up a message
	}
	return err
}

// bye says that nothing more comes.
func (s *socket) bye() {
	_ = s.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(lingers))
}

// receive hands on what the client sends, until it leaves. What nobody takes is
// dropped.
func (s *socket) receive(to map[byte]*io.PipeWriter) {
	defer func() {
		for _, w := range to {
			_ = w.Close()
		}
	}()
	var head [2]byte
	buffer := make([]byte, chunk)
	for {
		_, message, err := s.NextReader()
		if err != nil {
			return
		}
		if _, err := io.ReadFull(message, head[:1]); err != nil {
			continue // it is empty
		}
		channel := head[0]
		if channel == closeSignal && s.protocol == protocolV5 {
			if _, err := io.ReadFull(message, head[1:]); err == nil && to[head[1]] != nil {
				_ = to[head[1]].Close()
			}
			continue
		}
		if s.text() {
			channel, message = channel-'0', base64.NewDecoder(base64.StdEncoding, message)
		}
		if w := to[channel]; w != nil {
			_, _ = io.CopyBuffer(w, message, buffer)
		}
	}
}

// channel is a writer to one.
func (s *socket) channel(number byte) io.Writer { return socketChannel{s, number} }

type socketChannel struct {
	*socket
	number byte
}

func (c socketChannel) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kind, head, body := websocket.BinaryMessage, c.number, p
	if c.text() {
		kind, head, body = websocket.TextMessage, '0'+c.number, []byte(base64.StdEncoding.EncodeToString(p))
	}
	w, err := c.NextWriter(kind)
	if err != nil {
		return 0, err
	}
	if _, err := w.Write([]byte{head}); err != nil {
		return 0, err
	}
	if _, err := w.Write(body); err != nil {
		return 0, err
	}
	return len(p), w.Close()
}

// acceptSocket makes a session of a WebSocket.
func acceptSocket(w http.ResponseWriter, r *http.Request, want Want) *session {
	c := openSocket(w, r, protocolV5, protocolV4, protocolV4Text, protocolV1, protocolV1Text)
	if c == nil {
		return nil
	}
	s := &session{conn: c.NetConn(), gone: make(chan struct{}), beat: c.beat}
	to := map[byte]*io.PipeWriter{}
	if want.Stdin {
		s.stdin, to[stdinChannel] = io.Pipe()
	}
	if want.TTY {
		s.sizes, to[sizeChannel] = io.Pipe()
	}
	first := byte(statusChannel)
	if want.Stderr {
		s.stderr, first = c.channel(stderrChannel), stderrChannel
	}
	if want.Stdout {
		s.stdout, first = c.channel(stdoutChannel), stdoutChannel
	}
	_, _ = c.channel(first).Write(nil) // clients of old wait for a message
	s.end = func(err error) {
		asObject := c.protocol == protocolV5 || c.protocol == protocolV4 || c.protocol == protocolV4Text
		writeStatus(c.channel(statusChannel), asObject, err)
		c.bye()
	}
	s.work.Go(func() {
		defer close(s.gone)
		c.receive(to)
	})
	return s
}
