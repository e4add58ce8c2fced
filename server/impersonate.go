package server

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/even-keel/evenkeel/server/auth"
)

// The headers by which a user acts as another.
const (
	impersonateUser  = "Impersonate-User"
	impersonateUID   = "Impersonate-Uid"
	impersonateGroup = "Impersonate-Group"
	impersonateExtra = "Impersonate-Extra-"
)

// impersonated returns whom a request is to be made as. refused, if not nil, is
// what the user may not act as.
func (s *Server) impersonated(ctx context.Context, r *http.Request, user auth.User) (as auth.User, refused *auth.Attributes, err error) {
	name := r.Header.Get(impersonateUser)
	if name == "" {
		if wantsImpersonation(r.Header) {
			return user, &auth.Attributes{Verb: "impersonate", Resource: "users"}, nil
		}
		return user, nil, nil
	}
	as = auth.User{
		Name: name, UID: r.Header.Get(impersonateUID),
		Groups: slices.Clone(r.Header.Values(impersonateGroup)), Extra: extras(r.Header),
	}
	for _, a := range attributesOf(as) {
		decision, err := s.config.Authorizer.Authorize(ctx, user, a)
		if err != nil || !decision.Allowed {
			return user, &a, err
		}
	}
	return withUsualGroups(as), nil, nil
}

// wantsImpersonation says that a header asks for it without naming a user.
func wantsImpersonation(h http.Header) bool {
	for key := range h {
		if key == impersonateUID || key == impersonateGroup || strings.HasPrefix(key, impersonateExtra) {
			return true
		}
	}
	return false
}

func extras(h http.Header) map[string][]string {
	var out map[string][]string
	for key, values := range h {
		name, ok := strings.CutPrefix(key, impersonateExtra)
		if !ok {
			continue
		}
		if unescaped, err := url.PathUnescape(name); err == nil {
			name = unescaped
		}
		if out == nil {
			out = map[string][]string{}
		}
		out[strings.ToLower(name)] = values
	}
	return out
}

// attributesOf are what one must be allowed to, to act as a user.
func attributesOf(as auth.User) []auth.Attributes {
	out := []auth.Attributes{subjectOf(as.Name)}
	for _, group := range as.Groups {
		out = append(out, auth.Attributes{Verb: "impersonate", Resource: "groups", Name: group})
	}
	if as.UID != "" {
		out = append(out, auth.Attributes{Verb: "impersonate", Group: "authentication.k8s.io", Version: "v1", Resource: "uids", Name: as.UID})
	}
	for key, values := range as.Extra {
		for _, value := range values {
			out = append(out, auth.Attributes{
				Verb: "impersonate", Group: "authentication.k8s.io", Version: "v1", Resource: "userextras", Subresource: key, Name: value,
			})
		}
	}
	return out
}

// subjectOf names a user, or the service account that a name stands for.
func subjectOf(name string) auth.Attributes {
	if rest, ok := strings.CutPrefix(name, "system:serviceaccount:"); ok {
		if namespace, account, ok := strings.Cut(rest, ":"); ok {
			return auth.Attributes{Verb: "impersonate", Resource: "serviceaccounts", Namespace: namespace, Name: account}
		}
	}
	return auth.Attributes{Verb: "impersonate", Resource: "users", Name: name}
}

// withUsualGroups adds the groups that everybody of a kind is in.
func withUsualGroups(as auth.User) auth.User {
	add := func(groups ...string) {
		for _, g := range groups {
			if !slices.Contains(as.Groups, g) {
				as.Groups = append(as.Groups, g)
			}
		}
	}
	if a := subjectOf(as.Name); a.Resource == "serviceaccounts" && len(as.Groups) == 0 {
		add(auth.GroupServiceAccounts, auth.GroupServiceAccounts+":"+a.Namespace)
	}
	if as.Name == auth.UserAnonymous {
		add(auth.GroupUnauthenticated)
	} else {
		add(auth.GroupAuthenticated)
	}
	return as
}
