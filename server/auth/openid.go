package auth

import (
	"encoding/json"
	"fmt"
	"strings"
)

// The well-known paths of an issuer.
const (
	OpenIDConfigurationPath = "/.well-known/openid-configuration"
	JWKSPath                = "/openid/v1/jwks"
	// JWKSContentType is what JWKSPath answers with; the other is JSON.
	JWKSContentType = "application/jwk-set+json"
)

// claimsToBeOurs looks at a token, not yet verified, to tell whether another
// checker may know it.
func (i *TokenIssuer) claimsToBeOurs(token string) bool {
	parts := strings.Split(token, ".")
	if len(parts) != 3 || len(token) > maxToken {
		return false
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	return decodeSegment(parts[1], &claims) == nil && claims.Issuer == i.options.Issuer
}

// JWKS is the document with the keys that verify tokens.
func (i *TokenIssuer) JWKS() ([]byte, error) {
	set := struct {
		Keys []jwk `json:"keys"`
	}{}
	for _, id := range i.order {
		key, err := i.keys[id].jwk()
		if err != nil {
			return nil, fmt.Errorf("jwks: %w", err)
		}
		set.Keys = append(set.Keys, key)
	}
	return json.Marshal(set)
}

// OpenIDConfiguration is the document that leads from the issuer to its keys,
// which are served at jwksURI.
func (i *TokenIssuer) OpenIDConfiguration(jwksURI string) ([]byte, error) {
	var algorithms []string
	seen := map[string]bool{}
	for _, id := range i.order {
		if alg := i.keys[id].alg; !seen[alg] {
			seen[alg] = true
			algorithms = append(algorithms, alg)
		}
	}
	return json.Marshal(struct {
		Issuer        string   `json:"issuer"`
		JWKS          string   `json:"jwks_uri"`
		ResponseTypes []string `json:"response_types_supported"`
		SubjectTypes  []string `json:"subject_types_supported"`
		Algorithms    []string `json:"id_token_signing_alg_values_supported"`
	}{i.options.Issuer, jwksURI, []string{"id_token"}, []string{"public"}, algorithms})
}
