package rest

import (
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/server/auth"
)

// Info says what a request is about, before it is answered.
type Info struct {
	Verb, Path            string
	Group, Version        string
	Resource, Subresource string
	Namespace, Name       string
	// Watch says that the answer goes on for as long as the client wants.
	Watch    bool
	resource bool
}

// Describe reads a request's method, path and query.
func Describe(r *http.Request) Info {
	t, ok := parseTarget(r.URL.Path)
	if !ok {
		return Info{Verb: strings.ToLower(r.Method), Path: r.URL.Path}
	}
	q := r.URL.Query()
	watching := r.Method == http.MethodGet && (t.watch || t.name == "" && boolParam(q, "watch"))
	i := Info{
		Verb: t.verb(r.Method, watching), Path: r.URL.Path, Group: t.gv.Group, Version: t.gv.Version,
		Resource: t.resource, Subresource: t.subresource, Namespace: t.namespace, Name: t.name, resource: true,
		Watch: watching || t.subresource == "log" && boolParam(q, "follow") || t.connects(),
	}
	if t.resource == "namespaces" && t.name != "" {
		i.Namespace = t.name
	}
	return i
}

// Attributes are what authorization depends on.
func (i Info) Attributes() auth.Attributes {
	if !i.resource {
		return auth.Attributes{Verb: i.Verb, Path: i.Path}
	}
	return auth.Attributes{
		Verb: i.Verb, Group: i.Group, Version: i.Version, Namespace: i.Namespace,
		Resource: i.Resource, Subresource: i.Subresource, Name: i.Name,
	}
}

// Forbidden is the answer to somebody who may not make the request.
func (i Info) Forbidden(user auth.User, reason string) error {
	return Forbidden(user, i.Attributes(), reason)
}

// Forbidden is the answer to somebody who may not do something.
func Forbidden(user auth.User, a auth.Attributes, reason string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
		Details: &metav1.StatusDetails{Group: a.Group, Kind: a.Resource, Name: a.Name},
		Message: auth.ForbiddenMessage(user, a, reason),
	}}
}

// Known returns what may be counted of a request: names and methods that the
// server does not know are the client's choice, and without end.
func (a *API) Known(i Info) Info {
	if !slices.Contains(knownVerbs, i.Verb) {
		i.Verb = "other"
	}
	r, _ := a.registry.find(schema.GroupVersion{Group: i.Group, Version: i.Version}, i.Resource)
	if r == nil {
		i.Group, i.Version, i.Resource, i.Subresource = "", "", "", ""
		return i
	}
	if sub := i.Subresource; sub != "status" && sub != "scale" && r.subresource(sub) == nil {
		i.Subresource = ""
	}
	return i
}

var knownVerbs = []string{
	"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "head", "options", "post", "put",
}

// MetricVerb is the verb as metrics have it.
func (i Info) MetricVerb() string {
	if i.Verb == "update" {
		return "PUT"
	}
	if i.Verb == "create" {
		return "POST"
	}
	return strings.ToUpper(i.Verb)
}

// RequestKind tells reading from changing requests.
func (i Info) RequestKind() string {
	switch i.Verb {
	case "get", "list", "watch", "head":
		return "readOnly"
	}
	return "mutating"
}

// SendError answers a request with an error.
func SendError(w http.ResponseWriter, r *http.Request, err error) {
	c := &call{api: silent, w: w, r: r}
	c.fail(err)
}
