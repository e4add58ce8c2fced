package evenkeeltest

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/server"
	"github.com/even-keel/evenkeel/server/auth"
	"github.com/even-keel/evenkeel/server/bootstrap"
	"github.com/even-keel/evenkeel/storage"
	"github.com/even-keel/evenkeel/storage/embedded"
)

// ErrStopped is the error of what only a server that runs can do.
var ErrStopped = errors.New("the server does not run")

// Server is a server on memory. Make one with [Open], or for a test with [Start].
type Server struct {
	store  storage.Store
	creds  *auth.Credentials
	tokens *auth.TokenIssuer
	users  users
	logger *slog.Logger
	nodes  nodes
	// pipes is the network; nil is TCP.
	pipes *pipes
	conn  func() (*client.Conn, error)
	// address is the same after a restart.
	address string

	// mu guards what a restart changes.
	mu     sync.Mutex
	run    *run // nil while it is stopped
	closed bool
}

// run is a server that runs.
type run struct {
	api      *server.Server
	listener *cutter
	cancel   context.CancelFunc
	done     chan error
}

// Option changes what [Open] and [Start] start.
type Option func(*options)

type options struct {
	crds   []string
	logger *slog.Logger
	bubble bool
	store  func(storage.Store) storage.Store
	nodes  nodes
}

// CRDs applies the manifests in files or folders, and waits until what they
// define is served.
func CRDs(paths ...string) Option {
	return func(o *options) { o.crds = append(o.crds, paths...) }
}

// Logger gets what the server logs; without it nobody does.
func Logger(l *slog.Logger) Option { return func(o *options) { o.logger = l } }

// Store has the server work on what wrap makes of its store: to delay writes, or to
// have them fail.
func Store(wrap func(storage.Store) storage.Store) Option {
	return func(o *options) { o.store = wrap }
}

// Nodes has the server ask the agents of nodes for what only they know; the function
// finds them.
func Nodes(find func(*corev1.Node) (*url.URL, http.RoundTripper, error)) Option {
	return func(o *options) { o.nodes = find }
}

type nodes = func(*corev1.Node) (*url.URL, http.RoundTripper, error)

// Bubble is for servers in a bubble of [testing/synctest]: the network is in
// memory, so that time passes when all wait, and the credentials are made by the
// bubble's clock. Only clients with a configuration of the server's reach it; for
// other programs, there is no such network.
func Bubble() Option { return func(o *options) { o.bubble = true } }

// sharedCredentials are made once a process: making keys is most of the work of
// a start.
var sharedCredentials = sync.OnceValues(newCredentials)

func newCredentials() (*auth.Credentials, error) {
	return auth.NewCredentials(auth.CredentialOptions{Hosts: []string{"127.0.0.1"}})
}

// Open starts a server that belongs to no test: for examples, for benchmarks, and
// for what many tests share. Who opened it closes it.
func Open(opts ...Option) (*Server, error) {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	s, err := open(o)
	if err != nil {
		return nil, errorf("start the server: %w", err)
	}
	if err := s.applyFiles(context.Background(), o.crds); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func open(o options) (s *Server, err error) {
	s = &Server{logger: o.logger, nodes: o.nodes}
	s.conn = sync.OnceValues(func() (*client.Conn, error) { return client.Connect(s.Config()) })
	credentials := sharedCredentials
	if o.bubble {
		s.pipes, credentials = &pipes{}, newCredentials
	}
	if s.creds, err = credentials(); err != nil {
		return nil, err
	}
	if s.tokens, err = auth.NewTokenIssuer(auth.IssuerOptions{Key: s.creds.SigningKey}); err != nil {
		return nil, err
	}
	if s.store, err = embedded.Open(embedded.Options{Memory: true}); err != nil {
		return nil, err
	}
	if o.store != nil {
		s.store = o.store(s.store)
	}
	if err := s.startLocked(); err != nil {
		return nil, errors.Join(err, s.store.Close())
	}
	return s, nil
}

// Start starts a server that was stopped, on the same state and address. One that
// runs goes on.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errorf("start the server: it is closed")
	}
	if err := s.startLocked(); err != nil {
		return errorf("start the server: %w", err)
	}
	return nil
}

func (s *Server) startLocked() error {
	if s.run != nil {
		return nil
	}
	l, err := s.listen()
	if err != nil {
		return err
	}
	s.run, err = s.serve(newCutter(l))
	return err
}

