package auth_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/even-keel/evenkeel/server/auth"
)

func ExampleUnion() {
	tokens, err := auth.ParseTokens(strings.NewReader(`s3cret,alice,1001,"devs,ops"`))
	if err != nil {
		log.Fatal(err)
	}
	who := auth.Union(auth.ClientCertificates(time.Now), auth.BearerTokens(tokens))
	for _, header := range []string{"Bearer s3cret", "Bearer guess", ""} {
		r := httptest.NewRequest(http.MethodGet, "/apis", nil)
		r.Header.Set("Authorization", header)
		user, _, err := who.Authenticate(r)
		fmt.Println(user.Name, user.Groups, err)
	}
	// Output:
	// alice [devs ops system:authenticated] <nil>
	//  [] bearer token: unknown token: unauthorized
	// system:anonymous [system:unauthenticated] <nil>
}

func ExampleMastersOnly() {
	ask := auth.Attributes{Verb: "list", Resource: "pods", Namespace: "default"}
	user := auth.Anonymous()
	decision, err := auth.MastersOnly().Authorize(context.Background(), user, ask)
	if err != nil {
		log.Fatal(err)
	}
	if !decision.Allowed {
		fmt.Println(auth.ForbiddenMessage(user, ask, decision.Reason))
	}
	// Output:
	// pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group "" in the namespace "default"
}

func ExampleTokenIssuer() {
	credentials, err := auth.NewCredentials(auth.CredentialOptions{})
	if err != nil {
		log.Fatal(err)
	}
	issuer, err := auth.NewTokenIssuer(auth.IssuerOptions{Key: credentials.SigningKey})
	if err != nil {
		log.Fatal(err)
	}
	token, _, err := issuer.Issue(auth.TokenRequest{
		Namespace:      "shop",
		ServiceAccount: auth.Ref{Name: "web", UID: "4f5c"},
		Lifetime:       time.Hour,
	})
	if err != nil {
		log.Fatal(err)
	}
	claims, err := issuer.Verify(token)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(claims.User().Name, claims.User().Groups)
	// Output:
	// system:serviceaccount:shop:web [system:serviceaccounts system:serviceaccounts:shop]
}
