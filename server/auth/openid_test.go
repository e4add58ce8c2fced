package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"encoding/json"
	"math/big"
	"testing"
)

// The documents are enough for a stranger to verify a token.
func TestWellKnownDocuments(t *testing.T) {
	i := mustIssuer(t, IssuerOptions{Also: []crypto.PublicKey{rsaKey.Public()}})
	document, err := i.OpenIDConfiguration("https://example.org/openid/v1/jwks")
	want := `{"issuer":"https://kubernetes.default.svc","jwks_uri":"https://example.org/openid/v1/jwks",` +
		`"response_types_supported":["id_token"],"subject_types_supported":["public"],` +
		`"id_token_signing_alg_values_supported":["ES256","RS256"]}`
	if string(document) != want || err != nil {
		t.Errorf("%v\ngot  %s\nwant %s", err, document, want)
	}
	document, err = i.JWKS()
	if err != nil {
		t.Fatal(err)
	}
	var set struct{ Keys []map[string]string }
	if err := json.Unmarshal(document, &set); err != nil || len(set.Keys) != 2 {
		t.Fatalf("%v in %s", err, document)
	}
	ec, rs := set.Keys[0], set.Keys[1]
	if ec["kty"] != "EC" || ec["crv"] != "P-256" || ec["alg"] != "ES256" || ec["use"] != "sig" || ec["kid"] != i.signer.id {
		t.Errorf("EC key %v", ec)
	}
	point := append([]byte{4}, append(number(t, ec["x"]).FillBytes(make([]byte, 32)), number(t, ec["y"]).FillBytes(make([]byte, 32))...)...)
	if public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point); err != nil || !public.Equal(i.signer.public) {
		t.Errorf("x and y are another key's: %v", err)
	}
	if rs["kty"] != "RSA" || number(t, rs["n"]).Cmp(rsaKey.N) != 0 || number(t, rs["e"]).Int64() != 65537 {
		t.Errorf("RSA key %v", rs)
	}
}

func number(t *testing.T, s string) *big.Int {
	t.Helper()
	b, err := segment.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return new(big.Int).SetBytes(b)
}
