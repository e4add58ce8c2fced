package evenkeeltest

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/server"
	"github.com/even-keel/evenkeel/server/auth"
	"github.com/even-keel/evenkeel/server/bootstrap"
	"github.com/even-keel/evenkeel/storage"
	"github.com/even-keel/evenkeel/storage/embedded"
)

// Env is a server for a test. Make one with [Start].
type Env struct {
	t       testing.TB
	options options
	store   storage.Store
	creds   *auth.Credentials
	tokens  *auth.TokenIssuer
	address string

	// mu guards what a restart changes.
	mu       sync.Mutex
	listener *cutter
	// stop ends the server; cut has it not wait for its clients.
	stop func(cut bool) error

	conn func() *client.Conn
}

// Option changes what [Start] starts.
type Option func(*options)

type options struct {
	crds   []string
	logger *slog.Logger
}

// CRDs applies the manifests in files or folders, and waits until what they
// define is served.
func CRDs(paths ...string) Option {
	return func(o *options) { o.crds = append(o.crds, paths...) }
}

// Logger gets what the server logs; without it nobody does.
func Logger(l *slog.Logger) Option { return func(o *options) { o.logger = l } }

// sharedCredentials are made once a process: making keys is most of the work of
// a start.
var sharedCredentials = sync.OnceValues(func() (*auth.Credentials, error) {
	return auth.NewCredentials(auth.CredentialOptions{Hosts: []string{"127.0.0.1"}})
})

// Start starts a server. It is stopped when the test ends.
func Start(t testing.TB, opts ...Option) *Env {
	t.Helper()
	e := &Env{t: t}
	for _, opt := range opts {
		opt(&e.options)
	}
	if err := e.open(); err != nil {
		t.Fatalf("evenkeeltest: start the server: %v", err)
	}
	e.conn = sync.OnceValue(e.connect)
	t.Cleanup(e.close)
	if len(e.options.crds) > 0 {
		e.ApplyFiles(e.options.crds...)
		e.awaitDefinitions()
	}
	return e
}

func (e *Env) open() (err error) {
	if e.creds, err = sharedCredentials(); err != nil {
		return err
	}
	if e.tokens, err = auth.NewTokenIssuer(auth.IssuerOptions{Key: e.creds.SigningKey}); err != nil {
		return err
	}
	if e.store, err = embedded.Open(embedded.Options{Memory: true}); err != nil {
		return err
	}
	return e.run("127.0.0.1:0")
}

// run serves the store at an address.
func (e *Env) run(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	e.address = l.Addr().String()
	e.listener = newCutter(l)
	at, err := netip.ParseAddrPort(e.address)
	if err != nil {
		return err
	}
	s := server.New(server.Config{
		Store: e.store, Listener: e.listener, TLS: auth.ServerTLS(e.creds.Serving, e.creds.Pool()),
		Authenticator: auth.Union(auth.ClientCertificates(time.Now), auth.BearerTokens(e.tokens)), Authorizer: auth.MastersOnly(),
		Tokens: e.tokens, ReviewToken: auth.Review(e.tokens),
		Bootstrap: bootstrap.All(bootstrap.Options{Port: int32(at.Port()), ClientCA: e.creds.CAPEM, RootCA: e.creds.CAPEM}),
		Version:   version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.2+evenkeel"},
		Logger:    e.options.logger,
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	select {
	case <-s.Ready():
	case err := <-done:
		cancel()
		return err
	}
	e.stop = func(cut bool) error {
		cancel()
		if cut {
			e.listener.cut()
		}
		return <-done
	}
	return nil
}

func (e *Env) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stop != nil {
		if err := e.stop(true); err != nil {
			e.t.Errorf("evenkeeltest: the server ended with: %v", err)
		}
	}
	if err := e.store.Close(); err != nil {
		e.t.Errorf("evenkeeltest: close the store: %v", err)
	}
}

// Config returns how the administrator reaches the server. It is the caller's
// own.
func (e *Env) Config() *rest.Config { return e.ConfigFor("admin", "system:masters") }

// ConfigFor returns how a user of some groups reaches the server.
func (e *Env) ConfigFor(user string, groups ...string) *rest.Config {
	e.t.Helper()
	cert, key, err := e.creds.IssueClient(user, groups...)
	if err != nil {
		e.t.Fatalf("evenkeeltest: make a certificate of %s: %v", user, err)
	}
	return &rest.Config{
		Host:            "https://" + e.address,
		TLSClientConfig: rest.TLSClientConfig{CAData: e.creds.CAPEM, CertData: cert, KeyData: key},
	}
}

// Conn returns a connection of the administrator, always the same.
func (e *Env) Conn() *client.Conn { return e.conn() }

func (e *Env) connect() *client.Conn {
	conn, err := client.Connect(e.Config())
	if err != nil {
		e.t.Fatalf("evenkeeltest: connect: %v", err)
	}
	return conn
}

// Kubeconfig writes the administrator's kubeconfig to a file, for programs such
// as kubectl, and returns its path.
func (e *Env) Kubeconfig() string {
	e.t.Helper()
	path := filepath.Join(e.t.TempDir(), "kubeconfig")
	text, err := e.creds.Kubeconfig("https://" + e.address).Encode()
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		e.t.Fatalf("evenkeeltest: write a kubeconfig: %v", err)
	}
	return path
}

// Restart stops the server, calls between if it is not nil, and starts it anew
// on the same state and address.
func (e *Env) Restart(between func()) {
	e.t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.stop(false); err != nil {
		e.t.Fatalf("evenkeeltest: stop the server: %v", err)
	}
	e.stop = nil
	if between != nil {
		between()
	}
	if err := e.run(e.address); err != nil {
		e.t.Fatalf("evenkeeltest: start the server again: %v", err)
	}
}

// Cut breaks all connections to the server, in the middle of what they carry.
func (e *Env) Cut() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.listener.cut()
}

func errorf(format string, args ...any) error { return fmt.Errorf("evenkeeltest: "+format, args...) }
