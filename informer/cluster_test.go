package informer_test

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
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/server"
	"github.com/even-keel/evenkeel/server/auth"
	"github.com/even-keel/evenkeel/server/bootstrap"
	"github.com/even-keel/evenkeel/storage"
	"github.com/even-keel/evenkeel/storage/embedded"
)

// cluster is a server of ours on memory.
type cluster struct {
	url   string
	ca    []byte
	store storage.Store
	stop  func() error
}

const masterToken = "master-token"

// theCluster is shared by all tests; each has a namespace of its own.
var theCluster *cluster

func TestMain(m *testing.M) {
	before := runtime.NumGoroutine()
	var err error
	if theCluster, err = startCluster(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := theCluster.stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	closeIdle()
	if stacks := leftBehind(before); stacks != "" {
		fmt.Fprintln(os.Stderr, "goroutines are left behind:\n"+stacks)
		code = 1
	}
	os.Exit(code)
}

// leftBehind returns the stacks of all goroutines, if there are more of ours than
// before, also after a while.
func leftBehind(before int) string {
	for range 200 {
		if runtime.NumGoroutine() <= before {
			return ""
		}
		time.Sleep(10 * time.Millisecond)
	}
	all := make([]byte, 1<<20)
	stacks := string(all[:runtime.Stack(all, true)])
	if !strings.Contains(stacks, "evenkeel/informer.") {
		return "" // connections of the test's own clients
	}
	return stacks
}

func startCluster() (*cluster, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	store, err := embedded.Open(embedded.Options{Memory: true})
	if err != nil {
		return nil, err
	}
	credentials, err := auth.NewCredentials(auth.CredentialOptions{Hosts: []string{listener.Addr().String()}})
	if err != nil {
		return nil, err
	}
	static, err := auth.ParseTokens(strings.NewReader(masterToken + `,admin,1,"system:masters"` + "\n"))
	if err != nil {
		return nil, err
	}
	s := server.New(server.Config{
		Store: store, Listener: listener, TLS: auth.ServerTLS(credentials.Serving, credentials.Pool()),
		Authenticator: auth.BearerTokens(static), Authorizer: auth.MastersOnly(),
		Bootstrap: bootstrap.Objects(bootstrap.Options{}), Version: version.Info{Major: "1", Minor: "37"},
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	<-s.Ready()
	return &cluster{
		url: "https://" + listener.Addr().String(), ca: credentials.CAPEM, store: store,
		stop: sync.OnceValue(func() error {
			cancel()
			if err := <-done; err != nil {
				return err
			}
			return store.Close()
		}),
	}, nil
}

func (c *cluster) config() *rest.Config {
	return &rest.Config{Host: c.url, BearerToken: masterToken, TLSClientConfig: rest.TLSClientConfig{CAData: c.ca}}
}

// closers close the connections that tests made.
var closers struct {
	sync.Mutex
	all []func()
}

func closeIdle() {
	for _, c := range closers.all {
		c()
	}
}

// connect returns a connection, through a transport if one is given.
func connect(t testing.TB, through func(http.RoundTripper) http.RoundTripper) *client.Conn {
	t.Helper()
	cfg := theCluster.config()
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		if c, ok := rt.(interface{ CloseIdleConnections() }); ok {
			closers.Lock()
			closers.all = append(closers.all, c.CloseIdleConnections)
			closers.Unlock()
		}
		if through != nil {
			return through(rt)
		}
		return rt
	})
	conn, err := client.Connect(cfg, client.Retries(0))
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// namespace makes a namespace for a test alone.
func namespace(t testing.TB, conn *client.Conn) string {
	t.Helper()
	ns, err := client.Of[*corev1.Namespace](conn).Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}})
	if err != nil {
		t.Fatal(err)
	}
	return ns.Name
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}}, Data: data}
}
