package cluster

import (
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// Proxy is a way to a server that can be cut. It ends with the test.
type Proxy struct {
	// Address is where it listens.
	Address string

	target   string
	listener net.Listener
	all      sync.WaitGroup

	mu     sync.Mutex
	closed bool
	conns  []net.Conn
	cuts   int
}

// NewProxy starts a proxy to an address.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Address: l.Addr().String(), target: target, listener: l}
	p.all.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close()
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		p.CutAll()
		p.all.Wait()
	})
	return p
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.all.Go(func() { p.serve(c) })
	}
}

// serve passes bytes on until one side ends or the connection is cut.
func (p *Proxy) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	if !p.add(client) {
		return
	}
	defer p.forget(client)
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	var both sync.WaitGroup
	pass := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		_, _ = to.Close(), from.Close()
	}
	both.Go(func() { pass(server, client) })
	both.Go(func() { pass(client, server) })
	both.Wait()
}

func (p *Proxy) add(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.conns = append(p.conns, c)
	return true
}

func (p *Proxy) forget(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, other := range p.conns {
		if other == c {
			p.conns = append(p.conns[:i], p.conns[i+1:]...)
			return
		}
	}
}

// CutOne cuts a connection at random; the client sees a reset.
func (p *Proxy) CutOne() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.conns) > 0 {
		p.cutLocked(p.conns[rand.IntN(len(p.conns))])
	}
}

// CutAll cuts all connections.
func (p *Proxy) CutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		p.cutLocked(c)
	}
}

func (p *Proxy) cutLocked(c net.Conn) {
	p.cuts++
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// Cuts is how many connections have been cut.
func (p *Proxy) Cuts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cuts
}
