package wire

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/version"

	"github.com/even-keel/evenkeel/server"
	"github.com/even-keel/evenkeel/server/auth"
	"github.com/even-keel/evenkeel/server/bootstrap"
	"github.com/even-keel/evenkeel/storage/embedded"
)

// masterToken is what the replay's client says it is.
const masterToken = "wire-master"

// startServer starts our API server for TestReplay and stops it when the test
// ends. client is authenticated as a user in system:masters, anonymous has no
// credentials, compact compacts the server's history up to now.
var startServer = func(t *testing.T) (baseURL string, client, anonymous *http.Client, compact func() error) {
	t.Helper()
	store, err := embedded.Open(embedded.Options{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := auth.ParseTokens(strings.NewReader(masterToken + `,wire,1,"system:masters"`))
	if err != nil {
		t.Fatal(err)
	}
	credentials, err := auth.NewCredentials(auth.CredentialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	issuer, err := auth.NewTokenIssuer(auth.IssuerOptions{Key: credentials.SigningKey})
	if err != nil {
		t.Fatal(err)
	}
	s := server.New(server.Config{
		Tokens: issuer,
		Store:  store, Listener: listener,
		Authenticator: auth.Union(auth.BearerTokens(tokens)),
		Authorizer:    auth.MastersOnly(),
		Bootstrap:     bootstrap.Objects(bootstrap.Options{}),
		Version:       version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.2"},
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the server ended with %v", err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	select {
	case <-s.Ready():
	case err := <-done:
		done <- err
		t.Fatalf("the server did not start: %v", err)
	}
	compact = func() error { return s.Compact(context.Background()) }
	return "http://" + listener.Addr().String(), &http.Client{Transport: bearer{masterToken}}, &http.Client{}, compact
}

// bearer adds a token to requests that have none.
type bearer struct{ token string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Authorization") == "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return http.DefaultTransport.RoundTrip(r)
}
