package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"math/big"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var rsaKey = func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
}()

func mustKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func mustIssuer(t *testing.T, o IssuerOptions) *TokenIssuer {
	t.Helper()
	if o.Key == nil {
		o.Key = mustKey(t)
	}
	if o.Now == nil {
		o.Now = at(noon)
	}
	i, err := NewTokenIssuer(o)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

var request = TokenRequest{
	Namespace:      "shop",
	ServiceAccount: Ref{Name: "web", UID: "uid-web"},
	Lifetime:       time.Hour,
}

func mustIssue(t *testing.T, i *TokenIssuer, req TokenRequest) string {
	t.Helper()
	token, _, err := i.Issue(req)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestTokensOfEveryKeyVerify(t *testing.T) {
	for name, key := range map[string]crypto.Signer{"ES256": mustKey(t), "RS256": rsaKey} {
		t.Run(name, func(t *testing.T) {
			i := mustIssuer(t, IssuerOptions{Key: key})
			bound := request
			bound.Pod, bound.Node = &Ref{"web-1", "uid-pod"}, &Ref{"node-1", "uid-node"}
			token, expires, err := i.Issue(bound)
			if err != nil || !expires.Equal(noon.Add(time.Hour)) {
				t.Fatalf("expires %s, %v", expires, err)
			}
			claims, err := i.Verify(token)
			if err != nil {
				t.Fatal(err)
			}
			got := claims.User()
			want := User{
				Name:   "system:serviceaccount:shop:web",
				UID:    "uid-web",
				Groups: []string{"system:serviceaccounts", "system:serviceaccounts:shop"},
				Extra: map[string][]string{
					"authentication.kubernetes.io/credential-id": {"JTI=" + claims.ID},
					"authentication.kubernetes.io/pod-name":      {"web-1"},
					"authentication.kubernetes.io/pod-uid":       {"uid-pod"},
					"authentication.kubernetes.io/node-name":     {"node-1"},
					"authentication.kubernetes.io/node-uid":      {"uid-node"},
				},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("user (-want +got):\n%s", diff)
			}
			header := part0(t, token)
			if header["alg"] != name || header["kid"] == "" {
				t.Errorf("header is %v", header)
			}
		})
	}
}

func part0(t *testing.T, token string) map[string]any {
	t.Helper()
	var header map[string]any
	first, _, _ := strings.Cut(token, ".")
	if err := decodeSegment(first, &header); err != nil {
		t.Fatal(err)
	}
	return header
}

// A token looks as the real server's: its clients and auditors read it.
func TestTokenHasTheClaimsOfTheRealServer(t *testing.T) {
	req := request
	req.Pod = &Ref{"web-1", "uid-pod"}
	token := mustIssue(t, mustIssuer(t, IssuerOptions{}), req)
	payload, err := segment.DecodeString(strings.Split(token, ".")[1])
	if err != nil {
		t.Fatal(err)
	}
	got := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`).ReplaceAllString(string(payload), "UUID")
	want := `{"aud":["https://kubernetes.default.svc"],"exp":1905253200,"iat":1905249600,` +
		`"iss":"https://kubernetes.default.svc","jti":"UUID","nbf":1905249600,` +
		`"sub":"system:serviceaccount:shop:web","kubernetes.io":{"namespace":"shop",` +
		`"serviceaccount":{"name":"web","uid":"uid-web"},"pod":{"name":"web-1","uid":"uid-pod"}}}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestTokensAreRefused(t *testing.T) {
	key, other := mustKey(t), mustKey(t)
	i := mustIssuer(t, IssuerOptions{Key: key})
	later := func(d time.Duration) *TokenIssuer {
		return mustIssuer(t, IssuerOptions{Key: key, Now: at(noon.Add(d))})
	}
	good := mustIssue(t, i, request)
	parts := strings.Split(good, ".")
	forAnother := request
	forAnother.Audiences = []string{"vault"}
	tests := map[string]struct {
		token string
		by    *TokenIssuer
		want  string
	}{
		"expired":                   {good, later(time.Hour), "it has expired"},
		"not valid yet":             {good, later(-leeway - time.Second), "it is not valid yet"},
		"another issuer":            {mustIssue(t, mustIssuer(t, IssuerOptions{Key: key, Issuer: "https://evil"}), request), i, `issuer is "https://evil"`},
		"another audience":          {mustIssue(t, i, forAnother), i, `its audience ["vault"] is none of`},
		"another key":               {mustIssue(t, mustIssuer(t, IssuerOptions{Key: other}), request), i, "is not known"},
		"another key, our key's id": {forge(t, other, header(i), claimsOf(parts)), i, "its signature is wrong"},
		"a changed claim":           {parts[0] + "." + change(t, parts[1], "shop", "kube-system") + "." + parts[2], i, "its signature is wrong"},
		"a changed signature":       {parts[0] + "." + parts[1] + "." + flip(parts[2]), i, "its signature is wrong"},
		"no signature":              {parts[0] + "." + parts[1] + ".", i, "its signature is wrong"},
		"a signature in ASN.1":      {parts[0] + "." + parts[1] + "." + asn1Signature(t, key, parts), i, "its signature is wrong"},
		"alg none":                  {encode(`{"alg":"none","kid":"`+i.signer.id+`"}`) + "." + parts[1] + ".", i, `its algorithm is "none"`},
		"alg HS256 with our key":    {hmacToken(t, i, parts[1]), i, `its algorithm is "HS256"`},
		"alg RS256 for an EC key":   {encode(`{"alg":"RS256","kid":"`+i.signer.id+`"}`) + "." + parts[1] + "." + parts[2], i, `its algorithm is "RS256"`},
		"no key id":                 {forge(t, key, `{"alg":"ES256"}`, claimsOf(parts)), i, `its key "" is not known`},
		"critical extensions":       {forge(t, key, `{"alg":"ES256","kid":"`+i.signer.id+`","crit":["b64"],"b64":false}`, claimsOf(parts)), i, "it needs extensions"},
		"padding":                   {good + "=", i, "its signature cannot be read"},
		"a line end":                {good + "\n", i, "has not the form"},
		"stray bits at the end":     {good[:len(good)-1] + stray(good[len(good)-1]), i, "its signature cannot be read"},
		"two parts":                 {parts[0] + "." + parts[1], i, "has not the form"},
		"four parts":                {good + ".", i, "has not the form"},
		"rubbish":                   {"a.b.c", i, "its header cannot be read"},
		"nothing":                   {"", i, "has not the form"},
		"too long":                  {good + strings.Repeat("A", maxToken), i, "has not the form"},
		"no expiry":                 {forge(t, key, header(i), strings.Replace(claimsOf(parts), `"exp":1905253200,`, "", 1)), i, "it never expires"},
		"claims that are no claims": {forge(t, key, header(i), `[]`), i, "its claims cannot be read"},
		"another subject":           {forge(t, key, header(i), strings.Replace(claimsOf(parts), `serviceaccount:shop:web`, "serviceaccount:kube-system:web", 1)), i, "its subject is"},
		"no service account":        {forge(t, key, header(i), strings.Replace(claimsOf(parts), `"uid-web"`, `""`, 1)), i, "it names no service account"},
		"issued in the future":      {forge(t, key, header(i), strings.Replace(claimsOf(parts), `"iat":1905249600`, `"iat":1905249999`, 1)), i, "it is issued in the future"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := tt.by.Verify(tt.token)
			if !errors.Is(err, ErrUnauthorized) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func header(i *TokenIssuer) string { return `{"alg":"ES256","kid":"` + i.signer.id + `"}` }

func encode(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

func claimsOf(parts []string) string {
	b, _ := segment.DecodeString(parts[1])
	return string(b)
}

// forge signs any header and payload with ES256.
func forge(t *testing.T, key *ecdsa.PrivateKey, header, payload string) string {
	t.Helper()
	input := encode(header) + "." + encode(payload)
	digest := sha256.Sum256([]byte(input))
	signature, err := signDigest(key, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	return input + "." + segment.EncodeToString(signature)
}

func hmacToken(t *testing.T, i *TokenIssuer, payload string) string {
	t.Helper()
	point, err := i.signer.public.(*ecdsa.PublicKey).Bytes()
	if err != nil {
		t.Fatal(err)
	}
	input := encode(`{"alg":"HS256","kid":"`+i.signer.id+`"}`) + "." + payload
	mac := hmac.New(sha256.New, point)
	mac.Write([]byte(input))
	return input + "." + segment.EncodeToString(mac.Sum(nil))
}

func asn1Signature(t *testing.T, key *ecdsa.PrivateKey, parts []string) string {
	t.Helper()
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	signature, err := ecdsa.SignASN1(rand.Reader, key, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	return segment.EncodeToString(signature)
}

func change(t *testing.T, part, from, to string) string {
	t.Helper()
	b, err := segment.DecodeString(part)
	if err != nil || !strings.Contains(string(b), from) {
		t.Fatal(err)
	}
	return encode(strings.ReplaceAll(string(b), from, to))
}

func flip(signature string) string {
	b, _ := segment.DecodeString(signature)
	b[7] ^= 1
	return segment.EncodeToString(b)
}

// stray returns another last character of a signature, with the same two bits
// that count and others after them.
func stray(last byte) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return string(alphabet[strings.IndexByte(alphabet, last)+1])
}

func TestClockSkewIsTolerated(t *testing.T) {
	key := mustKey(t)
	token := mustIssue(t, mustIssuer(t, IssuerOptions{Key: key}), request)
	behind := mustIssuer(t, IssuerOptions{Key: key, Now: at(noon.Add(-leeway + time.Second))})
	if _, err := behind.Verify(token); err != nil {
		t.Error(err)
	}
}

func TestAudiences(t *testing.T) {
	i := mustIssuer(t, IssuerOptions{Audiences: []string{"api", "https://kubernetes.default.svc"}})
	if _, err := i.Verify(mustIssue(t, i, request)); err != nil {
		t.Errorf("a token that asks for no audience: %v", err)
	}
	req := request
	req.Audiences = []string{"vault"}
	if _, err := i.Verify(mustIssue(t, i, req), "other", "vault"); err != nil {
		t.Errorf("a token for vault, shown to vault: %v", err)
	}
}

func TestKeysCanBeRotated(t *testing.T) {
	old := mustKey(t)
	token := mustIssue(t, mustIssuer(t, IssuerOptions{Key: old}), request)
	next := mustIssuer(t, IssuerOptions{Also: []crypto.PublicKey{old.Public(), rsaKey.Public(), old.Public()}})
	if _, err := next.Verify(token); err != nil {
		t.Error(err)
	}
	if len(next.order) != 3 {
		t.Errorf("has %d keys, want 3", len(next.order))
	}
}

func TestDeletedServiceAccountsAreRefused(t *testing.T) {
	gone := errors.New("the service account has been deleted")
	i := mustIssuer(t, IssuerOptions{})
	i.Require(func(c Claims) error {
		if c.Private.ServiceAccount.UID == "uid-web" {
			return gone
		}
		return nil
	})
	if _, err := i.Verify(mustIssue(t, i, request)); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}

func TestIssueRefuses(t *testing.T) {
	i := mustIssuer(t, IssuerOptions{})
	for name, change := range map[string]func(*TokenRequest){
		"no service account": func(r *TokenRequest) { r.ServiceAccount.Name = "" },
		"no lifetime":        func(r *TokenRequest) { r.Lifetime = 0 },
		"two bonds":          func(r *TokenRequest) { r.Secret, r.Pod = &Ref{}, &Ref{} },
	} {
		req := request
		change(&req)
		if _, _, err := i.Issue(req); err == nil {
			t.Errorf("%s: issued", name)
		}
	}
}

func TestKeysThatCannotSign(t *testing.T) {
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]crypto.Signer{"none": nil, "P-384": p384, "short RSA": shortRSA{}} {
		if _, err := NewTokenIssuer(IssuerOptions{Key: key}); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// shortRSA has a public key of 1024 bits.
type shortRSA struct{ crypto.Signer }

func (shortRSA) Public() crypto.PublicKey {
	return &rsa.PublicKey{N: new(big.Int).SetBit(big.NewInt(1), 1023, 1), E: 65537}
}

func TestServiceAccountsAsBearers(t *testing.T) {
	i := mustIssuer(t, IssuerOptions{})
	foreign := mustIssue(t, mustIssuer(t, IssuerOptions{Issuer: "https://other"}), request)
	everyone := Union(BearerTokens(mustTokens(t), i))
	for token, want := range map[string]string{
		mustIssue(t, i, request): "system:serviceaccount:shop:web",
		"t-alice":                "alice",
		foreign:                  "",
		"a.b.c":                  "",
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		u, _, err := everyone.Authenticate(r)
		if u.Name != want || (err == nil) != (want != "") {
			t.Errorf("%.12s: %q, %v, want %q", token, u.Name, err, want)
		}
	}
	if _, ok, err := i.CheckToken(foreign); ok || err != nil {
		t.Errorf("a token of another issuer is not ours to refuse: %v, %v", ok, err)
	}
}

// Parsing something that was never verified must not fall over.
func FuzzVerify(f *testing.F) {
	key, err := newKey()
	if err != nil {
		f.Fatal(err)
	}
	i, err := NewTokenIssuer(IssuerOptions{Key: key, Now: at(noon)})
	if err != nil {
		f.Fatal(err)
	}
	good, _, err := i.Issue(request)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add("a.b.c")
	f.Add(encode(`{"alg":"none"}`) + ".." + encode(`{}`))
	f.Fuzz(func(t *testing.T, token string) {
		if _, err := i.Verify(token); err == nil && token != good {
			t.Errorf("took %q", token)
		}
		i.CheckToken(token)
	})
}
