package rest

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// target is what a path below /api or /apis is about.
type target struct {
	gv          schema.GroupVersion
	namespace   string
	resource    string
	name        string
	subresource string
	// watch is set by the old paths that begin with watch/.
	watch bool
	// scoped says that the path names a namespace, be it empty.
	scoped bool
}

// parseTarget reads the path of a request about a resource. ok is false for
// paths that are about none, such as those of discovery.
func parseTarget(path string) (t target, ok bool) {
	parts := strings.Split(strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		t.gv, parts = schema.GroupVersion{Version: parts[1]}, parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		t.gv, parts = schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:]
	default:
		return target{}, false
	}
	if parts[0] == "watch" && len(parts) > 1 {
		t.watch, parts = true, parts[1:]
	}
	if parts[0] == "namespaces" && len(parts) > 1 {
		if len(parts) == 2 || len(parts) == 3 && namespaceSubresource(parts[2]) {
			// The namespace itself. Its own name is its namespace for authorisation.
			t.resource, t.name = "namespaces", parts[1]
			if len(parts) == 3 {
				t.subresource = parts[2]
			}
			return t, true
		}
		t.namespace, t.scoped, parts = parts[1], true, parts[2:]
	}
	t.resource = parts[0]
	if len(parts) > 1 {
		t.name = parts[1]
	}
	if len(parts) > 2 {
		t.subresource = strings.Join(parts[2:], "/")
	}
	return t, true
}

func namespaceSubresource(name string) bool { return name == "status" || name == "finalize" }

// verb names what a request does, as RBAC and metrics have it.
func (t target) verb(method string, watching bool) string {
	switch method {
	case http.MethodGet, http.MethodHead:
		switch {
		case watching || t.watch:
			return "watch"
		case t.name == "":
			return "list"
		default:
			return "get"
		}
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if t.name == "" {
			return "deletecollection"
		}
		return "delete"
	default:
		return strings.ToLower(method)
	}
}
