package kinds

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func podKind() *Kind {
	return &Kind{
		GVK:      corev1.SchemeGroupVersion.WithKind("Pod"),
		Resource: "pods", Singular: "pod", ShortNames: []string{"po"}, Categories: []string{"all"}, Namespaced: true,
		New: newOf[corev1.Pod], NewList: newOf[corev1.PodList],
		HasStatus: true, HasGeneration: true, DeleteReturnsObject: true,
		Subresources:   podSubresources(),
		Default:        each(defaultPod),
		PrepareCreate:  each(preparePod),
		PrepareUpdate:  eachPair(preparePodUpdate),
		PrepareStatus:  eachPair(preparePodStatus),
		Validate:       check(validatePod),
		ValidateCreate: check(validatePodCreate),
		ValidateUpdate: checkPair(validatePodUpdate),
		ValidateStatus: checkPair(validatePodStatus),
		Warnings:       warn(podWarnings),
		Fields: []string{"spec.nodeName", "spec.host", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
			"spec.hostNetwork", "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName"},
		FieldSet: fieldSet(podFields),
		Columns: []metav1.TableColumnDefinition{
			nameColumn(), column("Ready", "Containers that are ready, of all."),
			column("Status", "What the pod is doing, or what keeps it from it."),
			column("Restarts", "How often containers were restarted, and when last."), ageColumn(),
			wideColumn("IP", "Address of the pod."), wideColumn("Node", "Node that the pod is bound to."),
			wideColumn("Nominated Node", "Node on which room is being made for the pod."),
			wideColumn("Readiness Gates", "Further conditions that hold, of all that readiness waits for."),
		},
		Cells:         cells(podCells),
		RowConditions: podRowConditions,
	}
}

func podSubresources() []Subresource {
	pod := corev1.SchemeGroupVersion.WithKind("Pod")
	update := []string{"get", "patch", "update"}
	connect := []string{"create", "get"}
	return []Subresource{
		{Name: "attach", GVK: corev1.SchemeGroupVersion.WithKind("PodAttachOptions"), Verbs: connect},
		{Name: "binding", GVK: corev1.SchemeGroupVersion.WithKind("Binding"), Verbs: []string{"create"}},
		{Name: "ephemeralcontainers", GVK: pod, Verbs: update,
			Prepare: eachPair(prepareEphemeralContainers), Validate: checkPair(validateEphemeralContainersUpdate)},
		{Name: "eviction", GVK: policyv1.SchemeGroupVersion.WithKind("Eviction"), Verbs: []string{"create"}},
		{Name: "exec", GVK: corev1.SchemeGroupVersion.WithKind("PodExecOptions"), Verbs: connect},
		{Name: "log", GVK: pod, Verbs: []string{"get"}},
		{Name: "portforward", GVK: corev1.SchemeGroupVersion.WithKind("PodPortForwardOptions"), Verbs: connect},
		{Name: "proxy", GVK: corev1.SchemeGroupVersion.WithKind("PodProxyOptions"), Verbs: proxyVerbs()},
		{Name: "resize", GVK: pod, Verbs: update,
			Prepare: eachPair(prepareResize), Validate: checkPair(validateResize)},
	}
}

func proxyVerbs() []string { return []string{"create", "delete", "get", "patch", "update"} }

// podFields leaves out status.podIPs: it may be asked for, and matches nothing.
func podFields(pod *corev1.Pod) fields.Set {
	return fields.Set{
		"spec.nodeName":            pod.Spec.NodeName,
		"spec.host":                pod.Spec.NodeName,
		"spec.restartPolicy":       string(pod.Spec.RestartPolicy),
		"spec.schedulerName":       pod.Spec.SchedulerName,
		"spec.serviceAccountName":  pod.Spec.ServiceAccountName,
		"spec.hostNetwork":         strconv.FormatBool(pod.Spec.HostNetwork),
		"status.phase":             string(pod.Status.Phase),
		"status.podIP":             pod.Status.PodIP,
		"status.nominatedNodeName": pod.Status.NominatedNodeName,
	}
}

func validatePod(pod *corev1.Pod) field.ErrorList {
	c := newPodChecker(&pod.Spec, &pod.ObjectMeta, field.NewPath("spec"))
	c.checkAnnotations(pod.Annotations, field.NewPath("metadata", "annotations"))
	c.checkSpec()
	c.checkPodOnly()
	return c.list
}

// checkPodOnly checks what was never checked in templates.
func (c *podChecker) checkPodOnly() {
	for i, v := range c.spec.Volumes {
		if v.Projected == nil || c.spec.ServiceAccountName != "" {
			continue
		}
		for j, s := range v.Projected.Sources {
			if s.ServiceAccountToken != nil {
				path := c.path.Child("volumes").Index(i).Child("projected", "sources").Index(j)
				c.forbidden(path.Child("serviceAccountToken"), "must not be specified when serviceAccountName is not set")
			}
		}
	}
	if s := c.spec.TerminationGracePeriodSeconds; s != nil {
		c.nonNegative(c.path.Child("terminationGracePeriodSeconds"), *s)
	}
	for i := range c.spec.Containers {
		c.checkImageSpaces(&c.spec.Containers[i], c.path.Child("containers").Index(i))
	}
	for i := range c.spec.InitContainers {
		c.checkImageSpaces(&c.spec.InitContainers[i], c.path.Child("initContainers").Index(i))
	}
}

func validatePodCreate(pod *corev1.Pod) field.ErrorList {
	c := newPodChecker(&pod.Spec, &pod.ObjectMeta, field.NewPath("spec"))
	if len(pod.Spec.EphemeralContainers) > 0 {
		c.forbidden(c.path.Child("ephemeralContainers"), "cannot be set on create")
	}
	if pod.Spec.NodeName != "" && len(pod.Spec.SchedulingGates) > 0 {
		c.forbidden(c.path.Child("nodeName"), "cannot be set until all schedulingGates have been cleared")
	}
	c.checkProfilesAgree(pod.Annotations)
	return c.list
}
