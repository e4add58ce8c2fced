package auth

import (
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// noon is the time in tests.
var noon = time.Date(2030, 5, 17, 12, 0, 0, 0, time.UTC)

func at(t time.Time) func() time.Time { return func() time.Time { return t } }

const tokenFile = `t-alice,alice,1001,"devs, ops"
t-bob,bob,1002
t-root,root,0,system:masters
`

func mustTokens(t *testing.T) *StaticTokens {
	t.Helper()
	tokens, err := ParseTokens(strings.NewReader(tokenFile))
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

func TestBearerTokens(t *testing.T) {
	everyone := Union(ClientCertificates(time.Now), BearerTokens(mustTokens(t)))
	anonymous := User{Name: "system:anonymous", Groups: []string{"system:unauthenticated"}}
	tests := map[string]struct {
		header string
		want   User
		err    error
	}{
		"no credentials":            {"", anonymous, nil},
		"a known token":             {"Bearer t-alice", User{Name: "alice", UID: "1001", Groups: []string{"devs", "ops", "system:authenticated"}}, nil},
		"a user without groups":     {"Bearer t-bob", User{Name: "bob", UID: "1002", Groups: []string{"system:authenticated"}}, nil},
		"the scheme in small":       {"bearer  t-bob ", User{Name: "bob", UID: "1002", Groups: []string{"system:authenticated"}}, nil},
		"an unknown token":          {"Bearer nope", User{}, ErrUnauthorized},
		"the start of a token":      {"Bearer t-ali", User{}, ErrUnauthorized},
		"a token and more":          {"Bearer t-alice t-bob", User{}, ErrUnauthorized},
		"a scheme that is not ours": {"Basic dDphbGljZQ==", anonymous, nil},
		"no token":                  {"Bearer ", anonymous, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/", nil)
			r.Header.Set("Authorization", tt.header)
			got, ok, err := everyone.Authenticate(r)
			if !errors.Is(err, tt.err) || ok != (tt.err == nil) {
				t.Fatalf("ok %v, error %v, want %v", ok, err, tt.err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnionDoesNotChangeTheUsersItIsGiven(t *testing.T) {
	groups := append(make([]string, 0, 8), "g")
	all := Union(AuthenticatorFunc(func(*http.Request) (User, bool, error) { return User{Name: "x", Groups: groups}, true, nil }))
	for range 2 {
		u, _, _ := all.Authenticate(httptest.NewRequest("GET", "/", nil))
		if diff := cmp.Diff([]string{"g", "system:authenticated"}, u.Groups); diff != "" {
			t.Error(diff)
		}
	}
	if len(groups) != 1 || groups[:2][1] != "" {
		t.Errorf("the authenticator's own groups are now %q", groups[:2])
	}
}

func TestUnionTakesGoodCredentialsBesideBadOnes(t *testing.T) {
	bad := AuthenticatorFunc(func(*http.Request) (User, bool, error) { return User{}, false, ErrUnauthorized })
	good := AuthenticatorFunc(func(*http.Request) (User, bool, error) { return User{Name: "x"}, true, nil })
	u, ok, err := Union(bad, good).Authenticate(httptest.NewRequest("GET", "/", nil))
	if u.Name != "x" || !ok || err != nil {
		t.Errorf("%+v, %v, %v", u, ok, err)
	}
}

func TestTokenFileErrorsNameTheLine(t *testing.T) {
	tests := map[string]struct{ file, want string }{
		"too few columns":        {"a,b,c\nd,e\n", `line 2: want 3 or 4 columns (token,user,uid,"group1,group2"), found 2`},
		"groups without quotes":  {"a,b,c,g1,g2\n", `line 1: want 3 or 4 columns (token,user,uid,"group1,group2"), found 5`},
		"no token":               {"a,b,c\n\n,e,f\n", "line 3: the token or the user is empty"},
		"no user":                {"a,,c\n", "line 1: the token or the user is empty"},
		"the same token twice":   {"same,b,c\nx,y,z\nsame,e,f\n", "line 3: has the same token as line 1"},
		"a quote that is a typo": {"a,b,c\nd,\"e,f\n", `parse error on line 2, column 8: extraneous or missing " in quoted-field`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := ParseTokens(strings.NewReader(tt.file))
			if err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "same,") {
				t.Error("the error shows a token")
			}
		})
	}
	if _, err := ReadTokenFile(t.TempDir() + "/none"); err == nil {
		t.Error("a file that is not there is read")
	}
}

// tlsServer tells each client who it is.
func tlsServer(t *testing.T, c *Credentials, clock func() time.Time) *httptest.Server {
	t.Helper()
	authenticator := Union(ClientCertificates(clock), BearerTokens(mustTokens(t)))
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u, _, err := authenticator.Authenticate(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		io.WriteString(w, u.Name+" "+strings.Join(u.Groups, ","))
	}))
	web.TLS = ServerTLS(c.Serving, c.Pool())
	web.Config.ErrorLog = log.New(io.Discard, "", 0) // failed handshakes are the point
	web.StartTLS()
	t.Cleanup(web.Close)
	return web
}

// whoami asks a server with a client certificate that is offered whatever the
// server asks for.
func whoami(t *testing.T, web *httptest.Server, trust *Credentials, certPEM, keyPEM []byte) (string, error) {
	t.Helper()
	config := &tls.Config{RootCAs: trust.Pool()}
	if certPEM != nil {
		pair, err := tls.X509KeyPair(certPEM, keyPEM)
		if err != nil {
			t.Fatal(err)
		}
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	transport := &http.Transport{TLSClientConfig: config}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Get(web.URL)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return strings.TrimSpace(string(body)), err
}

func mustCredentials(t *testing.T, o CredentialOptions) *Credentials {
	t.Helper()
	c, err := NewCredentials(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestClientCertificates(t *testing.T) {
	ours, other := mustCredentials(t, CredentialOptions{}), mustCredentials(t, CredentialOptions{})
	web := tlsServer(t, ours, time.Now)

	t.Run("the administrator", func(t *testing.T) {
		got, err := whoami(t, web, ours, ours.AdminCertPEM, ours.AdminKeyPEM)
		if want := "kubernetes-admin system:masters,system:authenticated"; got != want || err != nil {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	})
	t.Run("a user with groups", func(t *testing.T) {
		cert, key, err := ours.IssueClient("alice", "devs", "ops")
		if err != nil {
			t.Fatal(err)
		}
		got, err := whoami(t, web, ours, cert, key)
		// A certificate has its organizations as a set, in an order of its own.
		if want := "alice ops,devs,system:authenticated"; got != want || err != nil {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	})
	t.Run("no certificate", func(t *testing.T) {
		got, err := whoami(t, web, ours, nil, nil)
		if want := "system:anonymous system:unauthenticated"; got != want || err != nil {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	})
	t.Run("another CA's certificate", func(t *testing.T) {
		if got, err := whoami(t, web, ours, other.AdminCertPEM, other.AdminKeyPEM); err == nil {
			t.Errorf("let in as %q", got)
		}
	})
	t.Run("a client that trusts another CA", func(t *testing.T) {
		if got, err := whoami(t, web, other, nil, nil); err == nil {
			t.Errorf("trusted the server, which says %q", got)
		}
	})
	t.Run("a serving certificate as a client's", func(t *testing.T) {
		key, err := encodeKey(ours.authority.key)
		if err != nil {
			t.Fatal(err)
		}
		cert, err := ours.authority.server(ours.CA.PublicKey, names{dns: []string{"evil"}}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := whoami(t, web, ours, encodeCertificate(cert), key); err == nil {
			t.Errorf("let in as %q", got)
		}
	})
	t.Run("an expired certificate", func(t *testing.T) {
		old := *ours
		old.now = at(time.Now().Add(-2 * leafLife))
		cert, key, err := old.IssueClient("alice")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := whoami(t, web, ours, cert, key); err == nil {
			t.Errorf("let in as %q", got)
		}
	})
	t.Run("a certificate that expires on its connection", func(t *testing.T) {
		late := tlsServer(t, ours, at(time.Now().Add(2*leafLife)))
		got, err := whoami(t, late, ours, ours.AdminCertPEM, ours.AdminKeyPEM)
		if err != nil || !strings.Contains(got, "has expired") {
			t.Errorf("%q, %v", got, err)
		}
	})
}
