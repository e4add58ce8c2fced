package webhook_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/rest"

	"github.com/even-keel/evenkeel/client"
	"github.com/even-keel/evenkeel/evenkeeltest"
	"github.com/even-keel/evenkeel/webhook"
)

func TestMain(m *testing.M) { evenkeeltest.Main(m) }

var quiet = slog.New(slog.DiscardHandler)

// offline is a connection that nothing is sent through.
func offline(t testing.TB) *client.Conn {
	t.Helper()
	conn, err := client.Connect(&rest.Config{Host: "https://192.0.2.1"})
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// run runs a server until the test ends or stop is called, which waits for it. It
// returns when the server is ready.
func run(t *testing.T, s *webhook.Server) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	stopped := false
	stop = func() {
		if cancel(); !stopped {
			stopped = true
			if err := <-ended; err != nil {
				t.Errorf("the server ended with: %v", err)
			}
		}
	}
	t.Cleanup(stop)
	eventually(t, s.Ready)
	return stop
}

// eventually waits until there is nothing wrong.
func eventually(t *testing.T, ask func() error) {
	t.Helper()
	late := time.After(evenkeeltest.DefaultPatience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ask()
		if err == nil {
			return
		}
		select {
		case <-late:
			t.Fatal(err)
		case <-tick.C:
		}
	}
}

// caller is an API server, as far as a webhook can tell.
type caller struct {
	url  string
	http *http.Client
}

// newCaller trusts a bundle in PEM.
func newCaller(t testing.TB, url string, bundle []byte, http1 bool) *caller {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		t.Fatalf("no CA in %q", bundle)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: !http1}
	t.Cleanup(transport.CloseIdleConnections)
	return &caller{url, &http.Client{Transport: transport}}
}

// callerOf calls the only mutating webhook that is registered under a name, and
// validatingCallerOf the validating one.
func callerOf(t testing.TB, conn *client.Conn, name string) *caller {
	t.Helper()
	c, err := client.Of[*admissionregistrationv1.MutatingWebhookConfiguration](conn).Get(t.Context(), client.Key{Name: name})
	if err != nil || len(c.Webhooks) != 1 {
		t.Fatalf("%v, %v", c, err)
	}
	return newCaller(t, *c.Webhooks[0].ClientConfig.URL, c.Webhooks[0].ClientConfig.CABundle, false)
}

func validatingCallerOf(t testing.TB, conn *client.Conn, name string) *caller {
	t.Helper()
	c, err := client.Of[*admissionregistrationv1.ValidatingWebhookConfiguration](conn).Get(t.Context(), client.Key{Name: name})
	if err != nil || len(c.Webhooks) != 1 {
		t.Fatalf("%v, %v", c, err)
	}
	return newCaller(t, *c.Webhooks[0].ClientConfig.URL, c.Webhooks[0].ClientConfig.CABundle, false)
}

// post sends a body as API servers do, and returns the answer with its status.
func (c *caller) post(t testing.TB, body []byte) (*http.Response, []byte) {
	t.Helper()
	resp, err := c.http.Post(c.url+"?timeout=10s", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, out
}

// review sends an AdmissionReview, and returns the response, which has to be one.
func (c *caller) review(t testing.TB, body []byte) *admissionv1.AdmissionResponse {
	t.Helper()
	resp, text := c.post(t, body)
	var in, out admissionv1.AdmissionReview
	if err := json.Unmarshal(text, &out); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", resp.Status, text)
	}
	if err := json.Unmarshal(body, &in); err != nil {
		t.Fatal(err)
	}
	if out.GroupVersionKind() != in.GroupVersionKind() || out.Response == nil || out.Response.UID != in.Request.UID || out.Request != nil {
		t.Fatalf("an API server refuses %s", text)
	}
	return out.Response
}

func writeFile(t testing.TB, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// serve has a server answer without a network.
func serve(t testing.TB, s *webhook.Server, path string, body []byte) (int, []byte) {
	t.Helper()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body)))
	return w.Code, w.Body.Bytes()
}

func applyPatch(t testing.TB, doc, patch []byte) []byte {
	t.Helper()
	p, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		t.Fatalf("%s: %v", patch, err)
	}
	out, err := p.Apply(doc)
	if err != nil {
		t.Fatalf("apply %s to %s: %v", patch, doc, err)
	}
	return out
}
