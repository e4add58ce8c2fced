package openapi_test

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/even-keel/evenkeel/server/kinds"
)

// kind returns a kind of a group-version with the types that the scheme has for
// it. features: n(amespaced), s(tatus), r(eplicas, that is scale), c(reate only),
// d(elete returns the object).
func kind(gv schema.GroupVersion, name, plural, features string, subresources ...kinds.Subresource) *kinds.Kind {
	k := &kinds.Kind{
		GVK: gv.WithKind(name), Resource: plural, Subresources: subresources,
		New: create(gv.WithKind(name)), NewList: create(gv.WithKind(name + "List")),
	}
	for _, f := range features {
		switch f {
		case 'n':
			k.Namespaced = true
		case 's':
			k.HasStatus = true
		case 'r':
			k.Scale = &kinds.Scale{}
		case 'c':
			k.CreateOnly = true
		case 'd':
			k.DeleteReturnsObject = true
		}
	}
	return k
}

func create(gvk schema.GroupVersionKind) func() runtime.Object {
	return func() runtime.Object {
		obj, err := kinds.Scheme().New(gvk)
		if err != nil {
			panic(err)
		}
		return obj
	}
}

func sub(name string, gvk schema.GroupVersionKind, verbs ...string) kinds.Subresource {
	return kinds.Subresource{Name: name, GVK: gvk, Verbs: verbs}
}

// testKinds are the kinds of a real server that these tests describe, so that
// they do not depend on how many of them server/kinds has by now.
func testKinds() []*kinds.Kind {
	core := corev1.SchemeGroupVersion
	all := []*kinds.Kind{
		kind(core, "Binding", "bindings", "nc"),
		kind(core, "ConfigMap", "configmaps", "n"),
		kind(core, "Endpoints", "endpoints", "n"),
		kind(core, "Event", "events", "n"),
		kind(core, "LimitRange", "limitranges", "n"),
		kind(core, "Namespace", "namespaces", "s", sub("finalize", core.WithKind("Namespace"), "update")),
		kind(core, "Node", "nodes", "s"),
		kind(core, "PersistentVolume", "persistentvolumes", "sd"),
		kind(core, "PersistentVolumeClaim", "persistentvolumeclaims", "nsd"),
		kind(core, "Pod", "pods", "nsd",
			sub("attach", core.WithKind("PodAttachOptions"), "create", "get"),
			sub("binding", core.WithKind("Binding"), "create"),
			sub("ephemeralcontainers", core.WithKind("Pod"), "get", "patch", "update"),
			sub("eviction", policyv1.SchemeGroupVersion.WithKind("Eviction"), "create"),
			sub("exec", core.WithKind("PodExecOptions"), "create", "get"),
			sub("log", core.WithKind("Pod"), "get"),
			sub("portforward", core.WithKind("PodPortForwardOptions"), "create", "get"),
			sub("resize", core.WithKind("Pod"), "get", "patch", "update")),
		kind(core, "PodTemplate", "podtemplates", "nd"),
		kind(core, "ReplicationController", "replicationcontrollers", "nsr"),
		kind(core, "ResourceQuota", "resourcequotas", "nsd"),
		kind(core, "Secret", "secrets", "n"),
		kind(core, "Service", "services", "nsd"),
		kind(core, "ServiceAccount", "serviceaccounts", "nd",
			sub("token", authenticationv1.SchemeGroupVersion.WithKind("TokenRequest"), "create")),
	}
	for _, k := range all {
		k.NoDeleteCollection = k.GVK.Kind == "Namespace"
	}
	return append(append(all, testWorkloads()...), testPolicies()...)
}

func testWorkloads() []*kinds.Kind {
	apps, batch := appsv1.SchemeGroupVersion, batchv1.SchemeGroupVersion
	scaler := kind(autoscalingv2.SchemeGroupVersion, "HorizontalPodAutoscaler", "horizontalpodautoscalers", "ns")
	scaler.Also = []kinds.Version{{
		GVK:     autoscalingv1.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"),
		New:     func() runtime.Object { return &autoscalingv1.HorizontalPodAutoscaler{} },
		NewList: func() runtime.Object { return &autoscalingv1.HorizontalPodAutoscalerList{} },
	}}
	return []*kinds.Kind{
		kind(apps, "ControllerRevision", "controllerrevisions", "n"),
		kind(apps, "DaemonSet", "daemonsets", "ns"),
		kind(apps, "Deployment", "deployments", "nsr"),
		kind(apps, "ReplicaSet", "replicasets", "nsr"),
		kind(apps, "StatefulSet", "statefulsets", "nsr"),
		kind(batch, "CronJob", "cronjobs", "ns"),
		kind(batch, "Job", "jobs", "ns"),
		scaler,
		kind(coordinationv1.SchemeGroupVersion, "Lease", "leases", "n"),
		kind(discoveryv1.SchemeGroupVersion, "EndpointSlice", "endpointslices", "n"),
		kind(eventsv1.SchemeGroupVersion, "Event", "events", "n"),
	}
}

func testPolicies() []*kinds.Kind {
	admission, authn, authz := admissionregistrationv1.SchemeGroupVersion, authenticationv1.SchemeGroupVersion, authorizationv1.SchemeGroupVersion
	certs, net, rbac, storage := certificatesv1.SchemeGroupVersion, networkingv1.SchemeGroupVersion, rbacv1.SchemeGroupVersion, storagev1.SchemeGroupVersion
	return []*kinds.Kind{
		kind(admission, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", ""),
		kind(admission, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", ""),
		kind(admission, "ValidatingAdmissionPolicy", "validatingadmissionpolicies", "s"),
		kind(admission, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", ""),
		kind(authn, "SelfSubjectReview", "selfsubjectreviews", "c"),
		kind(authn, "TokenReview", "tokenreviews", "c"),
		kind(authz, "LocalSubjectAccessReview", "localsubjectaccessreviews", "nc"),
		kind(authz, "SelfSubjectAccessReview", "selfsubjectaccessreviews", "c"),
		kind(authz, "SelfSubjectRulesReview", "selfsubjectrulesreviews", "c"),
		kind(authz, "SubjectAccessReview", "subjectaccessreviews", "c"),
		kind(certs, "CertificateSigningRequest", "certificatesigningrequests", "s",
			sub("approval", certs.WithKind("CertificateSigningRequest"), "get", "patch", "update")),
		kind(net, "Ingress", "ingresses", "ns"),
		kind(net, "IngressClass", "ingressclasses", ""),
		kind(net, "NetworkPolicy", "networkpolicies", "n"),
		kind(nodev1.SchemeGroupVersion, "RuntimeClass", "runtimeclasses", ""),
		kind(policyv1.SchemeGroupVersion, "PodDisruptionBudget", "poddisruptionbudgets", "ns"),
		kind(rbac, "ClusterRole", "clusterroles", ""),
		kind(rbac, "ClusterRoleBinding", "clusterrolebindings", ""),
		kind(rbac, "Role", "roles", "n"),
		kind(rbac, "RoleBinding", "rolebindings", "n"),
		kind(schedulingv1.SchemeGroupVersion, "PriorityClass", "priorityclasses", ""),
		kind(storage, "CSIDriver", "csidrivers", "d"),
		kind(storage, "StorageClass", "storageclasses", "d"),
		kind(storage, "VolumeAttachment", "volumeattachments", "sd"),
	}
}
