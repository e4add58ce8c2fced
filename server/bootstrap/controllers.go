package bootstrap

// The tables of controllers: each has an account in kube-system of its name,
// bound to a ClusterRole that is named after it. This file holds those that look
// after workloads, pods and nodes.

func workloadControllers() []role {
	return []role{
		{"cronjob-controller", rules{
			allow("get list update watch", batch, "cronjobs"),
			allow(own, batch, "jobs"),
			allow("update", batch, "cronjobs/status"),
			allow("update", batch, "cronjobs/finalizers"),
			allow("delete list watch", core, "pods"),
			recordEvents(),
		}},
		{"daemon-set-controller", rules{
			allow(read, appsAndOld, "daemonsets"),
			allow("update", appsAndOld, "daemonsets/status"),
			allow("update", appsAndOld, "daemonsets/finalizers"),
			allow(follow, core, "nodes"),
			allow("create delete list patch watch", core, "pods"),
			allow("create", core, "pods/binding"),
			allow(own, apps, "controllerrevisions"),
			recordEvents(),
		}},
		{"deployment-controller", rules{
			allow("get list update watch", appsAndOld, "deployments"),
			allow("update", appsAndOld, "deployments/status"),
			allow("update", appsAndOld, "deployments/finalizers"),
			allow(own, appsAndOld, "replicasets"),
			allow("get list update watch", core, "pods"),
			recordEvents(),
		}},
		{"job-controller", rules{
			allow("get list patch update watch", batch, "jobs"),
			allow("update", batch, "jobs/status"),
			allow("update", batch, "jobs/finalizers"),
			allow("create delete list patch watch", core, "pods"),
			recordEvents(),
		}},
		{"replicaset-controller", replicaRules(appsAndOld, "replicasets")},
		{"replication-controller", replicaRules(core, "replicationcontrollers")},
		{"statefulset-controller", rules{
			allow(follow, core, "pods"),
			allow(read, apps, "statefulsets"),
			allow("update", apps, "statefulsets/status"),
			allow("update", apps, "statefulsets/finalizers"),
			allow("create delete get patch update", core, "pods"),
			allow(own, apps, "controllerrevisions"),
			allow("create get list watch", core, "persistentvolumeclaims"),
			allow("delete update", core, "persistentvolumeclaims"),
			allow("update", core, "pods/finalizers"),
			recordEvents(),
		}},
		{"ttl-after-finished-controller", rules{
			allow("delete get list watch", batch, "jobs"),
			recordEvents(),
		}},
	}
}

// replicaRules are for a resource that is a number of equal pods.
func replicaRules(groups, resource string) rules {
	return rules{
		allow("get list update watch", groups, resource),
		allow("update", groups, resource+"/status"),
		allow("update", groups, resource+"/finalizers"),
		allow("create delete list patch watch", core, "pods"),
		recordEvents(),
	}
}

func podControllers() []role {
	return []role{
		{"disruption-controller", rules{
			allow(read, appsAndOld, "deployments"),
			allow(read, appsAndOld, "replicasets"),
			allow(read, core, "replicationcontrollers"),
			allow(read, disruption, "poddisruptionbudgets"),
			allow(read, apps, "statefulsets"),
			allow("update", disruption, "poddisruptionbudgets/status"),
			allow(change, core, "pods/status"),
			allow("get", every, "*/scale"),
			recordEvents(),
		}},
		{"horizontal-pod-autoscaler", rules{
			allow(read, autoscaling, "horizontalpodautoscalers"),
			allow("update", autoscaling, "horizontalpodautoscalers/status"),
			allow("get update", every, "*/scale"),
			allow(follow, core, "pods"),
			allow(follow, "metrics.k8s.io", "pods"),
			allow(read, "custom.metrics.k8s.io", every),
			allow(read, "external.metrics.k8s.io", every),
			recordEvents(),
		}},
		{"pod-garbage-collector", rules{
			allow("delete list watch", core, "pods"),
			allow(read, core, "nodes"),
			allow("patch", core, "pods/status"),
		}},
		{"resource-claim-controller", rules{
			allow(read, core, "pods"),
			allow("update", core, "pods/finalizers"),
			allow("create delete get list watch", devices, "resourceclaims"),
			allow(change, devices, "resourceclaims resourceclaims/status"),
			allow(change, core, "pods/status"),
			recordEvents(),
			allow(change, devices, "resourceclaims/binding"),
		}},
		{"device-taint-eviction-controller", rules{
			allow("delete get list watch", core, "pods"),
			allow(change, core, "pods/status"),
			allow(read, devices, "resourceclaims"),
			allow(read, devices, "resourceslices"),
			allow(read, devices, "deviceclasses"),
			recordEvents(),
			allow(change, devices, "devicetaintrules/status"),
			allow(read, devices, "devicetaintrules"),
		}},
	}
}

func nodeControllers() []role {
	return []role{
		{"node-controller", rules{
			allow("delete get list patch update watch", core, "nodes"),
			allow(change, core, "nodes/status"),
			allow(change, core, "pods/status"),
			allow("delete get list watch", core, "pods"),
			allow(read, coordination, "leases"),
			recordEvents(),
		}},
		{"route-controller", rules{
			allow(follow, core, "nodes"),
			allow("patch", core, "nodes/status"),
			recordEvents(),
		}},
		{"ttl-controller", rules{
			allow("list patch update watch", core, "nodes"),
			recordEvents(),
		}},
	}
}
