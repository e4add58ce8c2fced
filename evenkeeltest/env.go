package evenkeeltest

import (
	"context"
	"path/filepath"
	"sync"
	"testing"

	"github.com/even-keel/evenkeel/client"
)

// Env is a server for a test. Make one with [Start].
type Env struct {
	*Server
	t testing.TB

	// failed is closed when something that Run runs has failed.
	failed chan struct{}
	fail   func()
}

// Start starts a server. It is stopped when the test ends.
func Start(t testing.TB, opts ...Option) *Env {
	t.Helper()
	s, err := Open(opts...)
	if err != nil {
		t.Fatal(err)
	}
	e := &Env{Server: s, t: t, failed: make(chan struct{})}
	e.fail = sync.OnceFunc(func() { close(e.failed) })
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// Conn returns a connection of the administrator, always the same.
func (e *Env) Conn() *client.Conn {
	e.t.Helper()
	conn, err := e.conn()
	if err != nil {
		e.t.Fatalf("evenkeeltest: connect: %v", err)
	}
	return conn
}

// Cut is [Server.Cut], after which the connection that [Env.Conn] returns is a new
// one: the test's own next write does not fail for it.
func (e *Env) Cut() {
	e.t.Helper()
	e.Server.Cut()
	if _, err := e.Conn().Get(context.Background(), "/version"); err != nil { // a read is sent again
		e.t.Fatalf("evenkeeltest: connect again: %v", err)
	}
}

// Kubeconfig writes the administrator's kubeconfig to a file, for programs such
// as kubectl, and returns its path.
func (e *Env) Kubeconfig() string {
	e.t.Helper()
	path := filepath.Join(e.t.TempDir(), "kubeconfig")
	if err := e.WriteKubeconfig(path); err != nil {
		e.t.Fatal(err)
	}
	return path
}

// Restart stops the server, calls between if it is not nil, and starts it anew
// on the same state and address.
func (e *Env) Restart(between func()) {
	e.t.Helper()
	if err := e.Stop(); err != nil {
		e.t.Fatal(err)
	}
	if between != nil {
		between()
	}
	if err := e.Start(); err != nil {
		e.t.Fatal(err)
	}
}
