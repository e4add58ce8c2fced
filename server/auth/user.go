package auth

import (
	"context"
	"slices"
)

// The names that Kubernetes gives to users and groups of its own.
const (
	UserAnonymous        = "system:anonymous"
	GroupMasters         = "system:masters"
	GroupAuthenticated   = "system:authenticated"
	GroupUnauthenticated = "system:unauthenticated"
	GroupServiceAccounts = "system:serviceaccounts"

	// ExtraCredentialID is the key in User.Extra that names the credential used.
	ExtraCredentialID = "authentication.kubernetes.io/credential-id"
	// ExtraPodName and the three below name what a service account's token is
	// bound to.
	ExtraPodName  = "authentication.kubernetes.io/pod-name"
	ExtraPodUID   = "authentication.kubernetes.io/pod-uid"
	ExtraNodeName = "authentication.kubernetes.io/node-name"
	ExtraNodeUID  = "authentication.kubernetes.io/node-uid"
)

// User is who sends a request. It is read-only once made.
type User struct {
	Name   string
	UID    string
	Groups []string
	Extra  map[string][]string
}

// In reports whether the user is in a group.
func (u User) In(group string) bool { return slices.Contains(u.Groups, group) }

// Anonymous is the user of a request without credentials.
func Anonymous() User {
	return User{Name: UserAnonymous, Groups: []string{GroupUnauthenticated}}
}

// withGroup returns the user with a group added, unless it is there.
func (u User) withGroup(group string) User {
	if !u.In(group) {
		u.Groups = append(slices.Clip(slices.Clone(u.Groups)), group)
	}
	return u
}

type userKey struct{}

// WithUser returns a context that carries the user of its request.
func WithUser(ctx context.Context, u User) context.Context {
	return context.WithValue(ctx, userKey{}, u)
}

// UserOf returns the user that a context carries, or the anonymous one.
func UserOf(ctx context.Context) User {
	if u, ok := ctx.Value(userKey{}).(User); ok {
		return u
	}
	return Anonymous()
}