func (s *Server) listen() (l net.Listener, err error) {
	if s.pipes != nil {
		l = s.pipes.listen()
	} else if l, err = net.Listen("tcp", cmp.Or(s.address, "127.0.0.1:0")); err != nil {
		return nil, err
	}
	if s.address == "" {
		s.address = l.Addr().String()
	}
	return l, nil
}

// serve returns when the server is ready.
func (s *Server) serve(l *cutter) (*run, error) {
	port := int32(l.Addr().(*net.TCPAddr).Port)
	api := server.New(server.Config{
		Store: s.store, Listener: l, TLS: auth.ServerTLS(s.creds.Serving, s.creds.Pool()),
		Authenticator: auth.Union(auth.ClientCertificates(time.Now), auth.BearerTokens(&s.users, s.tokens)), Authorizer: auth.MastersOnly(),
		Tokens: s.tokens, ReviewToken: auth.Review(s.tokens, &s.users),
		Bootstrap: bootstrap.All(bootstrap.Options{Port: port, ClientCA: s.creds.CAPEM, RootCA: s.creds.CAPEM}),
		Version:   version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.2+evenkeel"},
		Logger:    s.logger, Nodes: s.nodes,
	})
	ctx, cancel := context.WithCancel(context.Background())
	r := &run{api: api, listener: l, cancel: cancel, done: make(chan error, 1)}
	go func() { r.done <- api.Run(ctx) }()
	select {
	case <-api.Ready():
		return r, nil
	case err := <-r.done:
		cancel()
		return nil, err
	}
}

// Stop stops the server as one that is upgraded: watches end, requests are
// finished, and connections are refused until [Server.Start].
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run == nil {
		return errorf("stop the server: %w", ErrStopped)
	}
	if err := s.stopLocked(); err != nil {
		return errorf("stop the server: %w", err)
	}
	return nil
}

func (s *Server) stopLocked() error {
	r := s.run
	s.run = nil
	r.cancel()
	return <-r.done
}

// Cut breaks all connections to the server, in the middle of what they carry.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run != nil {
		s.run.listener.cut(false)
	}
}

// Close ends the server for good, and all connections to it. To close it twice is
// no error.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	var stopped error
	if s.run != nil {
		s.run.listener.cut(true)
		stopped = s.stopLocked()
	}
	if err := errors.Join(stopped, s.store.Close()); err != nil {
		return errorf("close the server: %w", err)
	}
	return nil
}

// Compact has the server forget all history up to now, as servers do in time: a
// watch from an older revision is answered with 410.
func (s *Server) Compact(ctx context.Context) error {
	s.mu.Lock()
	r := s.run
	s.mu.Unlock()
	if r == nil {
		return errorf("compact: %w", ErrStopped)
	}
	if err := r.api.Compact(ctx); err != nil && !errors.Is(err, storage.ErrCompacted) {
		return errorf("compact: %w", err)
	}
	return nil
}

// Config returns how the administrator reaches the server. It is the caller's
// own.
func (s *Server) Config() *rest.Config { return s.ConfigFor("admin", auth.GroupMasters) }

// ConfigFor returns how a user of some groups reaches the server: by a token. Who
// is not in system:masters may do nothing.
func (s *Server) ConfigFor(user string, groups ...string) *rest.Config {
	cfg := &rest.Config{
		Host: s.url(), BearerToken: s.users.token(auth.User{Name: user, Groups: groups}),
		TLSClientConfig: rest.TLSClientConfig{CAData: s.creds.CAPEM},
	}
	if s.pipes != nil {
		cfg.Dial = s.pipes.dial
	}
	return cfg
}

// WriteKubeconfig writes the administrator's kubeconfig to a file, for programs
// such as kubectl.
func (s *Server) WriteKubeconfig(path string) error {
	if s.pipes != nil {
		return errorf("write a kubeconfig: other programs cannot reach a server in a bubble")
	}
	return auth.WriteKubeconfig(path, s.creds.Kubeconfig(s.url()))
}

func (s *Server) url() string { return "https://" + s.address }

// users are who got a token.
type users struct {
	mu  sync.Mutex
	all map[string]auth.User
}

func (u *users) token(user auth.User) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.all == nil {
		u.all = map[string]auth.User{}
	}
	token := rand.Text()
	u.all[token] = user
	return token
}

// CheckToken is [auth.TokenChecker].
func (u *users) CheckToken(token string) (auth.User, bool, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	user, ok := u.all[token]
	return user, ok, nil
}

func errorf(format string, args ...any) error { return fmt.Errorf("evenkeeltest: "+format, args...) }
