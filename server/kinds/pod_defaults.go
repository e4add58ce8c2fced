package kinds

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// defaultPod fills in what is left out of pods, besides what is left out of any
// pod spec.
func defaultPod(pod *corev1.Pod) {
	spec := &pod.Spec
	defaultPodSpec(spec)
	for i := range spec.InitContainers {
		requestLimits(&spec.InitContainers[i].Resources)
	}
	for i := range spec.Containers {
		requestLimits(&spec.Containers[i].Resources)
	}
	defaultPodResources(spec)
	setDefault(&spec.EnableServiceLinks, corev1.DefaultEnableServiceLinks)
	if spec.HostNetwork {
		exposeOnHost(spec.InitContainers)
		exposeOnHost(spec.Containers)
	}
	defaultPodStatus(&pod.Status)
}

// defaultPodStatus keeps the two ways to say the pod's addresses in step; the
// old one wins.
func defaultPodStatus(s *corev1.PodStatus) {
	switch {
	case s.PodIP != "" && (len(s.PodIPs) == 0 || s.PodIPs[0].IP != s.PodIP):
		s.PodIPs = []corev1.PodIP{{IP: s.PodIP}}
	case s.PodIP == "" && len(s.PodIPs) > 0:
		s.PodIP = s.PodIPs[0].IP
	}
}

// requestLimits requests what is limited and not requested.
func requestLimits(r *corev1.ResourceRequirements) {
	if r.Limits == nil {
		return
	}
	if r.Requests == nil {
		r.Requests = corev1.ResourceList{}
	}
	fillIn(r.Requests, r.Limits, func(corev1.ResourceName) bool { return true })
}

func exposeOnHost(containers []corev1.Container) {
	for i := range containers {
		for j := range containers[i].Ports {
			p := &containers[i].Ports[j]
			setEmpty(&p.HostPort, p.ContainerPort)
		}
	}
}

// defaultPodResources completes resources that are given for the pod as a whole
// from those of its containers.
func defaultPodResources(spec *corev1.PodSpec) {
	r := spec.Resources
	if r == nil || len(r.Limits)+len(r.Requests) == 0 {
		return
	}
	limits := corev1.ResourceList{}
	fillIn(limits, aggregate(spec, limitsOf), func(name corev1.ResourceName) bool {
		_, requested := r.Requests[name]
		return isHugePage(name) && !requested
	})
	r.Limits = merged(r.Limits, limits)
	if len(r.Limits) == 0 {
		return
	}
	requests := corev1.ResourceList{}
	fillIn(requests, aggregate(spec, requestsOf), func(name corev1.ResourceName) bool {
		return isPodLevel(name) && !isHugePage(name)
	})
	fillIn(requests, r.Limits, isPodLevel)
	r.Requests = merged(r.Requests, requests)
}

// merged adds to list what it lacks; a list that stays empty stays as it is.
func merged(list, more corev1.ResourceList) corev1.ResourceList {
	if list == nil && len(more) > 0 {
		list = corev1.ResourceList{}
	}
	fillIn(list, more, func(corev1.ResourceName) bool { return true })
	return list
}

// fillIn adds to list what it lacks of those in more that are wanted.
func fillIn(list, more corev1.ResourceList, wanted func(corev1.ResourceName) bool) {
	for name, q := range more {
		if _, has := list[name]; !has && wanted(name) {
			list[name] = q.DeepCopy()
		}
	}
}

func limitsOf(c *corev1.Container) corev1.ResourceList   { return c.Resources.Limits }
func requestsOf(c *corev1.Container) corev1.ResourceList { return c.Resources.Requests }

// aggregate is what the containers take together: the sum of those that run
// side by side, or what starting up takes at its height if that is more.
func aggregate(spec *corev1.PodSpec, of func(*corev1.Container) corev1.ResourceList) corev1.ResourceList {
	total, sidecars, peak := corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}
	for i := range spec.Containers {
		addTo(total, of(&spec.Containers[i]))
	}
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		if isSidecar(c) {
			addTo(total, of(c))
			addTo(sidecars, of(c))
			raiseTo(peak, sidecars)
			continue
		}
		step := sidecars.DeepCopy()
		addTo(step, of(c))
		raiseTo(peak, step)
	}
	raiseTo(total, peak)
	return total
}

func addTo(sum, list corev1.ResourceList) {
	for name, q := range list {
		s := sum[name].DeepCopy()
		s.Add(q)
		sum[name] = s
	}
}

func raiseTo(height, list corev1.ResourceList) {
	for name, q := range list {
		if h, has := height[name]; !has || q.Cmp(h) > 0 {
			height[name] = q.DeepCopy()
		}
	}
}

func isSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

func isHugePage(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// isPodLevel reports whether a resource may be given for the pod as a whole.
func isPodLevel(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory || isHugePage(name)
}
