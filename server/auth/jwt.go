package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
)

// The compact form of a JSON Web Signature (RFC 7515), as much of it as service
// account tokens need: ES256 and RS256, one signature, no extensions.

// segment is base64url without padding; strict, so that a token has one form.
var segment = base64.RawURLEncoding.Strict()

const (
	es256 = "ES256"
	rs256 = "RS256"
	// coordinate is the length of half an ES256 signature.
	coordinate = 32
	// maxToken bounds what is parsed before it is verified.
	maxToken = 16 << 10
)

// verifyKey is a public key with the one algorithm it is good for.
type verifyKey struct {
	id     string
	alg    string
	public crypto.PublicKey
}

// newVerifyKey returns a key under the id that the real server gives it: the
// digest of its encoding.
func newVerifyKey(public crypto.PublicKey) (verifyKey, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return verifyKey{}, err
	}
	digest := sha256.Sum256(der)
	k := verifyKey{id: base64.RawURLEncoding.EncodeToString(digest[:]), public: public}
	switch public := public.(type) {
	case *ecdsa.PublicKey:
		if public.Curve != elliptic.P256() {
			return verifyKey{}, errors.New("ECDSA keys must be of the curve P-256")
		}
		k.alg = es256
	case *rsa.PublicKey:
		if public.N.BitLen() < 2048 {
			return verifyKey{}, fmt.Errorf("RSA keys must have 2048 bits, not %d", public.N.BitLen())
		}
		k.alg = rs256
	default:
		return verifyKey{}, fmt.Errorf("keys of type %T cannot sign tokens", public)
	}
	return k, nil
}

// joseHeader is a token's first part. Crit is there to refuse it: it names
// extensions that must be understood.
type joseHeader struct {
	Algorithm string   `json:"alg"`
	KeyID     string   `json:"kid"`
	Type      string   `json:"typ,omitempty"`
	Crit      []string `json:"crit,omitempty"`
}

// signToken returns the compact form of a payload.
func signToken(key crypto.Signer, as verifyKey, payload []byte) (string, error) {
	header, err := json.Marshal(joseHeader{Algorithm: as.alg, KeyID: as.id})
	if err != nil {
		return "", err
	}
	input := segment.EncodeToString(header) + "." + segment.EncodeToString(payload)
	digest := sha256.Sum256([]byte(input))
	signature, err := signDigest(key, digest[:])
	if err != nil {
		return "", err
	}
	return input + "." + segment.EncodeToString(signature), nil
}

func signDigest(key crypto.Signer, digest []byte) ([]byte, error) {
	private, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return key.Sign(rand.Reader, digest, crypto.SHA256) // RSA, PKCS #1 v1.5
	}
	r, s, err := ecdsa.Sign(rand.Reader, private, digest)
	if err != nil {
		return nil, err
	}
	signature := make([]byte, 2*coordinate)
	r.FillBytes(signature[:coordinate])
	s.FillBytes(signature[coordinate:])
	return signature, nil
}

// verifyToken returns the payload of a token that one of the keys has signed.
// The header picks the key; the key, and never the header, the algorithm.
func verifyToken(token string, keys map[string]verifyKey) ([]byte, error) {
	parts := strings.Split(token, ".")
	// The decoder skips line ends, even where it is strict.
	if len(parts) != 3 || len(token) > maxToken || strings.ContainsAny(token, "\r\n") {
		return nil, errors.New("it has not the form of a token")
	}
	var header joseHeader
	if err := decodeSegment(parts[0], &header); err != nil {
		return nil, fmt.Errorf("its header cannot be read: %w", err)
	}
	key, known := keys[header.KeyID]
	switch {
	case !known:
		return nil, fmt.Errorf("its key %q is not known", header.KeyID)
	case header.Algorithm != key.alg:
		return nil, fmt.Errorf("its algorithm is %q, but its key is for %s", header.Algorithm, key.alg)
	case header.Crit != nil:
		return nil, errors.New("it needs extensions")
	}
	signature, err := segment.DecodeString(parts[2])
	if err != nil {
		return nil, fmt.Errorf("its signature cannot be read: %w", err)
	}
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if !key.verify(digest[:], signature) {
		return nil, errors.New("its signature is wrong")
	}
	return segment.DecodeString(parts[1])
}

func (k verifyKey) verify(digest, signature []byte) bool {
	switch public := k.public.(type) {
	case *ecdsa.PublicKey:
		if len(signature) != 2*coordinate {
			return false
		}
		r := new(big.Int).SetBytes(signature[:coordinate])
		s := new(big.Int).SetBytes(signature[coordinate:])
		return ecdsa.Verify(public, digest, r, s)
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(public, crypto.SHA256, digest, signature) == nil
	}
	return false
}

func decodeSegment(s string, into any) error {
	b, err := segment.DecodeString(s)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, into)
}

// jwk is a public key in a JSON Web Key Set (RFC 7517).
type jwk struct {
	Use       string `json:"use"`
	Type      string `json:"kty"`
	KeyID     string `json:"kid"`
	Curve     string `json:"crv,omitempty"`
	Algorithm string `json:"alg"`
	X         string `json:"x,omitempty"`
	Y         string `json:"y,omitempty"`
	N         string `json:"n,omitempty"`
	E         string `json:"e,omitempty"`
}

func (k verifyKey) jwk() (jwk, error) {
	out := jwk{Use: "sig", KeyID: k.id, Algorithm: k.alg}
	encode := base64.RawURLEncoding.EncodeToString
	switch public := k.public.(type) {
	case *ecdsa.PublicKey:
		point, err := public.Bytes() // 4, X, Y
		if err != nil {
			return jwk{}, err
		}
		out.Type, out.Curve = "EC", "P-256"
		out.X, out.Y = encode(point[1:1+coordinate]), encode(point[1+coordinate:])
	case *rsa.PublicKey:
		out.Type = "RSA"
		out.N, out.E = encode(public.N.Bytes()), encode(big.NewInt(int64(public.E)).Bytes())
	}
	return out, nil
}
