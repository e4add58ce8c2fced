package auth

import (
	"crypto"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// DefaultIssuer is the issuer of service account tokens, and their audience.
const DefaultIssuer = "https://kubernetes.default.svc"

// IssuerOptions say how a TokenIssuer signs and what it accepts.
type IssuerOptions struct {
	// Issuer is the claim iss; "" is DefaultIssuer.
	Issuer string
	// Audiences are what the API server answers to, and what a token gets that
	// asks for none; empty is the issuer alone.
	Audiences []string
	// Key signs: ECDSA P-256 (ES256) or RSA (RS256).
	Key crypto.Signer
	// Also are further keys whose tokens are accepted.
	Also []crypto.PublicKey
	// Now is the clock; nil is the real one.
	Now func() time.Time
}

// TokenIssuer signs and verifies the tokens of service accounts. It is safe for
// concurrent use.
type TokenIssuer struct {
	options IssuerOptions
	signer  verifyKey
	keys    map[string]verifyKey
	order   []string // of keys, the signer's first
	exists  func(Claims) error
}

// Require makes the issuer refuse tokens of which exists returns an error: those
// whose service account, or what they are bound to, has gone. Call it before the
// first token is checked.
func (i *TokenIssuer) Require(exists func(Claims) error) { i.exists = exists }

// NewTokenIssuer returns an issuer.
func NewTokenIssuer(o IssuerOptions) (*TokenIssuer, error) {
	if o.Key == nil {
		return nil, errors.New("token issuer: no key to sign with")
	}
	if o.Issuer == "" {
		o.Issuer = DefaultIssuer
	}
	if len(o.Audiences) == 0 {
		o.Audiences = []string{o.Issuer}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	i := &TokenIssuer{options: o, keys: map[string]verifyKey{}}
	for _, public := range append([]crypto.PublicKey{o.Key.Public()}, o.Also...) {
		key, err := newVerifyKey(public)
		if err != nil {
			return nil, fmt.Errorf("token issuer: %w", err)
		}
		if _, twice := i.keys[key.id]; !twice {
			i.keys[key.id] = key
			i.order = append(i.order, key.id)
		}
	}
	i.signer = i.keys[i.order[0]]
	return i, nil
}

// TokenRequest asks for a token.
type TokenRequest struct {
	Namespace      string
	ServiceAccount Ref
	// Pod, Secret and Node are what the token is bound to: none, or one, or a
	// pod with its node.
	Pod, Secret, Node *Ref
	// Audiences are whom the token is for; empty is the API server.
	Audiences []string
	Lifetime  time.Duration
}

// Audiences are what the API server answers to: what a TokenRequest that names
// none is answered with.
func (i *TokenIssuer) Audiences() []string { return slices.Clone(i.options.Audiences) }

// Issue signs a token and tells when it expires.
func (i *TokenIssuer) Issue(req TokenRequest) (token string, expires time.Time, err error) {
	if req.Namespace == "" || req.ServiceAccount.Name == "" || req.ServiceAccount.UID == "" {
		return "", time.Time{}, errors.New("issue token: no service account is named")
	}
	if req.Lifetime <= 0 {
		return "", time.Time{}, errors.New("issue token: it would have expired")
	}
	if req.Secret != nil && (req.Pod != nil || req.Node != nil) {
		return "", time.Time{}, errors.New("issue token: it can be bound to one object only")
	}
	now := i.options.Now()
	claims := i.claims(req, now)
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("issue token: %w", err)
	}
	token, err = signToken(i.options.Key, i.signer, payload)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("issue token: %w", err)
	}
	return token, claims.Expires.time(), nil
}

func (i *TokenIssuer) claims(req TokenRequest, now time.Time) Claims {
	audiences := req.Audiences
	if len(audiences) == 0 {
		audiences = i.options.Audiences
	}
	return Claims{
		Audience:  audiences,
		Expires:   numericDate(now.Add(req.Lifetime).Unix()),
		IssuedAt:  numericDate(now.Unix()),
		Issuer:    i.options.Issuer,
		ID:        newUUID(),
		NotBefore: numericDate(now.Unix()),
		Subject:   Username(req.Namespace, req.ServiceAccount.Name),
		Private: KubernetesClaims{
			Namespace:      req.Namespace,
			ServiceAccount: req.ServiceAccount,
			Pod:            req.Pod,
			Secret:         req.Secret,
			Node:           req.Node,
		},
	}
}

// Verify returns what a token says, once its signature, issuer, times and
// audience hold. Audiences are those of which the token must have one; none
// stands for the API server's. The error wraps ErrUnauthorized.
func (i *TokenIssuer) Verify(token string, audiences ...string) (Claims, error) {
	if len(audiences) == 0 {
		audiences = i.options.Audiences
	}
	claims, err := i.verify(token, audiences)
	if err != nil {
		return Claims{}, fmt.Errorf("service account token: %w: %w", err, ErrUnauthorized)
	}
	return claims, nil
}

func (i *TokenIssuer) verify(token string, audiences []string) (Claims, error) {
	payload, err := verifyToken(token, i.keys)
	if err != nil {
		return Claims{}, err
	}
	var claims Claims
	if err := json.Unmarshal(payload, &claims); err != nil {
		return Claims{}, fmt.Errorf("its claims cannot be read: %w", err)
	}
	if err := claims.check(i.options.Issuer, audiences, i.options.Now()); err != nil {
		return Claims{}, err
	}
	if i.exists != nil {
		if err := i.exists(claims); err != nil {
			return Claims{}, err
		}
	}
	return claims, nil
}

// CheckToken makes a TokenIssuer a TokenChecker. A token that does not say it
// is of this issuer is not its own.
func (i *TokenIssuer) CheckToken(token string) (User, bool, error) {
	if !i.claimsToBeOurs(token) {
		return User{}, false, nil
	}
	claims, err := i.Verify(token)
	if err != nil {
		return User{}, false, err
	}
	return claims.User(), true, nil
}

// newUUID returns a random UUID (RFC 9562, version 4).
func newUUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
