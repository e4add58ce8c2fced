package kinds

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// keepAll makes pod what old is, but for what a subresource puts back after.
func keepAll(pod, old *corev1.Pod) {
	pod.Spec = *old.Spec.DeepCopy()
	pod.Status = *old.Status.DeepCopy()
	metav1.ResetObjectMetaForStatus(pod, old)
}

func prepareEphemeralContainers(pod, old *corev1.Pod) {
	added := pod.Spec.EphemeralContainers
	keepAll(pod, old)
	pod.Spec.EphemeralContainers = added
}

// validateEphemeralContainersUpdate lets containers be added, nothing else.
func validateEphemeralContainersUpdate(pod, old *corev1.Pod) field.ErrorList {
	if _, static := old.Annotations[corev1.MirrorPodAnnotationKey]; static {
		return field.ErrorList{field.Forbidden(field.NewPath(""), "static pods do not support ephemeral containers")}
	}
	p := problems{list: validatePod(pod)}
	path := field.NewPath("spec", "ephemeralContainers")
	for _, was := range old.Spec.EphemeralContainers {
		i := slices.IndexFunc(pod.Spec.EphemeralContainers, func(c corev1.EphemeralContainer) bool { return c.Name == was.Name })
		if i < 0 {
			p.forbidden(path, fmt.Sprintf("existing ephemeral containers %q may not be removed\n", was.Name))
		} else if is := pod.Spec.EphemeralContainers[i]; !equality.Semantic.DeepEqual(was, is) {
			p.forbidden(path, fmt.Sprintf("existing ephemeral containers %q may not be changed\n%v", was.Name, diff.Diff(was, is)))
		}
	}
	return p.list
}

// prepareResize keeps all but resources, unless the containers are others: then
// validateResize has something to say.
func prepareResize(pod, old *corev1.Pod) {
	if len(pod.Spec.Containers) != len(old.Spec.Containers) || len(pod.Spec.InitContainers) != len(old.Spec.InitContainers) {
		return
	}
	containers := resized(pod.Spec.Containers, old.Spec.Containers)
	initContainers := resized(pod.Spec.InitContainers, old.Spec.InitContainers)
	ofPod := pod.Spec.Resources
	keepAll(pod, old)
	pod.Spec.Containers, pod.Spec.InitContainers, pod.Spec.Resources = containers, initContainers, ofPod
}

func resized(now, before []corev1.Container) []corev1.Container {
	out := make([]corev1.Container, len(before))
	for i := range before {
		if now[i].Name != before[i].Name {
			return now
		}
		out[i] = *before[i].DeepCopy()
		out[i].Resources, out[i].ResizePolicy = now[i].Resources, now[i].ResizePolicy
	}
	if len(out) == 0 {
		return now
	}
	return out
}

// validateResize lets amounts of cpu and memory change, and nothing else.
func validateResize(pod, old *corev1.Pod) field.ErrorList {
	if _, static := old.Annotations[corev1.MirrorPodAnnotationKey]; static {
		return field.ErrorList{field.Forbidden(field.NewPath(""), "static pods cannot be resized")}
	}
	if old.Spec.OS != nil && old.Spec.OS.Name == corev1.Windows {
		return field.ErrorList{field.Forbidden(field.NewPath(""), "windows pods cannot be resized")}
	}
	c := newPodChecker(&pod.Spec, &pod.ObjectMeta, field.NewPath("spec"))
	c.list = validatePod(pod)
	before := old.Status.QOSClass
	setEmpty(&before, qosClass(&old.Spec))
	if before != qosClass(&pod.Spec) {
		c.invalid(c.path, pod.Status.QOSClass, "Pod QOS Class may not change as a result of resizing")
	}
	if !canResize(old) {
		c.forbidden(c.path, "Pod running on node without support for resize")
	}
	now := pod.Spec.DeepCopy()
	c.checkPodResize(now, &old.Spec)
	if !c.sameContainers(now.Containers, old.Spec.Containers, "containers") ||
		!c.sameContainers(now.InitContainers, old.Spec.InitContainers, "initContainers") {
		return c.list
	}
	for i := range now.InitContainers {
		c.checkResize(&now.InitContainers[i], &old.Spec.InitContainers[i], c.path.Child("initContainers").Index(i),
			c.path.Child("initContainers").Index(i), "only cpu and memory resources for init or sidecar containers are mutable")
	}
	for i := range now.Containers {
		c.checkResize(&now.Containers[i], &old.Spec.Containers[i], c.path.Child("containers").Index(i),
			c.path, "only cpu and memory resources are mutable")
	}
	if len(c.list) == 0 && !equality.Semantic.DeepEqual(*now, old.Spec) {
		c.forbidden(c.path, "only cpu and memory resources are mutable")
	}
	return c.list
}

