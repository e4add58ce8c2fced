package client_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
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
	"github.com/even-keel/evenkeel/storage/embedded"
)

// cluster is a server of ours on memory, with TLS, tokens and certificates.
type cluster struct {
	url         string
	credentials *auth.Credentials
	stop        func() error
}

const (
	masterToken = "master-token"
	nobodyToken = "nobody-token"
)

// theCluster is shared by all tests; each has a namespace of its own.
var theCluster *cluster

func TestMain(m *testing.M) {
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
	os.Exit(code)
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
	static, err := auth.ParseTokens(strings.NewReader(masterToken + `,admin,1,"system:masters"` + "\n" + nobodyToken + ",somebody,2"))
	if err != nil {
		return nil, err
	}
	issuer, err := auth.NewTokenIssuer(auth.IssuerOptions{Key: credentials.SigningKey})
	if err != nil {
		return nil, err
	}
	s := server.New(server.Config{
		Store: store, Listener: listener, TLS: auth.ServerTLS(credentials.Serving, credentials.Pool()),
		Authenticator: auth.Union(auth.ClientCertificates(time.Now), auth.BearerTokens(static, issuer)), Authorizer: auth.MastersOnly(),
		Tokens:    issuer,
		Bootstrap: bootstrap.Objects(bootstrap.Options{}), Version: version.Info{Major: "1", Minor: "37"},
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	<-s.Ready()
	return &cluster{
		url: "https://" + listener.Addr().String(), credentials: credentials,
		stop: sync.OnceValue(func() error {
			cancel()
			if err := <-done; err != nil {
				return err
			}
			return store.Close()
		}),
	}, nil
}

// config is a master's, by token.
func (c *cluster) config() *rest.Config {
	return &rest.Config{Host: c.url, BearerToken: masterToken, TLSClientConfig: rest.TLSClientConfig{CAData: c.credentials.CAPEM}}
}

// connect returns a connection, and a namespace for the test alone.
func connect(t testing.TB, opts ...client.Option) (*client.Conn, string) {
	t.Helper()
	return connectAs(t, theCluster.config(), opts...)
}

func connectAs(t testing.TB, cfg *rest.Config, opts ...client.Option) (*client.Conn, string) {
	t.Helper()
	conn, err := client.Connect(cfg, opts...)
	if err != nil {
		t.Fatal(err)
	}
	direct, err := client.Connect(theCluster.config())
	if err != nil {
		t.Fatal(err)
	}
	ns, err := client.Of[*corev1.Namespace](direct).Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}})
	if err != nil {
		t.Fatal(err)
	}
	return conn, ns.Name
}

// jsonOnly is a configuration without protobuf.
func jsonOnly(cfg *rest.Config) *rest.Config {
	cfg.ContentType = "application/json"
	return cfg
}

// inFront puts a handler in front of the server, and returns a configuration for
// it. handle answers a request, or hands it on to the server.
func inFront(t testing.TB, handle func(w http.ResponseWriter, r *http.Request, server http.Handler)) *rest.Config {
	t.Helper()
	target, err := url.Parse(theCluster.url)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(theCluster.credentials.CAPEM)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport, proxy.FlushInterval = transport, -1
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handle(w, r, proxy) }))
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
		transport.CloseIdleConnections()
	})
	return &rest.Config{Host: front.URL, BearerToken: masterToken}
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}}, Data: data}
}

// makeMaps creates config maps that are called by a prefix and a number.
func makeMaps(t testing.TB, maps *client.Client[*corev1.ConfigMap], prefix string, n int) {
	t.Helper()
	for i := range n {
		if _, err := maps.Create(t.Context(), configMap(fmt.Sprintf("%s-%03d", prefix, i), map[string]string{"n": fmt.Sprint(i)})); err != nil {
			t.Fatal(err)
		}
	}
}

func must[T any](t testing.TB) func(v T, err error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func names[T client.Object](objects []T) string {
	var all []string
	for _, o := range objects {
		all = append(all, o.GetName())
	}
	return strings.Join(all, " ")
}
