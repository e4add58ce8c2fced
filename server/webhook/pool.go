package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	idleTimeout = 90 * time.Second
	// maxIdle bounds the idle HTTP/1 connections to one address.
	maxIdle = 25
)

// poolKey is what webhooks share connections by.
type poolKey struct {
	host       string
	serverName string // of a service; a URL's is in its host
	roots      string
}

// pool is a bounded set of transports, and of the calls that closing it ends.
type pool struct {
	limit int
	dial  dialFunc

	mu     sync.Mutex
	closed bool
	tick   uint64 // counts the uses, to know which is oldest
	byKey  map[poolKey]*transport
	calls  map[*context.CancelCauseFunc]struct{}
}

// transport holds the connections of one key. Its fields below conns are
// guarded by the pool's lock.
type transport struct {
	http  *http.Transport
	conns *connSet

	users   int // calls under way
	used    uint64
	evicted bool
}

func newPool(limit int) *pool {
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	return &pool{
		limit: max(limit, 1), dial: dialer.DialContext,
		byKey: make(map[poolKey]*transport), calls: make(map[*context.CancelCauseFunc]struct{}),
	}
}

// enter has the pool end a call with ErrClosed when it is closed, until leave.
func (p *pool) enter(cancel *context.CancelCauseFunc) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	p.calls[cancel] = struct{}{}
	return nil
}

func (p *pool) leave(cancel *context.CancelCauseFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.calls, cancel)
}

// acquire returns the transport of a key, which stays open until release.
func (p *pool) acquire(key poolKey, roots *x509.CertPool) (*transport, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, ErrClosed
	}
	var old *transport
	t := p.byKey[key]
	if t == nil {
		old = p.makeRoomLocked()
		t = newTransport(key, roots, p.dial)
		p.byKey[key] = t
	}
	p.tick++
	t.used = p.tick
	t.users++
	p.mu.Unlock()

	if old != nil {
		old.close()
	}
	return t, nil
}

// makeRoomLocked evicts the transport that was used longest ago, if the pool is
// full, and returns it if nobody uses it: it is to be closed.
func (p *pool) makeRoomLocked() *transport {
	if len(p.byKey) < p.limit {
		return nil
	}
	var oldest poolKey
	var t *transport
	for key, other := range p.byKey {
		if t == nil || other.used < t.used {
			oldest, t = key, other
		}
	}
	delete(p.byKey, oldest)
	t.evicted = true
	if t.users > 0 {
		return nil
	}
	return t
}

func (p *pool) release(t *transport) {
	p.mu.Lock()
	t.users--
	unused := t.evicted && t.users == 0
	p.mu.Unlock()
	if unused {
		t.close()
	}
}

// close ends all calls. An evicted transport is closed by its last one.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	calls, transports := slices.Collect(maps.Keys(p.calls)), slices.Collect(maps.Values(p.byKey))
	clear(p.byKey)
	p.mu.Unlock()
	for _, cancel := range calls {
		(*cancel)(ErrClosed)
	}
	for _, t := range transports {
		t.close()
	}
}

func newTransport(key poolKey, roots *x509.CertPool, dial dialFunc) *transport {
	conns := &connSet{dial: dial, open: make(map[*conn]struct{})}
	t := &http.Transport{
		DialContext:         conns.dialContext,
		TLSClientConfig:     &tls.Config{RootCAs: roots, ServerName: key.serverName, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: 10 * time.Second,
		ForceAttemptHTTP2:   true,
		// A peer that is gone without a word is noticed by the pings.
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
		IdleConnTimeout:        idleTimeout,
		MaxIdleConnsPerHost:    maxIdle,
		MaxResponseHeaderBytes: 1 << 20,
	}
	if key.serverName == "" {
		t.Proxy = http.ProxyFromEnvironment
	}
	return &transport{http: t, conns: conns}
}

// close closes every connection. http.Transport closes the idle ones only, and
// an HTTP/2 connection may not know yet that its last call has ended.
func (t *transport) close() {
	t.http.CloseIdleConnections()
	t.conns.close()
}

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// connSet knows the connections that are open, and opens none once closed.
type connSet struct {
	dial dialFunc

	mu     sync.Mutex
	closed bool
	open   map[*conn]struct{}
}

type conn struct {
	net.Conn
	set *connSet
}

func (s *connSet) dialContext(ctx context.Context, network, address string) (net.Conn, error) {
	raw, err := s.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: raw, set: s}
	if !s.add(c) {
		raw.Close()
		return nil, ErrClosed
	}
	return c, nil
}

func (s *connSet) add(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.open[c] = struct{}{}
	return true
}

func (s *connSet) close() {
	s.mu.Lock()
	s.closed = true
	open := s.open
	s.open = nil
	s.mu.Unlock()
	for c := range open {
		c.Conn.Close()
	}
}

func (c *conn) Close() error {
	c.set.mu.Lock()
	delete(c.set.open, c)
	c.set.mu.Unlock()
	return c.Conn.Close()
}
