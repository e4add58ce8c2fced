package bootstrap

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func coreKind(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: "v1", Kind: kind}
}

func namespaces(names ...string) []runtime.Object {
	var objects []runtime.Object
	for _, name := range names {
		objects = append(objects, &corev1.Namespace{
			TypeMeta: coreKind("Namespace"),
			ObjectMeta: metav1.ObjectMeta{
				Name:   name,
				Labels: map[string]string{corev1.LabelMetadataName: name},
			},
			Spec:   corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{corev1.FinalizerKubernetes}},
			Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive},
		})
	}
	return objects
}

func priorityClasses() []runtime.Object {
	const critical = 2_000_000_000
	return []runtime.Object{
		priorityClass("system-cluster-critical", critical,
			"For pods that the cluster cannot do without, on whichever node they run."),
		priorityClass("system-node-critical", critical+1000,
			"For pods that their node cannot do without; they are not moved to another."),
	}
}

func priorityClass(name string, value int32, description string) runtime.Object {
	return &schedulingv1.PriorityClass{
		TypeMeta:         metav1.TypeMeta{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass"},
		ObjectMeta:       metav1.ObjectMeta{Name: name},
		Value:            value,
		Description:      description,
		PreemptionPolicy: new(corev1.PreemptLowerPriority),
	}
}

// extensionTrust tells extension servers which client certificates are good. A
// server that does not stand behind another names no request headers.
func extensionTrust(o Options) []runtime.Object {
	if len(o.ClientCA) == 0 {
		return nil
	}
	return []runtime.Object{&corev1.ConfigMap{
		TypeMeta:   coreKind("ConfigMap"),
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "extension-apiserver-authentication"},
		Data:       map[string]string{"client-ca-file": string(o.ClientCA)},
	}}
}

func defaultAccount(namespace string) runtime.Object {
	return &corev1.ServiceAccount{
		TypeMeta:   coreKind("ServiceAccount"),
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"},
	}
}

func rootCA(namespace string, pem []byte) runtime.Object {
	return &corev1.ConfigMap{
		TypeMeta: coreKind("ConfigMap"),
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace,
			Name:      "kube-root-ca.crt",
			Annotations: map[string]string{"kubernetes.io/description": "What to check the API server's " +
				"certificate against when it is reached from inside the cluster, as kubernetes.default.svc."},
		},
		Data: map[string]string{"ca.crt": string(pem)},
	}
}
