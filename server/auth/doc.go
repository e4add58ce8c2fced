// Package auth says who sends a request and what they may do.
//
// An [Authenticator] turns a request into a [User]: by a client certificate
// that the TLS layer has verified, by a static token, by a service account's
// token. [Union] puts them together and lets those without credentials in as
// system:anonymous. An [Authorizer] decides on a user and the [Attributes] of a
// request; [MastersOnly] is the one until RBAC exists.
//
// [OpenCredentials] makes and keeps what a server needs to identify itself and its
// administrator: a CA, certificates, the key that signs service account tokens.
// [TokenIssuer] issues and verifies those tokens. [Kubeconfig] is the file that
// lets kubectl in.
//
// Only functions whose names start with Open, Load, Read or Write touch files.
//
// Impersonation (the headers Impersonate-User, -Group, -Uid and -Extra) is not
// here yet: it needs a decision of the authorizer on the verb impersonate, which
// comes with RBAC. Until then a server must refuse requests that carry these
// headers rather than ignore them.
package auth
