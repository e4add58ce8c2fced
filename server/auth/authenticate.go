package auth

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Authenticator finds out who sends a request. Implementations are safe for
// concurrent use and do not change the request.
type Authenticator interface {
	// Authenticate returns the user and true; false where the request has no
	// credentials of the kind it looks at; an error that wraps ErrUnauthorized
	// where it has, and they are wrong.
	Authenticate(r *http.Request) (User, bool, error)
}

// AuthenticatorFunc is a function that is an Authenticator.
type AuthenticatorFunc func(r *http.Request) (User, bool, error)

// Authenticate calls f.
func (f AuthenticatorFunc) Authenticate(r *http.Request) (User, bool, error) { return f(r) }

// Union asks each authenticator in turn. The first that knows the user wins,
// and its user gets the group system:authenticated. If none does, a request
// with wrong credentials gets an error, one without any is anonymous: so the
// result is never false with a nil error.
func Union(all ...Authenticator) Authenticator {
	return AuthenticatorFunc(func(r *http.Request) (User, bool, error) {
		var wrong []error
		for _, a := range all {
			user, ok, err := a.Authenticate(r)
			if ok && err == nil {
				return user.withGroup(GroupAuthenticated), true, nil
			}
			if err != nil {
				wrong = append(wrong, err)
			}
		}
		if len(wrong) > 0 {
			return User{}, false, errors.Join(wrong...)
		}
		return Anonymous(), true, nil
	})
}

// ClientCertificates knows a user by the client certificate that the TLS layer
// has verified: the common name is the user, organizations are the groups. A
// certificate may expire while its connection lives, so that is checked again.
func ClientCertificates(now func() time.Time) Authenticator {
	return AuthenticatorFunc(func(r *http.Request) (User, bool, error) {
		if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 || len(r.TLS.VerifiedChains[0]) == 0 {
			return User{}, false, nil
		}
		leaf := r.TLS.VerifiedChains[0][0]
		if leaf.Subject.CommonName == "" {
			return User{}, false, nil
		}
		if now().After(leaf.NotAfter) {
			return User{}, false, fmt.Errorf("client certificate of %q has expired: %w", leaf.Subject.CommonName, ErrUnauthorized)
		}
		print := sha256.Sum256(leaf.Raw)
		return User{
			Name:   leaf.Subject.CommonName,
			Groups: leaf.Subject.Organization,
			Extra:  map[string][]string{ExtraCredentialID: {"X509SHA256=" + hex.EncodeToString(print[:])}},
		}, true, nil
	})
}

// TokenChecker knows users by a token.
type TokenChecker interface {
	// CheckToken returns the user and true; false for a token that is not one of
	// its own; an error for one of its own that is not valid.
	CheckToken(token string) (User, bool, error)
}

// BearerTokens knows a user by the token in the header Authorization. A token
// that no checker knows is an error.
func BearerTokens(checkers ...TokenChecker) Authenticator {
	return AuthenticatorFunc(func(r *http.Request) (User, bool, error) {
		token, ok := bearerToken(r.Header.Get("Authorization"))
		if !ok {
			return User{}, false, nil
		}
		reason := errors.New("unknown token")
		for _, c := range checkers {
			user, ok, err := c.CheckToken(token)
			if ok && err == nil {
				return user, true, nil
			}
			if err != nil {
				reason = err
			}
		}
		return User{}, false, fmt.Errorf("bearer token: %w: %w", reason, ErrUnauthorized)
	})
}

// bearerToken takes the token out of a header; other schemes are not ours.
func bearerToken(header string) (string, bool) {
	scheme, token, _ := strings.Cut(strings.TrimSpace(header), " ")
	token = strings.TrimSpace(token)
	return token, strings.EqualFold(scheme, "bearer") && token != ""
}
