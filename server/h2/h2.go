// Package h2 serves HTTP/2 to the clients of an [http.Server].
//
// It is for answers that go on for long, to many clients at once. In net/http what a
// handler writes passes two other goroutines, and another one for each frame of
// 16 KiB. Here the handler writes its frames itself, from where its bytes are, and
// only flow control makes it wait.
//
// Frames and headers are read and checked by golang.org/x/net/http2. Left out is what
// a server of this API has no use for: server push, priorities, trailers and CONNECT.
package h2

import (
	"context"
	"crypto/tls"
	"net/http"
	"sync"
)

// Configure has s serve HTTP/2 by this package, with so many requests at a time on
// each connection. It must be called before s serves. Of the times that s allows,
// ReadHeaderTimeout and IdleTimeout hold; its ConnState is not told of requests.
func Configure(s *http.Server, requests int) {
	h := &server{requests: requests, conns: map[*conn]struct{}{}}
	s.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){"h2": h.serve}
	s.RegisterOnShutdown(h.shutdown)
}

// server knows all connections.
type server struct {
	requests int

	mu       sync.Mutex
	stopping bool
	conns    map[*conn]struct{}
}

// serve returns when the connection has ended, and all its handlers have.
func (s *server) serve(hs *http.Server, t *tls.Conn, h http.Handler) {
	ctx := context.Background()
	if base, ok := h.(interface{ BaseContext() context.Context }); ok {
		ctx = base.BaseContext()
	}
	c := newConn(hs, t, h, s.requests)
	c.hello()
	s.mu.Lock()
	s.conns[c] = struct{}{}
	c.leaving = s.stopping // it is told, so that it makes its requests elsewhere
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	}()
	c.run(ctx)
}

// shutdown has connections take no more requests, and end with those that they have.
func (s *server) shutdown() {
	s.mu.Lock()
	s.stopping = true
	conns := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	s.mu.Unlock()
	var all sync.WaitGroup
	for _, c := range conns {
		all.Go(c.leave) // one that does not read must not keep others waiting
	}
	all.Wait()
}
