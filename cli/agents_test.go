package cli

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/even-keel/evenkeel/server/auth"
)

// newCredentials are those of a cluster.
func newCredentials(t *testing.T) *auth.Credentials {
	t.Helper()
	c, err := auth.NewCredentials(auth.CredentialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// startAgent runs what an agent serves, for API servers of a cluster.
func startAgent(t *testing.T, serving tls.Certificate, cluster *auth.Credentials) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	logs := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "a log") })
	go func() {
		done <- serveAgent(ctx, l, apiServerOnly(serving, cluster.Pool()), logs, slog.New(slog.DiscardHandler))
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the agent ended with %v", err)
		}
	})
	return l.Addr().String()
}

// nodeAt is a node that says that its agent is somewhere.
func nodeAt(t *testing.T, address string, annotations map[string]string) *corev1.Node {
	t.Helper()
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		t.Fatal(err)
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: annotations}}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "n"}, {Type: corev1.NodeInternalIP, Address: at.Addr().String()}}
	n.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(at.Port())
	return n
}

// askAgent asks the agent of a node as the API server of a cluster does.
func askAgent(t *testing.T, cluster *auth.Credentials, node *corev1.Node, here func(string) (string, bool)) (string, error) {
	t.Helper()
	find, err := findAgents(cluster, here)
	if err != nil {
		t.Fatal(err)
	}
	to, through, err := find(node)
	if err != nil {
		return "", err
	}
	resp, err := (&http.Client{Transport: through}).Get(to.String())
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

func nowhere(string) (string, bool) { return "", false }

func TestAgentsAreAsked(t *testing.T) {
	cluster, own := newCredentials(t), newCredentials(t)
	inProcess := startAgent(t, cluster.Serving, cluster)
	apart := startAgent(t, own.Serving, cluster)
	told := map[string]string{fingerprintAnnotation: fingerprintOf(own.Serving.Certificate[0])}
	for name, c := range map[string]struct {
		node *corev1.Node
		here func(string) (string, bool)
		want string // of the error
	}{
		"in this process":                   {nodeAt(t, "127.0.0.1:1", nil), func(string) (string, bool) { return inProcess, true }, ""},
		"with a certificate of the cluster": {nodeAt(t, inProcess, nil), nowhere, ""},
		"with the certificate that is told": {nodeAt(t, apart, told), nowhere, ""},
		"with a certificate of its own":     {nodeAt(t, apart, nil), nowhere, "certificate signed by unknown authority"},
		"with another than is told":         {nodeAt(t, inProcess, told), nowhere, "its node tells of"},
		"that serves nothing":               {&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, nowhere, `node "n" serves no logs`},
		"that has no address":               {&corev1.Node{Status: corev1.NodeStatus{DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: 1}}}}, nowhere, "has no address"},
		"at a port where nobody listens":    {nodeAt(t, "127.0.0.1:1", nil), nowhere, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := askAgent(t, cluster, c.node, c.here)
			if c.want == "" && (err != nil || got != "a log") || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestAgentsLetInAPIServersOnly(t *testing.T) {
	cluster, other := newCredentials(t), newCredentials(t)
	address := startAgent(t, cluster.Serving, cluster)
	certificate := func(c *auth.Credentials, user string, groups ...string) []tls.Certificate {
		cert, key, err := c.IssueClient(user, groups...)
		if err != nil {
			t.Fatal(err)
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		return []tls.Certificate{pair}
	}
	for name, c := range map[string]struct {
		shows []tls.Certificate
		let   bool
	}{
		"the cluster's":       {certificate(cluster, apiServerUser, auth.GroupMasters), true},
		"another cluster's":   {certificate(other, apiServerUser, auth.GroupMasters), false},
		"a user":              {certificate(cluster, "ann", "developers"), false},
		"one of its name":     {certificate(cluster, apiServerUser), false},
		"without certificate": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: cluster.Pool(), Certificates: c.shows}, DisableKeepAlives: true}
			resp, err := (&http.Client{Transport: transport}).Get("https://" + address)
			if err == nil {
				_ = resp.Body.Close()
			}
			if (err == nil) != c.let {
				t.Errorf("%v, want it to be let in: %v", err, c.let)
			}
		})
	}
}
