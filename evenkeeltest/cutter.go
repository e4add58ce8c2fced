package evenkeeltest

import (
	"net"
	"sync"
)

// cutter is a listener whose connections can be broken.
type cutter struct {
	net.Listener

	mu   sync.Mutex
	open map[net.Conn]bool
}

func newCutter(l net.Listener) *cutter { return &cutter{Listener: l, open: map[net.Conn]bool{}} }

func (c *cutter) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[conn] = true
	return &cutConn{Conn: conn, of: c}, nil
}

// cut breaks all connections; TCP tells the other side at once.
func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
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
