package bootstrap

// nodeRoles are of the agents on nodes, and of who talks to them.
func nodeRoles() []role {
	const join = "create get list watch"
	return []role{
		{"system:node", kubeletRules()},
		{"system:node-bootstrapper", rules{allow(join, certificates, "certificatesigningrequests")}},
		{"system:node-problem-detector", rules{
			allow("get", core, "nodes"),
			allow("patch", core, "nodes/status"),
			recordEvents(),
		}},
		{"system:node-proxier", rules{
			allow(follow, core, "endpoints services"),
			allow(read, core, "nodes"),
			recordEvents(),
			allow(follow, networking, "servicecidrs"),
			allow(follow, discovery, "endpointslices"),
		}},
		{"system:kubelet-api-admin", rules{
			allow(read, core, "nodes"),
			allow("proxy", core, "nodes"),
			allow(every, core, "nodes/log nodes/metrics nodes/proxy nodes/stats"),
			allow(every, core, "nodes/configz nodes/healthz nodes/pods"),
		}},
	}
}

// kubeletRules are bound to nobody: nodes have an authorizer of their own, which
// allows each what concerns its pods.
func kubeletRules() rules {
	const keep = "create delete get patch update"
	return rules{
		reviewTokens(),
		allow("create", authorization, "localsubjectaccessreviews subjectaccessreviews"),

		allow(read, core, "services"),
		allow("create get list watch", core, "nodes"),
		allow(change, core, "nodes/status"),
		allow(change, core, "nodes"),
		recordEvents(),
		allow(read, core, "pods"),
		allow("create delete", core, "pods"),
		allow(change, core, "pods/status"),
		allow("create", core, "pods/eviction"),
		allow(read, core, "configmaps secrets"),
		allow("get", core, "persistentvolumeclaims persistentvolumes"),
		allow("get", core, "endpoints"),

		allow("create get list watch", certificates, "certificatesigningrequests"),
		allow(keep, coordination, "leases"),
		allow("get", storage, "volumeattachments"),
		allow("create", core, "serviceaccounts/token"),
		allow("get patch update", core, "persistentvolumeclaims/status"),
		allow(read, storage, "csidrivers"),
		allow(keep, storage, "csinodes"),
		allow(read, nodes, "runtimeclasses"),
		allow("get", devices, "resourceclaims"),
		allow("deletecollection", devices, "resourceslices"),
		allow(read, certificates, "clustertrustbundles"),
		allow("get", core, "serviceaccounts"),
		allow("create get list watch", certificates, "podcertificaterequests"),
	}
}

// certificateRoles are for asking for a node's certificate, and for approving
// what is asked of one of the signers.
func certificateRoles() []role {
	const prefix = "system:certificates.k8s.io:"
	var roles []role
	for _, who := range []string{"nodeclient", "selfnodeclient"} {
		roles = append(roles, role{prefix + "certificatesigningrequests:" + who, rules{
			allow("create", certificates, "certificatesigningrequests/"+who),
		}})
	}
	signers := []string{"kube-apiserver-client", "kube-apiserver-client-kubelet", "kubelet-serving", "legacy-unknown"}
	for _, signer := range signers {
		roles = append(roles, role{prefix + signer + "-approver", rules{
			allowNamed("approve", certificates, "signers", "kubernetes.io/"+signer),
		}})
	}
	return roles
}
