package bootstrap

// The controllers that look after volumes, the network and the cluster itself.

func storageControllers() []role {
	return []role{
		{"attachdetach-controller", rules{
			allow(follow, core, "persistentvolumeclaims persistentvolumes"),
			allow(read, core, "nodes"),
			allow(change, core, "nodes/status"),
			allow(follow, core, "pods"),
			recordEvents(),
			allow("create delete get list watch", storage, "volumeattachments"),
			allow(read, storage, "csidrivers"),
			allow(read, storage, "csinodes"),
		}},
		{"ephemeral-volume-controller", rules{
			allow(read, core, "pods"),
			allow("update", core, "pods/finalizers"),
			allow("create get list watch", core, "persistentvolumeclaims"),
			recordEvents(),
		}},
		{"expand-controller", rules{
			allow("get list patch update watch", core, "persistentvolumes"),
			allow(change, core, "persistentvolumeclaims/status"),
			allow(read, core, "persistentvolumeclaims"),
			recordEvents(),
		}},
		{"persistent-volume-binder", rules{
			allow("create delete get list update watch", core, "persistentvolumes"),
			allow("update", core, "persistentvolumes/status"),
			allow("get list update watch", core, "persistentvolumeclaims"),
			allow("update", core, "persistentvolumeclaims/status"),
			allow("create delete get list watch", core, "pods"),
			allow(read, storage, "storageclasses"),
			allow(follow, core, "nodes"),
			recordEvents(),
			allow("watch", core, "events"),
		}},
		{"pv-protection-controller", rules{
			allow("get list update watch", core, "persistentvolumes"),
			recordEvents(),
		}},
		{"pvc-protection-controller", rules{
			allow("get list update watch", core, "persistentvolumeclaims"),
			allow("update", core, "persistentvolumeclaims/status"),
			allow(read, core, "pods"),
			recordEvents(),
		}},
		{"selinux-warning-controller", rules{
			recordEvents(),
			allow(read, core, "persistentvolumes"),
			allow(read, core, "persistentvolumeclaims"),
			allow(read, core, "pods"),
			allow(read, storage, "csidrivers"),
		}},
		{"volumeattributesclass-protection-controller", rules{
			allow(read, core, "persistentvolumeclaims"),
			allow(read, core, "persistentvolumes"),
			allow("get list update watch", storage, "volumeattributesclasses"),
			recordEvents(),
		}},
	}
}

func networkControllers() []role {
	const keep = "create delete get list update watch"
	return []role{
		{"endpoint-controller", rules{
			allow(read, core, "pods services"),
			allow(keep, core, "endpoints"),
			allow("create", core, "endpoints/restricted"),
			recordEvents(),
		}},
		{"endpointslice-controller", rules{
			allow(read, core, "nodes pods services"),
			allow("update", core, "services/finalizers"),
			allow(keep, discovery, "endpointslices"),
			recordEvents(),
		}},
		{"endpointslicemirroring-controller", rules{
			allow(read, core, "endpoints services"),
			allow("update", core, "services/finalizers"),
			allow("update", core, "endpoints/finalizers"),
			allow(keep, discovery, "endpointslices"),
			recordEvents(),
		}},
		{"service-controller", rules{
			allow(read, core, "services"),
			allow(change, core, "services/status"),
			allow(follow, core, "nodes"),
			recordEvents(),
		}},
		{"service-cidrs-controller", rules{
			allow("get list patch update watch", networking, "servicecidrs"),
			allow(change, networking, "servicecidrs/finalizers"),
			allow(change, networking, "servicecidrs/status"),
			allow(read, networking, "ipaddresses"),
			recordEvents(),
		}},
	}
}

// identityControllers make accounts, certificates and roles.
func identityControllers() []role {
	const signer = "kubernetes.io/"
	return []role{
		{"certificate-controller", rules{
			allow("delete get list watch", certificates, "certificatesigningrequests"),
			allow("update", certificates, "certificatesigningrequests/approval certificatesigningrequests/status"),
			allowNamed("approve", certificates, "signers", signer+"kube-apiserver-client-kubelet"),
			allowNamed("sign", certificates, "signers", signer+"kube-apiserver-client "+
				signer+"kube-apiserver-client-kubelet "+signer+"kubelet-serving "+signer+"legacy-unknown"),
			reviewAccess(),
			recordEvents(),
		}},
		{"clusterrole-aggregation-controller", rules{
			allow("escalate get list patch update watch", rbac, "clusterroles"),
		}},
		{"kube-apiserver-serving-clustertrustbundle-publisher", rules{
			allowNamed("attest", certificates, "signers", signer+"kube-apiserver-serving"),
			allow("create delete list update watch", certificates, "clustertrustbundles"),
			recordEvents(),
		}},
		{"legacy-service-account-token-cleaner", rules{
			allowNamed("get", core, "configmaps", "kube-apiserver-legacy-service-account-token-tracking"),
			allow("delete patch", core, "secrets"),
		}},
		{"podcertificaterequestcleaner", rules{
			allow("delete get list watch", certificates, "podcertificaterequests"),
		}},
		{"root-ca-cert-publisher", rules{
			allow("create update", core, "configmaps"),
			recordEvents(),
		}},
		{"service-account-controller", rules{
			allow("create", core, "serviceaccounts"),
			recordEvents(),
		}},
	}
}

// systemControllers work on objects of all kinds.
func systemControllers() []role {
	return []role{
		{"generic-garbage-collector", rules{
			allow("delete get list patch update watch", every, every),
			recordEvents(),
		}},
		{"namespace-controller", rules{
			allow("delete get list watch", core, "namespaces"),
			allow("update", core, "namespaces/finalize namespaces/status"),
			allow("delete deletecollection get list watch", every, every),
		}},
		{"resourcequota-controller", rules{
			allow(follow, every, every),
			allow("update", core, "resourcequotas/status"),
			recordEvents(),
		}},
		{"storage-version-migrator-controller", rules{
			allow("list patch", every, every),
			allow("get", crds, "customresourcedefinitions"),
			allow("patch", crds, "customresourcedefinitions/status"),
			allow("update", "storagemigration.k8s.io", "storageversionmigrations/status"),
		}},
		{"validatingadmissionpolicy-status-controller", rules{
			allow(read, admission, "validatingadmissionpolicies"),
			allow("get patch update", admission, "validatingadmissionpolicies/status"),
			recordEvents(),
		}},
	}
}
