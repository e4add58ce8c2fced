package webhook_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/even-keel/evenkeel/server/webhook"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if stacks := leftBehind("net/http.", "crypto/tls."); stacks != "" {
		fmt.Fprintln(os.Stderr, "goroutines are left behind:\n"+stacks)
		code = 1
	}
	os.Exit(code)
}

// leftBehind returns all stacks, if some hold one of the names also after a
// while: closed connections take a moment to be noticed.
func leftBehind(names ...string) string {
	deadline := time.After(5 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		all := make([]byte, 4<<20)
		stacks := string(all[:runtime.Stack(all, true)])
		if !slices.ContainsFunc(names, func(name string) bool { return strings.Contains(stacks, name) }) {
			return ""
		}
		select {
		case <-deadline:
			return stacks
		case <-tick.C:
		}
	}
}

// authority is a certificate authority.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// issue returns a certificate for a host name or an IP address.
func (a *authority) issue(t testing.TB, host string) tls.Certificate {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "test webhook"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// server is an HTTPS server with an authority of its own.
type server struct {
	*httptest.Server
	authority  *authority
	handshakes atomic.Int32
	closed     chan struct{} // gets one for each closed connection
}

type serverOptions struct {
	host  string // of the certificate, 127.0.0.1 if it is empty
	http1 bool
}

func startServer(t testing.TB, opts serverOptions, handler http.HandlerFunc) *server {
	t.Helper()
	if opts.host == "" {
		opts.host = "127.0.0.1"
	}
	s := &server{Server: httptest.NewUnstartedServer(handler), authority: newAuthority(t), closed: make(chan struct{}, 100)}
	s.TLS = &tls.Config{
		Certificates: []tls.Certificate{s.authority.issue(t, opts.host)},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			s.handshakes.Add(1)
			return nil, nil
		},
	}
	s.EnableHTTP2 = !opts.http1
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			s.closed <- struct{}{}
		}
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// config says how to call path on the server by its URL.
func (s *server) config(path string) webhook.Config {
	url := s.URL + path
	return webhook.Config{URL: &url, CABundle: s.authority.pem}
}

func newClient(t testing.TB, opts webhook.Options) *webhook.Client {
	t.Helper()
	c := webhook.NewClient(opts)
	t.Cleanup(c.Close)
	return c
}

func newHook(t testing.TB, c *webhook.Client, cfg webhook.Config) *webhook.Hook {
	t.Helper()
	h, err := c.Hook(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// post expects a success.
func post(t testing.TB, h *webhook.Hook) string {
	t.Helper()
	got, err := h.Post(t.Context(), webhook.Call{Body: []byte(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}

// resolverFunc is a function as a Resolver.
type resolverFunc func(ctx context.Context, namespace, name string, port int32) (string, error)

func (f resolverFunc) Resolve(ctx context.Context, namespace, name string, port int32) (string, error) {
	return f(ctx, namespace, name, port)
}

// always resolves every service to one address.
func always(address string) webhook.Resolver {
	return resolverFunc(func(context.Context, string, string, int32) (string, error) { return address, nil })
}

// deadAddress is a port that nobody listens on.
func deadAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// pipes is a network in memory, for tests in a bubble of synctest: there the
// clock jumps while everybody waits.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes"} }

func (p *pipes) dial(ctx context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// servePipes is a webhook hook.default.svc in memory, and a client of it. It stops
// both at the end of f: a bubble fails if anything of them is left.
func servePipes(t *testing.T, handler http.HandlerFunc, f func(h *webhook.Hook, states <-chan http.ConnState)) {
	t.Helper()
	servePipesThrough(t, func(c net.Conn) net.Conn { return c }, handler, f)
}

// servePipesThrough gives each connection of the client to wrap first.
func servePipesThrough(t *testing.T, wrap func(net.Conn) net.Conn, handler http.HandlerFunc, f func(h *webhook.Hook, states <-chan http.ConnState)) {
	t.Helper()
	ca := newAuthority(t)
	network := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	states := make(chan http.ConnState, 100)
	s := &http.Server{
		Handler:   handler,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{ca.issue(t, "hook.default.svc")}},
		ErrorLog:  log.New(io.Discard, "", 0),
		ConnState: func(_ net.Conn, state http.ConnState) { states <- state },
	}
	served := make(chan error)
	go func() { served <- s.ServeTLS(network, "", "") }()

	c := webhook.NewClient(webhook.Options{Resolver: always("10.0.0.1:443")})
	c.SetDial(func(ctx context.Context, _, _ string) (net.Conn, error) {
		c, err := network.dial(ctx)
		if err != nil {
			return nil, err
		}
		return wrap(c), nil
	})
	f(newHook(t, c, webhook.Config{Service: &webhook.Service{Namespace: "default", Name: "hook"}, CABundle: ca.pem}), states)
	c.Close()
	s.Close()
	<-served
}