// canResize reports whether the kubelet that runs the pod says what it gave, as
// those do that can change it.
func canResize(pod *corev1.Pod) bool {
	for _, s := range pod.Status.ContainerStatuses {
		if s.State.Running != nil {
			return s.Resources != nil
		}
	}
	return true
}

// sameContainers reports whether the containers are those from before.
func (c *podChecker) sameContainers(now, before []corev1.Container, name string) bool {
	path := c.path.Child(name)
	if len(now) != len(before) {
		c.forbidden(path, name+" may not be added or removed on resize")
		return false
	}
	same := true
	for i := range now {
		if now[i].Name != before[i].Name {
			c.forbidden(path.Index(i).Child("name"), name+" may not be renamed or reordered on resize")
			same = false
		}
	}
	return same
}

// checkResize gives now the amounts from before: what still differs was not to
// change, which is reported of whole.
func (c *podChecker) checkResize(now, before *corev1.Container, path, whole *field.Path, why string) {
	path = path.Child("resources")
	if lacks(now.Resources.Requests, before.Resources.Requests) {
		c.forbidden(path.Child("requests"), "resource requests cannot be removed")
	}
	if lacks(now.Resources.Limits, before.Resources.Limits) {
		c.forbidden(path.Child("limits"), "resource limits cannot be removed")
	}
	restoreAmounts(&now.Resources, &before.Resources)
	if !equality.Semantic.DeepEqual(*now, *before) {
		c.forbidden(whole, why)
	}
}

func (c *podChecker) checkPodResize(now, before *corev1.PodSpec) {
	path := c.path.Child("resources")
	switch {
	case now.Resources == nil && before.Resources == nil:
		return
	case now.Resources == nil:
		c.forbidden(path, "pod-level resources cannot be removed")
		return
	}
	was := before.Resources
	if was == nil {
		was = &corev1.ResourceRequirements{}
	}
	if lacks(now.Resources.Requests, was.Requests) {
		c.forbidden(path.Child("requests"), "pod-level resource requests cannot be removed")
	}
	if lacks(now.Resources.Limits, was.Limits) {
		c.forbidden(path.Child("limits"), "pod-level resource limits cannot be removed")
	}
	restoreAmounts(now.Resources, was)
	if !equality.Semantic.DeepEqual(now.Resources, was) {
		c.forbidden(c.path, "only cpu and memory resources are mutable at pod-level")
	}
	now.Resources = before.Resources
}

// lacks reports whether a resource from before is gone.
func lacks(now, before corev1.ResourceList) bool {
	for name := range before {
		if _, kept := now[name]; !kept {
			return true
		}
	}
	return false
}

// restoreAmounts makes the cpu and memory in now those in before.
func restoreAmounts(now, before *corev1.ResourceRequirements) {
	now.Limits = withAmounts(now.Limits, before.Limits)
	now.Requests = withAmounts(now.Requests, before.Requests)
}

func withAmounts(now, before corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, q := range now {
		if name != corev1.ResourceCPU && name != corev1.ResourceMemory {
			out[name] = q
		}
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if q, had := before[name]; had {
			out[name] = q
		}
	}
	return out
}
