package server_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/even-keel/evenkeel/server"
)

// overHTTP2 starts a server with TLS and returns it with a client that has one
// connection to it, whose streams take no more than 64 KiB that nobody reads.
func overHTTP2(t *testing.T) (*running, *http.Transport) {
	t.Helper()
	identity := httptest.NewTLSServer(nil)
	t.Cleanup(identity.Close)
	r := start(t, memoryStore(t), func(c *server.Config) {
		c.TLS = &tls.Config{Certificates: identity.TLS.Certificates, MinVersion: tls.VersionTLS13}
	})
	trust := identity.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: trust, ServerName: "example.com", MinVersion: tls.VersionTLS13},
		ForceAttemptHTTP2: true, MaxConnsPerHost: 1,
		HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10},
	}
	t.Cleanup(transport.CloseIdleConnections)
	r.url = "https://" + r.address
	return r, transport
}

func send(t *testing.T, over *http.Transport, method, url, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+master)
	req.Header.Set("Content-Type", "application/json")
	resp, err := over.RoundTrip(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	if resp.ProtoMajor != 2 || resp.StatusCode >= 300 {
		t.Fatalf("%s %s: %s %s", method, url, resp.Proto, resp.Status)
	}
	return resp
}

func TestAWatcherThatDoesNotReadHoldsUpNobodyOnItsConnection(t *testing.T) {
	r, over := overHTTP2(t)
	watch := send(t, over, "GET", r.url+configMaps+"?watch=1&resourceVersion=1", "")
	defer func() { _ = watch.Body.Close() }()

	const objects = 100 // several times what the stream takes
	data := strings.Repeat("x", 5000)
	begun := time.Now()
	for i := range objects {
		body := fmt.Sprintf(`{"metadata":{"name":"object-%d"},"data":{"x":%q}}`, i, data)
		_ = send(t, over, "POST", r.url+configMaps, body).Body.Close()
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("%d requests beside the watch took %v", objects, took)
	}
	lines := bufio.NewReaderSize(watch.Body, 1<<20)
	for i := range objects {
		line, err := lines.ReadString('\n')
		if want := fmt.Sprintf(`"name":"object-%d"`, i); err != nil || !strings.Contains(line, want) {
			t.Fatalf("event %d: %v, %.200s", i, err, line)
		}
	}
}

func TestAnEventAfterAWhileComesAtOnce(t *testing.T) {
	r, over := overHTTP2(t)
	watch := send(t, over, "GET", r.url+configMaps+"?watch=1&resourceVersion=1", "")
	defer func() { _ = watch.Body.Close() }()
	lines := bufio.NewReader(watch.Body)
	for i := range 5 {
		_ = send(t, over, "POST", r.url+configMaps, fmt.Sprintf(`{"metadata":{"name":"object-%d"}}`, i)).Body.Close()
		got := make(chan error, 1)
		go func() {
			_, err := lines.ReadString('\n')
			got <- err
		}()
		select {
		case err := <-got:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(5 * time.Second):
			t.Fatal("the event did not come without another")
		}
	}
}
