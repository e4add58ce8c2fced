package bootstrap

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Verbs and groups of the tables. Lists are words; their order does not matter.
const (
	read      = "get list watch"
	write     = "create delete deletecollection patch update"
	readWrite = read + " " + write
	follow    = "list watch"
	change    = "patch update"
	own       = "create delete get list patch update watch"
	every     = "*"

	core           = "core" // the group without a name
	admission      = "admissionregistration.k8s.io"
	apps           = "apps"
	authentication = "authentication.k8s.io"
	authorization  = "authorization.k8s.io"
	autoscaling    = "autoscaling"
	batch          = "batch"
	certificates   = "certificates.k8s.io"
	coordination   = "coordination.k8s.io"
	crds           = "apiextensions.k8s.io"
	discovery      = "discovery.k8s.io"
	devices        = "resource.k8s.io"
	disruption     = "policy"
	networking     = "networking.k8s.io"
	nodes          = "node.k8s.io"
	rbac           = "rbac.authorization.k8s.io"
	storage        = "storage.k8s.io"

	// Workloads and ingresses were in the group extensions once.
	old        = "extensions"
	appsAndOld = apps + " " + old
)

// rules are what a role allows.
type rules []rbacv1.PolicyRule

// allow permits verbs on resources of groups.
func allow(verbs, groups, resources string) rbacv1.PolicyRule {
	r := rbacv1.PolicyRule{Verbs: words(verbs), APIGroups: words(groups), Resources: words(resources)}
	if i := slices.Index(r.APIGroups, core); i >= 0 {
		r.APIGroups = slices.Insert(slices.Delete(r.APIGroups, i, i+1), 0, "")
	}
	return r
}

// allowNamed permits verbs on the objects of these names only.
func allowNamed(verbs, group, resource, names string) rbacv1.PolicyRule {
	r := allow(verbs, group, resource)
	r.ResourceNames = words(names)
	return r
}

// allowPaths permits verbs on paths that are not of resources.
func allowPaths(verbs, paths string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: words(verbs), NonResourceURLs: words(paths)}
}

// recordEvents is what everybody needs that tells of its work in events.
func recordEvents() rbacv1.PolicyRule {
	return allow("create patch update", "core events.k8s.io", "events")
}

// reviewTokens and reviewAccess are for those that ask the API server who a
// client is, and what it may do.
func reviewTokens() rbacv1.PolicyRule { return allow("create", authentication, "tokenreviews") }

func reviewAccess() rbacv1.PolicyRule { return allow("create", authorization, "subjectaccessreviews") }

// words are the words of a list, in the order in which they are stored.
func words(list string) []string {
	w := strings.Fields(list)
	slices.Sort(w)
	return w
}
