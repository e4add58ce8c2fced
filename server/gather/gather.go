// Package gather lets a handler send what it writes in few calls of the system.
//
// An answer passes the buffers of net/http, the frames of HTTP/2 and the records
// of TLS, which are smaller than what a list or a batch of events fills; each
// buffer would be a call of its own, and those cost more than the encryption.
// [Conn] stands below them and holds their output until the handler is done.
//
// Where a connection carries several answers, all wait for the one that holds it.
// Its handler must not hold it for long, then, and in particular not while it
// waits for the client: what that waits for may be what is held.
package gather

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// size is how much is held at most.
const size = 64 << 10

var buffers = sync.Pool{New: func() any { b := make([]byte, 0, size); return &b }}

// Conn is a connection whose output can be held. It is safe for concurrent use;
// a nil one holds nothing.
type Conn struct {
	net.Conn

	// sending says that a call of the system is under way.
	sending atomic.Bool

	mu      sync.Mutex
	holders int
	held    *[]byte // nil unless output is held
}

// Hold makes Write keep what is written, up to a bound, until each Hold has had its
// Release.
func (c *Conn) Hold() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holders++; c.held == nil {
		c.held = buffers.Get().(*[]byte)
	}
}

// Release ends a Hold. What is held is sent, whoever else holds.
func (c *Conn) Release() error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holders == 0 {
		return nil
	}
	err := c.flush()
	if c.holders--; c.holders == 0 {
		buffers.Put(c.held)
		c.held = nil
	}
	return err
}

// Interrupt makes a write fail that the client does not let go on, and all that
// come after it. Without one it does nothing.
func (c *Conn) Interrupt() {
	if c != nil && c.sending.Load() {
		_ = c.Conn.SetWriteDeadline(time.Unix(1, 0)) // fails on a closed one, which is as good
	}
}

// Write implements [net.Conn]. An error may be that of an earlier write which
// was held.
func (c *Conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == nil {
		return c.send(p)
	}
	if len(*c.held)+len(p) > size {
		if err := c.flush(); err != nil {
			return 0, err
		}
	}
	if len(p) > size {
		return c.send(p)
	}
	*c.held = append(*c.held, p...)
	return len(p), nil
}

func (c *Conn) flush() error {
	if len(*c.held) == 0 {
		return nil
	}
	_, err := c.send(*c.held)
	*c.held = (*c.held)[:0]
	return err
}

func (c *Conn) send(p []byte) (int, error) {
	c.sending.Store(true)
	defer c.sending.Store(false)
	return c.Conn.Write(p)
}

// Listener makes the connections of a listener ones that gather.
func Listener(l net.Listener) net.Listener { return listener{l} }

type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &Conn{Conn: conn}, nil
}

type key struct{}

// Context is the ConnContext of an [net/http.Server] on a [Listener], with TLS
// or without.
func Context(ctx context.Context, conn net.Conn) context.Context {
	if over, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = over.NetConn()
	}
	if c, ok := conn.(*Conn); ok {
		return context.WithValue(ctx, key{}, c)
	}
	return ctx
}

// Of returns the connection of a request's context, or nil.
func Of(ctx context.Context) *Conn {
	c, _ := ctx.Value(key{}).(*Conn)
	return c
}
