package auth

import (
	"context"
	"fmt"
	"strings"
)

// Attributes are what of a request a decision may depend on.
type Attributes struct {
	// Verb is get, list, watch, create, update, patch, delete, deletecollection
	// and the like of a resource; of other paths, the lower-case HTTP method.
	Verb string
	// Path is the path of a request that is not about a resource.
	Path string

	// Resource is the plural; "" marks a request that is not about a resource.
	Resource    string
	Group       string
	Version     string
	Namespace   string // "" at the cluster scope
	Subresource string
	Name        string
}

// Decision is what an authorizer says. Reason is for the client to read, and
// may be empty.
type Decision struct {
	Allowed bool
	Reason  string
}

// Authorizer decides what a user may do. Implementations are safe for
// concurrent use. An error means that no decision was possible; the request is
// then refused.
type Authorizer interface {
	Authorize(ctx context.Context, u User, a Attributes) (Decision, error)
}

// AuthorizerFunc is a function that is an Authorizer.
type AuthorizerFunc func(ctx context.Context, u User, a Attributes) (Decision, error)

// Authorize calls f.
func (f AuthorizerFunc) Authorize(ctx context.Context, u User, a Attributes) (Decision, error) {
	return f(ctx, u, a)
}

// MastersOnly lets the group system:masters do everything, and everybody read
// health and version. RBAC replaces it.
func MastersOnly() Authorizer {
	return AuthorizerFunc(func(_ context.Context, u User, a Attributes) (Decision, error) {
		return Decision{Allowed: u.In(GroupMasters) || isPublic(a)}, nil
	})
}

// isPublic tells what even anonymous users may do: get /healthz, /livez, /readyz
// and /version.
func isPublic(a Attributes) bool {
	if a.Resource != "" || a.Verb != "get" {
		return false
	}
	switch a.Path {
	case "/healthz", "/livez", "/readyz", "/version", "/version/":
		return true
	}
	return false
}

// noHTML is how the real server keeps what it quotes from looking like HTML.
var noHTML = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// ForbiddenMessage is the message of the Status that refuses a request, in the
// words of the real server. Its details are a.Group, a.Resource as the kind,
// and a.Name.
func ForbiddenMessage(u User, a Attributes, reason string) string {
	message := noHTML.Replace(refusal(u, a))
	if reason != "" {
		message += ": " + reason
	}
	qualified := a.Resource
	if a.Group != "" {
		qualified += "." + a.Group
	}
	switch {
	case a.Resource == "":
		return "forbidden: " + message
	case a.Name == "":
		return fmt.Sprintf("%s is forbidden: %s", qualified, message)
	}
	return fmt.Sprintf("%s %q is forbidden: %s", qualified, a.Name, message)
}

func refusal(u User, a Attributes) string {
	if a.Resource == "" {
		return fmt.Sprintf("User %q cannot %s path %q", u.Name, a.Verb, a.Path)
	}
	resource := a.Resource
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	where := "at the cluster scope"
	if a.Namespace != "" {
		where = fmt.Sprintf("in the namespace %q", a.Namespace)
	}
	return fmt.Sprintf("User %q cannot %s resource %q in API group %q %s", u.Name, a.Verb, resource, a.Group, where)
}
