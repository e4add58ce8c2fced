package auth

import (
	"context"
	"errors"
	"slices"
)

// errBadToken is all that a stranger learns about a token that is not valid.
var errBadToken = errors.New("invalid bearer token")

// Review returns a function that tells whose a token is, and for which of the
// audiences it is meant; none stands for the API server's. Tokens of the issuer
// say for whom they are, all others are for the API server.
func Review(issuer *TokenIssuer, all ...TokenChecker) func(ctx context.Context, token string, audiences []string) (User, []string, error) {
	return func(_ context.Context, token string, audiences []string) (User, []string, error) {
		if len(audiences) == 0 {
			audiences = issuer.Audiences()
		}
		if issuer.claimsToBeOurs(token) {
			claims, err := issuer.Verify(token, audiences...)
			if err != nil {
				return User{}, nil, errBadToken
			}
			return claims.User().withGroup(GroupAuthenticated), common(audiences, claims.Audience), nil
		}
		accepted := common(audiences, issuer.Audiences())
		for _, c := range all {
			user, ok, err := c.CheckToken(token)
			if ok && err == nil && len(accepted) > 0 {
				return user.withGroup(GroupAuthenticated), accepted, nil
			}
		}
		return User{}, nil, errBadToken
	}
}

// common returns the members of a that are in b.
func common(a, b []string) []string {
	var out []string
	for _, s := range a {
		if slices.Contains(b, s) {
			out = append(out, s)
		}
	}
	return out
}
