package bootstrap

import rbacv1 "k8s.io/api/rbac/v1"

// peopleRoles are what is given to people. Whoever may edit may view, whoever is
// admin may edit; others add to them by label.
func peopleRoles() []*rbacv1.ClusterRole {
	return []*rbacv1.ClusterRole{
		clusterRole(role{"cluster-admin", rules{allow(every, every, every), allowPaths(every, "*")}}),
		aggregated("admin"),
		into("admin", aggregated("edit")),
		into("edit", aggregated("view")),
		into("admin", clusterRole(role{"system:aggregate-to-admin", rules{
			allow("create", authorization, "localsubjectaccessreviews"),
			allow(readWrite, rbac, "rolebindings roles"),
		}})),
		into("edit", clusterRole(role{"system:aggregate-to-edit", editRules()})),
		into("view", clusterRole(role{"system:aggregate-to-view", viewRules()})),
	}
}

// editRules leave roles, quotas and the cluster's own objects alone.
func editRules() rules {
	const inside = "pods/attach pods/exec pods/portforward pods/proxy "
	return rules{
		allow(read, core, inside+"secrets services/proxy"),
		allow("impersonate", core, "serviceaccounts"),
		allow(write, core, inside+"pods"),
		allow("create", core, "pods/eviction"),
		allow(write, core, "configmaps persistentvolumeclaims replicationcontrollers replicationcontrollers/scale "+
			"secrets serviceaccounts services services/proxy"),
		allow("create", core, "serviceaccounts/token"),
		allow(write, "core events.k8s.io", "events"),
		allow(write, apps, "daemonsets deployments deployments/rollback deployments/scale "+
			"replicasets replicasets/scale statefulsets statefulsets/scale"),
		allow(write, autoscaling, "horizontalpodautoscalers"),
		allow(write, batch, "cronjobs jobs"),
		allow(write, old, "daemonsets deployments deployments/rollback deployments/scale "+
			"replicasets replicasets/scale replicationcontrollers/scale ingresses networkpolicies"),
		allow(write, disruption, "poddisruptionbudgets"),
		allow(write, networking, "ingresses networkpolicies"),
		allow(readWrite, coordination, "leases"),
		allow(write, devices, "resourceclaims resourceclaimtemplates"),
	}
}

// viewRules leave out secrets, and roles, by which one could get at them.
func viewRules() rules {
	const (
		deployments = "deployments deployments/scale deployments/status "
		replicaSets = "replicasets replicasets/scale replicasets/status "
		daemonSets  = "daemonsets daemonsets/status "
		ingresses   = "ingresses ingresses/status networkpolicies "
	)
	return rules{
		allow(read, core, "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods "+
			"replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status"),
		allow(read, core, "bindings limitranges namespaces/status pods/log pods/status "+
			"replicationcontrollers/status resourcequotas resourcequotas/status"),
		allow(read, core, "namespaces"),
		allow(read, "core events.k8s.io", "events"),
		allow(read, discovery, "endpointslices"),
		allow(read, apps, deployments+replicaSets+daemonSets+
			"controllerrevisions statefulsets statefulsets/scale statefulsets/status"),
		allow(read, autoscaling, "horizontalpodautoscalers horizontalpodautoscalers/status"),
		allow(read, batch, "cronjobs cronjobs/status jobs jobs/status"),
		allow(read, old, deployments+replicaSets+daemonSets+ingresses+"replicationcontrollers/scale"),
		allow(read, disruption, "poddisruptionbudgets poddisruptionbudgets/status"),
		allow(read, networking, ingresses),
		allow(read, devices, "resourceclaims resourceclaims/status resourceclaimtemplates"),
	}
}
