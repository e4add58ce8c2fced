package events_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
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

// The tests run our server, whole, in a bubble of synctest: over a network in
// memory, where time passes when all wait. An hour of events takes no time, and
// a goroutine that is left behind fails the test.

func TestMain(m *testing.M) {
	before := runtime.NumGoroutine()
	code := m.Run()
	if stacks := leftBehind(before); stacks != "" {
		fmt.Fprintln(os.Stderr, "goroutines are left behind:\n"+stacks)
		code = 1
	}
	os.Exit(code)
}

// leftBehind returns the stacks of all goroutines, if there are more than before,
// also after a while, and some are ours.
func leftBehind(before int) string {
	for range 200 {
		if runtime.NumGoroutine() <= before {
			return ""
		}
		time.Sleep(10 * time.Millisecond)
	}
	all := make([]byte, 1<<20)
	stacks := string(all[:runtime.Stack(all, true)])
	if !strings.Contains(stacks, "evenkeel/events.") {
		return ""
	}
	return stacks
}

// cluster is a server of ours on memory, which can be stopped and started again.
type cluster struct {
	store       storage.Store
	credentials *auth.Credentials
	closers     []func()

	mu      sync.Mutex
	network *pipes // nil while it does not run
	stop    func() error
}

const (
	masterToken = "master-token"
	nobodyToken = "nobody-token"
)

func newCluster() (*cluster, error) {
	store, err := embedded.Open(embedded.Options{Memory: true})
	if err != nil {
		return nil, err
	}
	credentials, err := auth.NewCredentials(auth.CredentialOptions{Hosts: []string{"127.0.0.1"}})
	if err != nil {
		return nil, err
	}
	c := &cluster{store: store, credentials: credentials}
	return c, c.start()
}

func (c *cluster) start() error {
	static, err := auth.ParseTokens(strings.NewReader(masterToken + `,admin,1,"system:masters"` + "\n" + nobodyToken + ",somebody,2\n"))
	if err != nil {
		return err
	}
	network := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	s := server.New(server.Config{
		Store: c.store, Listener: network, TLS: auth.ServerTLS(c.credentials.Serving, c.credentials.Pool()),
		Authenticator: auth.BearerTokens(static), Authorizer: auth.MastersOnly(),
		Bootstrap: bootstrap.Objects(bootstrap.Options{}), Version: version.Info{Major: "1", Minor: "37"},
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	<-s.Ready()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.network = network
	c.stop = func() error {
		c.mu.Lock()
		c.network = nil
		c.mu.Unlock()
		cancel()
		return <-done
	}
	return nil
}

func (c *cluster) close() error {
	for _, f := range c.closers {
		f()
	}
	if err := c.stop(); err != nil {
		return err
	}
	return c.store.Close()
}

// connect returns a connection of one who may do everything, through a transport if
// one is given.
func (c *cluster) connect(through func(http.RoundTripper) http.RoundTripper) (*client.Conn, error) {
	return client.Connect(c.config(masterToken, through))
}

func (c *cluster) config(token string, through func(http.RoundTripper) http.RoundTripper) *rest.Config {
	cfg := &rest.Config{
		Host: "https://127.0.0.1", BearerToken: token, Dial: c.dial,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.credentials.CAPEM},
	}
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		if idle, ok := rt.(interface{ CloseIdleConnections() }); ok {
			c.closers = append(c.closers, idle.CloseIdleConnections)
		}
		if through != nil {
			return through(rt)
		}
		return rt
	})
	return cfg
}

func (c *cluster) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	c.mu.Lock()
	network := c.network
	c.mu.Unlock()
	if network == nil {
		return nil, fmt.Errorf("dial: connection refused")
	}
	return network.dial(ctx)
}

// pipes is a network in memory.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 443} }

func (p *pipes) dial(ctx context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-p.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// inBubble runs a test with a server of its own.
func inBubble(t *testing.T, test func(t *testing.T, c *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c, err := newCluster()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := c.close(); err != nil {
				t.Error(err)
			}
		})
		test(t, c)
	})
}
