package truth

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/server/auth"
)

// proxy stands between an informer and the server, and does harm to what passes
// until it is healed. Clients reach it by HTTP/2 over TLS or by plain HTTP/1.1.
type proxy struct {
	to       *target
	upstream *http.Transport
	server   *http.Server
	listener *listener
	config   *rest.Config
	// lasting is the context of what outlives a request; end ends it.
	lasting context.Context
	end     context.CancelFunc
	work    sync.WaitGroup
	healed  chan struct{}

	mu     sync.Mutex
	random *rand.Rand
	done   map[string]int // faults, by name
	closed bool
}

// startProxy starts a proxy whose faults follow from the seed. It is at work until
// close is called.
func startProxy(t *testing.T, to *target, upstream *http.Transport, c *auth.Credentials, seed uint64) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{
		to: to, upstream: upstream, listener: &listener{Listener: l, open: map[net.Conn]bool{}},
		healed: make(chan struct{}), random: rand.New(rand.NewPCG(seed, 2)), done: map[string]int{},
	}
	p.lasting, p.end = context.WithCancel(context.Background())
	p.server = &http.Server{Handler: p, ErrorLog: nobody, ConnContext: withConn}
	secure := seed%2 == 0
	p.config = &rest.Config{Host: "http://" + l.Addr().String()}
	if secure {
		p.server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{c.Serving}}
		p.config = &rest.Config{Host: "https://" + l.Addr().String(), TLSClientConfig: rest.TLSClientConfig{CAData: c.CAPEM}}
	}
	serve := p.server.Serve
	if secure {
		serve = func(l net.Listener) error { return p.server.ServeTLS(l, "", "") }
	}
	p.work.Go(func() {
		if err := serve(p.listener); !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("the proxy ended: %v", err)
		}
	})
	return p
}

// close returns once nothing of the proxy is left.
func (p *proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.end()
	_ = p.server.Close()
	p.listener.cut()
	p.work.Wait()
}

// heal ends all faults: what is delayed is sent, and what was to be cut goes on.
func (p *proxy) heal() { close(p.healed) }

func (p *proxy) isHealed() bool {
	select {
	case <-p.healed:
		return true
	default:
		return false
	}
}

// pause waits, unless the proxy is healed or the request ends before.
func (p *proxy) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.healed:
	case <-ctx.Done():
	}
}

// draw decides what happens to a request.
func (p *proxy) draw(r *http.Request) fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isHealed() {
		return fault{}
	}
	f := newFault(p.random, r)
	if f.name != "" {
		p.done[f.name]++
	}
	return f
}

// enter has close wait for a handler, which may outlive its connection.
func (p *proxy) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.work.Add(1)
	}
	return !p.closed
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !p.enter() {
		panic(http.ErrAbortHandler)
	}
	defer p.work.Done()
	f := p.draw(r)
	if f.before > 0 {
		p.pause(r.Context(), f.before)
	}
	switch {
	case f.code != 0:
		refuse(w, f.code)
		return
	case f.unheard:
		cut(r)
		panic(http.ErrAbortHandler)
	case f.twice:
		p.work.Go(func() { p.overhear(r, f.bytes) })
	}
	ctx := r.Context()
	if f.ghost { // the server is to believe that the client is still there
		ctx = p.lasting
	}
	resp, err := p.send(ctx, r)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	p.answer(w, r, resp, f)
}

// send sends a request on to the server.
func (p *proxy) send(ctx context.Context, r *http.Request) (*http.Response, error) {
	out := r.Clone(ctx)
	out.URL.Scheme, out.URL.Host, out.Host, out.RequestURI = p.to.url.Scheme, p.to.url.Host, p.to.url.Host, ""
	out.Header.Set("Accept-Encoding", "identity")
	return p.upstream.RoundTrip(out)
}

// overhear is the other of two connections with one request: it reads some bytes
// of the answer and goes away.
func (p *proxy) overhear(r *http.Request, bytes int64) {
	ctx, cancel := context.WithTimeout(p.lasting, 50*time.Millisecond)
	defer cancel()
	resp, err := p.send(ctx, r)
	if err != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, resp.Body, bytes)
	_ = resp.Body.Close()
}

// answer passes an answer on, as far as the fault lets it.
func (p *proxy) answer(w http.ResponseWriter, r *http.Request, resp *http.Response, f fault) {
	keep := false
	defer func() {
		if !keep {
			_ = resp.Body.Close()
		}
	}()
	for _, name := range []string{"Content-Type", "Audit-Id", "Cache-Control", "Warning"} {
		if v := resp.Header.Get(name); v != "" {
			w.Header().Set(name, v)
		}
	}
	w.WriteHeader(resp.StatusCode)
	out := &passage{p: p, f: f, w: w, r: r, left: f.bytes, flush: http.NewResponseController(w).Flush}
	err := out.flush()
	switch {
	case err != nil:
	case f.expire:
		err = out.passFrames(resp)
	default:
		_, err = io.Copy(out, resp.Body)
	}
	if f.ghost && errors.Is(err, errCut) {
		keep = true
		p.work.Go(func() {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		})
	}
	switch {
	case err == nil, errors.Is(err, errEnd):
	case errors.Is(err, errCut):
		cut(r)
		panic(http.ErrAbortHandler)
	default:
		panic(http.ErrAbortHandler)
	}
}

// tally is what was done, in words.
func (p *proxy) tally(into map[string]int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, n := range p.done {
		into[name] += n
	}
}

// listener knows its open connections.
type listener struct {
	net.Listener
	mu   sync.Mutex
	open map[net.Conn]bool
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	tracked := &tracked{Conn: c, of: l}
	l.open[tracked] = true
	return tracked, nil
}

// cut resets all connections.
func (l *listener) cut() int {
	l.mu.Lock()
	all := make([]net.Conn, 0, len(l.open))
	for c := range l.open {
		all = append(all, c)
	}
	l.mu.Unlock()
	for _, c := range all {
		reset(c)
	}
	return len(all)
}

type tracked struct {
	net.Conn
	of *listener
}

func (c *tracked) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// reset closes a connection so that the other side sees a reset.
func reset(c net.Conn) {
	if t, ok := c.(*tracked); ok {
		if tcp, ok := t.Conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
	}
	_ = c.Close()
}

type connKey struct{}

// withConn has requests know the connection that they came by.
func withConn(ctx context.Context, c net.Conn) context.Context {
	if s, ok := c.(*tls.Conn); ok {
		c = s.NetConn()
	}
	return context.WithValue(ctx, connKey{}, c)
}

// cut resets the connection of a request, and with it all that share it.
func cut(r *http.Request) { reset(r.Context().Value(connKey{}).(net.Conn)) }

func refuse(w http.ResponseWriter, code int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":"by the proxy","code":%d}`, reasons[code], code)
}
