package cluster

import (
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
)

// Proxy is a way to a server that can be cut. It ends with the test.
type Proxy struct {
	// Address is where it listens.
	Address string

	t      testing.TB
	target string
	all    sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener // nil while it is shut
	conns    []net.Conn
	cuts     int
}

// NewProxy starts a proxy to an address.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l := listen(t)
	p := &Proxy{Address: l.Addr().String(), t: t, target: target}
	p.accept(l)
	t.Cleanup(func() {
		p.Shut()
		p.CutAll()
		p.all.Wait()
	})
	return p
}

func (p *Proxy) accept(l net.Listener) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener = l
	p.all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.all.Go(func() { p.serve(l, c) })
		}
	})
}

// Shut has new connections refused. Those that are there stay.
func (p *Proxy) Shut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		_ = p.listener.Close()
		p.listener = nil
	}
}

// Open undoes Shut.
func (p *Proxy) Open() {
	p.t.Helper()
	l, err := net.Listen("tcp", p.Address)
	if err != nil {
		p.t.Fatal(err)
	}
	p.accept(l)
}

// serve passes bytes on until one side ends or the connection is cut.
func (p *Proxy) serve(from net.Listener, client net.Conn) {
	defer func() { _ = client.Close() }()
	if !p.add(from, client) {
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

// add notes a connection, unless it came too late.
func (p *Proxy) add(from net.Listener, c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != from {
		return false
	}
	p.conns = append(p.conns, c)
	return true
}

func (p *Proxy) forget(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = slices.DeleteFunc(p.conns, func(other net.Conn) bool { return other == c })
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
