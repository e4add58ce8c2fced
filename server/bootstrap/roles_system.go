package bootstrap

// publicRoles are about the server itself: what it serves, how it is.
func publicRoles() []role {
	const health, version = "/healthz /livez /readyz ", "/version /version/ "
	return []role{
		{"system:basic-user", rules{
			allow("create", authorization, "selfsubjectaccessreviews selfsubjectrulesreviews"),
			allow("create", authentication, "selfsubjectreviews"),
		}},
		{"system:public-info-viewer", rules{allowPaths("get", health+version)}},
		{"system:discovery", rules{
			allowPaths("get", health+version+"/api /api/* /apis /apis/* /openapi /openapi/*"),
		}},
		{"system:monitoring", rules{
			allowPaths("get", health+"/healthz/* /livez/* /readyz/* /metrics /metrics/slis /flagz /statusz"),
			allow("get", core, "nodes/metrics"),
		}},
		{"system:service-account-issuer-discovery", rules{
			allowPaths("get", "/.well-known/openid-configuration /.well-known/openid-configuration/ "+
				"/openid/v1/jwks /openid/v1/jwks/"),
		}},
		{"system:cluster-trust-bundle-discovery", rules{allow(read, certificates, "clustertrustbundles")}},
		{"system:auth-delegator", rules{reviewTokens(), reviewAccess()}},
	}
}

// componentRoles are of the programs that make up a cluster, but for nodes'.
func componentRoles() []role {
	return []role{
		{"system:kube-controller-manager", controllerManagerRules()},
		{"system:kube-scheduler", schedulerRules()},
		{"system:volume-scheduler", rules{
			allow("get list patch update watch", core, "persistentvolumes"),
			allow(read, storage, "storageclasses"),
			allow("get list patch update watch", core, "persistentvolumeclaims"),
		}},
		{"system:persistent-volume-provisioner", rules{
			allow("create delete get list watch", core, "persistentvolumes"),
			allow("get list update watch", core, "persistentvolumeclaims"),
			allow(read, storage, "storageclasses"),
			allow("watch", core, "events"),
			recordEvents(),
		}},
		{"system:kube-dns", rules{allow(follow, core, "endpoints services")}},
		{"system:kube-aggregator", rules{allow(read, core, "endpoints services")}},
		{"system:heapster", rules{
			allow(read, core, "events namespaces nodes pods"),
			allow(read, old, "deployments"),
		}},
	}
}

// controllerManagerRules are for what its controllers share: it reads all, and
// makes them accounts with which each has a role of its own.
func controllerManagerRules() rules {
	return rules{
		recordEvents(),
		allow("create", coordination, "leases"),
		allowNamed("get update", coordination, "leases", "kube-controller-manager"),
		allow("create", core, "secrets serviceaccounts"),
		allow("delete", core, "secrets"),
		allow("get", core, "configmaps namespaces secrets serviceaccounts"),
		allow("update", core, "secrets serviceaccounts"),
		reviewTokens(),
		reviewAccess(),
		allow(follow, every, every),
		allow("create", core, "serviceaccounts/token"),
	}
}

func schedulerRules() rules {
	return rules{
		recordEvents(),
		allow("create", coordination, "leases"),
		allowNamed("get list update watch", coordination, "leases", "kube-scheduler"),
		allow(readWrite, coordination, "leasecandidates"),

		allow(read, core, "nodes"),
		allow("delete get list watch", core, "pods"),
		allow("create", core, "bindings pods/binding"),
		allow(change, core, "pods/status"),
		allow(read, core, "replicationcontrollers services"),
		allow(read, appsAndOld, "replicasets"),
		allow(read, apps, "statefulsets"),
		allow(read, disruption, "poddisruptionbudgets"),
		allow(read, core, "persistentvolumeclaims persistentvolumes"),

		reviewTokens(),
		reviewAccess(),

		allow(read, storage, "csinodes"),
		allow(read, storage, "volumeattachments"),
		allow(read, core, "namespaces"),
		allow(read, storage, "csidrivers"),
		allow(read, storage, "csistoragecapacities"),

		allow(read, devices, "deviceclasses"),
		allow("get list patch update watch", devices, "resourceclaims"),
		allow("get list patch update watch", devices, "resourceclaims/status"),
		allow("update", core, "pods/finalizers"),
		allow(read, devices, "resourceslices"),
		allow("create delete", devices, "resourceclaims"),
		allow(read, devices, "devicetaintrules"),
		allow(change, devices, "resourceclaims/binding"),
	}
}
