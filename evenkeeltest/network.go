package evenkeeltest

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
)

// cutter is a listener whose connections can be broken.
type cutter struct {
	net.Listener

	mu     sync.Mutex
	open   map[net.Conn]bool
	broken bool // and those to come
}

func newCutter(l net.Listener) *cutter { return &cutter{Listener: l, open: map[net.Conn]bool{}} }

func (c *cutter) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken {
		_ = conn.Close() // who reads from it hears so
	} else {
		c.open[conn] = true
	}
	return &cutConn{Conn: conn, of: c}, nil
}

// cut breaks all connections; TCP tells the other side at once. If forever, it
// breaks those to come too.
func (c *cutter) cut(forever bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = forever
	for conn := range c.open {
		if t, ok := conn.(*net.TCPConn); ok {
			_ = t.SetLinger(0)
		}
		_ = conn.Close()
	}
}

type cutConn struct {
	net.Conn
	of *cutter
}

func (c *cutConn) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c.Conn)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// pipes is a network in memory, on which one at a time listens.
type pipes struct {
	at atomic.Pointer[pipeListener]
}

func (p *pipes) listen() net.Listener {
	l := &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
	p.at.Store(l)
	return l
}

// dial waits until the connection is accepted.
func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	l := p.at.Load()
	near, far := net.Pipe()
	select {
	case l.conns <- far:
		return pipeConn{near}, nil
	case <-l.done:
		return nil, &net.OpError{Op: "dial", Net: "pipe", Addr: l.Addr(), Err: syscall.ECONNREFUSED}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// pipeConn breaks as a connection of TCP does.
type pipeConn struct{ net.Conn }

func (c pipeConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if errors.Is(err, io.ErrClosedPipe) {
		err = &net.OpError{Op: "write", Net: "pipe", Err: syscall.ECONNRESET}
	}
	return n, err
}

type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// Addr is where a server would be.
func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 443} }
