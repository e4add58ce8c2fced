package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/server"
	"github.com/even-keel/evenkeel/server/auth"
	"github.com/even-keel/evenkeel/server/bootstrap"
	"github.com/even-keel/evenkeel/storage"
)

// Server is an API server. It is stopped when the test ends.
type Server struct {
	// Address is its host and port; they stay the same when it is restarted.
	Address string
	// Credentials are what it and its administrator identify themselves with.
	Credentials *auth.Credentials

	t      testing.TB
	open   func() (storage.Store, error)
	log    *log
	adjust []func(*server.Config)

	// These are of the server that runs; stop is nil if none does.
	Store storage.Store
	stop  func()
	conns *listener
}

// Option changes how a server is started.
type Option func(*Server)

// WithCredentials gives a server the CA and the keys of another.
func WithCredentials(c *auth.Credentials) Option { return func(s *Server) { s.Credentials = c } }

// Configured changes the server's configuration.
func Configured(adjust func(*server.Config)) Option {
	return func(s *Server) { s.adjust = append(s.adjust, adjust) }
}

// ExpectErrors keeps errors that the server logs from failing the test.
func ExpectErrors(s *Server) { s.log.expected = true }

func newCredentials(t testing.TB) *auth.Credentials {
	t.Helper()
	c, err := auth.NewCredentials(auth.CredentialOptions{Hosts: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func start(t testing.TB, open func() (storage.Store, error), options []Option) *Server {
	t.Helper()
	s := &Server{t: t, open: open, log: &log{t: t}}
	for _, option := range options {
		option(s)
	}
	if s.Credentials == nil {
		s.Credentials = newCredentials(t)
	}
	t.Cleanup(s.end)
	s.run(listen(t))
	return s
}

// listen takes a port below the range that outgoing connections take theirs
// from, so that a server finds it free when it comes back.
func listen(t testing.TB) net.Listener {
	t.Helper()
	for range 1000 {
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(20000))); err == nil {
			return l
		}
	}
	t.Fatal("no free port on 127.0.0.1")
	return nil
}

// Stop stops the server as a signal would, and closes its store.
func (s *Server) Stop() {
	if s.stop != nil {
		s.stop()
		s.stop = nil
	}
}

// end stops the server without patience for its clients.
func (s *Server) end() {
	if s.stop != nil {
		s.conns.cut()
	}
	s.Stop()
}

// Restart stops the server if it runs, and starts it where it was.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	l, err := net.Listen("tcp", s.Address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.run(l)
}

func (s *Server) run(l net.Listener) {
	s.t.Helper()
	s.Address = l.Addr().String()
	store, err := s.open()
	if err != nil {
		_ = l.Close()
		s.t.Fatalf("open the store: %v", err)
	}
	s.Store, s.conns = store, &listener{Listener: l}
	config := s.config(s.conns)
	for _, adjust := range s.adjust {
		adjust(&config)
	}
	running := server.New(config)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- running.Run(ctx) }()
	s.stop = func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Errorf("the server ended with %v", err)
		}
		if err := store.Close(); err != nil {
			s.t.Errorf("close the store: %v", err)
		}
	}
	select {
	case <-running.Ready():
	case err := <-done:
		done <- nil
		s.t.Fatalf("the server did not start: %v", err)
	}
}

// config is that of `evenkeel serve`.
func (s *Server) config(l net.Listener) server.Config {
	s.t.Helper()
	tokens, err := auth.NewTokenIssuer(auth.IssuerOptions{Key: s.Credentials.SigningKey})
	if err != nil {
		s.t.Fatal(err)
	}
	objects := bootstrap.Options{ClientCA: s.Credentials.CAPEM, RootCA: s.Credentials.CAPEM}
	first := bootstrap.Objects(objects)
	for _, namespace := range []string{"default", "kube-node-lease", "kube-public", "kube-system"} {
		first = append(first, bootstrap.ForNamespace(namespace, objects)...)
	}
	return server.Config{
		Store:         s.Store,
		Listener:      l,
		TLS:           auth.ServerTLS(s.Credentials.Serving, s.Credentials.Pool()),
		Authenticator: auth.Union(auth.ClientCertificates(time.Now), auth.BearerTokens(tokens)),
		Authorizer:    auth.MastersOnly(),
		Tokens:        tokens,
		ReviewToken:   review(tokens),
		Bootstrap:     first,
		Version:       version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.2"},
		Logger:        s.log.logger(),
	}
}

func review(tokens *auth.TokenIssuer) func(context.Context, string, []string) (auth.User, []string, error) {
	return func(_ context.Context, token string, audiences []string) (auth.User, []string, error) {
		user, ok, err := tokens.CheckToken(token)
		if err == nil && !ok {
			err = fmt.Errorf("the token is unknown")
		}
		return user, audiences, err
	}
}

// Admin is the configuration of a client that may do everything, and as fast as
// it can.
func (s *Server) Admin() *rest.Config { return s.AdminAt(s.Address) }

// AdminAt is Admin for a client that reaches the server by another address.
func (s *Server) AdminAt(address string) *rest.Config {
	return &rest.Config{
		Host: "https://" + address,
		TLSClientConfig: rest.TLSClientConfig{
			CAData: s.Credentials.CAPEM, CertData: s.Credentials.AdminCertPEM, KeyData: s.Credentials.AdminKeyPEM,
		},
		QPS:       -1,
		UserAgent: "compat/" + s.t.Name(),
	}
}

// Compact makes the server forget its history up to now.
func (s *Server) Compact() {
	s.t.Helper()
	head, err := s.Store.Head(s.t.Context())
	if err == nil {
		err = s.Store.Compact(s.t.Context(), head)
	}
	if err != nil {
		s.t.Fatalf("compact: %v", err)
	}
}
