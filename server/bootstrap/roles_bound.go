package bootstrap

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// clusterBindings say who has which role from the start; controllers apart.
func clusterBindings() []binding {
	const authenticated, unauthenticated = "system:authenticated", "system:unauthenticated"
	return []binding{
		{"cluster-admin", toGroups("system:masters")},
		{"system:basic-user", toGroups(authenticated)},
		{"system:cluster-trust-bundle-discovery", toGroups("system:serviceaccounts")},
		{"system:discovery", toGroups(authenticated)},
		{"system:kube-controller-manager", toUsers("system:kube-controller-manager")},
		{"system:kube-dns", toAccounts("kube-dns")},
		{"system:kube-scheduler", toUsers("system:kube-scheduler")},
		{"system:monitoring", toGroups("system:monitoring")},
		{"system:node", nil},
		{"system:node-proxier", toUsers("system:kube-proxy")},
		{"system:public-info-viewer", toGroups(authenticated, unauthenticated)},
		{"system:service-account-issuer-discovery", toGroups("system:serviceaccounts")},
		{"system:volume-scheduler", toUsers("system:kube-scheduler")},
	}
}

// namespacedPolicy are the roles that reach into one namespace only.
func namespacedPolicy() []runtime.Object {
	const (
		system  = "kube-system"
		manager = "kube-controller-manager"
		planner = "kube-scheduler"
		trust   = "extension-apiserver-authentication"
	)
	trustReader := role{trust + "-reader", rules{allowNamed(read, core, "configmaps", trust)}}
	readers := toUsers("system:"+manager, "system:"+planner)

	return slices.Concat(
		[]runtime.Object{
			namespacedRole(system, trustReader),
			roleBinding(system, "system::"+trustReader.name, binding{trustReader.name, readers}),
		},
		leaderLock(manager, "leader-election-controller"),
		leaderLock(planner),
		controllerIn("kube-public", role{"bootstrap-signer", rules{
			allow(read, core, "configmaps"),
			allowNamed("update", core, "configmaps", "cluster-info"),
			recordEvents(),
		}}),
		controllerIn(system, role{"bootstrap-signer", rules{allow(read, core, "secrets")}}),
		controllerIn(system, role{"cloud-provider", rules{allow("create get list watch", core, "configmaps")}}),
		controllerIn(system, role{"token-cleaner", rules{
			allow("delete get list watch", core, "secrets"),
			recordEvents(),
		}}),
	)
}

// leaderLock lets a component, as a user and as an account, elect a leader.
func leaderLock(component string, more ...string) []runtime.Object {
	const namespace, keep = "kube-system", "create get list update watch"
	name := "system::leader-locking-" + component
	subjects := append(toUsers("system:"+component), toAccounts(component)...)
	return []runtime.Object{
		namespacedRole(namespace, role{name, rules{
			allow(keep, coordination, "leases"),
			allow(keep, coordination, "leasecandidates"),
		}}),
		roleBinding(namespace, name, binding{name, append(subjects, toAccounts(more...)...)}),
	}
}

// controllerIn gives a controller a role in a namespace.
func controllerIn(namespace string, r role) []runtime.Object {
	subjects := toAccounts(r.name)
	r.name = controllerPrefix + r.name
	return []runtime.Object{
		namespacedRole(namespace, r),
		roleBinding(namespace, r.name, binding{r.name, subjects}),
	}
}
