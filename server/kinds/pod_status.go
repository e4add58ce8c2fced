package kinds

import (
	"math"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// preparePodStatus carries over what kubelets are known to leave out.
func preparePodStatus(pod, old *corev1.Pod) {
	pod.OwnerReferences = old.OwnerReferences
	now, before := &pod.Status, &old.Status
	setEmpty(&now.QOSClass, before.QOSClass)
	setEmpty(&now.ObservedGeneration, before.ObservedGeneration)
	if now.ResourceClaimStatuses == nil {
		now.ResourceClaimStatuses = before.ResourceClaimStatuses
	}
	if now.ExtendedResourceClaimStatus == nil {
		now.ExtendedResourceClaimStatus = before.ExtendedResourceClaimStatus
	}
	generations := map[corev1.PodConditionType][]int64{}
	for _, c := range before.Conditions {
		generations[c.Type] = append(generations[c.Type], c.ObservedGeneration)
	}
	for i := range now.Conditions {
		c := &now.Conditions[i]
		if g := generations[c.Type]; len(g) > 0 {
			setEmpty(&c.ObservedGeneration, g[0])
			generations[c.Type] = g[1:]
		}
	}
}

func validatePodStatus(pod, old *corev1.Pod) field.ErrorList {
	c := newPodChecker(&pod.Spec, &pod.ObjectMeta, field.NewPath("spec"))
	c.checkAnnotationUpdates(pod, old)
	now, before, path := &pod.Status, &old.Status, field.NewPath("status")
	c.checkPodConditions(now.Conditions, path.Child("conditions"))
	if name := now.NominatedNodeName; name != "" && name != before.NominatedNodeName {
		c.invalid(path.Child("nominatedNodeName"), name, apivalidation.NameIsDNSSubdomain(name, false)...)
		if old.Spec.NodeName != "" {
			c.forbidden(path.Child("nominatedNodeName"), "may not be set on pods that are already bound to a node")
		}
	}
	c.checkGeneration(now.ObservedGeneration, path)
	c.add(apivalidation.ValidateImmutableField(now.QOSClass, before.QOSClass, path.Child("qosClass"))...)
	c.checkStates(now.ContainerStatuses, before.ContainerStatuses, old.Spec.Containers, path.Child("containerStatuses"))
	c.checkStates(now.InitContainerStatuses, before.InitContainerStatuses, old.Spec.InitContainers, path.Child("initContainerStatuses"))
	c.checkStates(now.EphemeralContainerStatuses, before.EphemeralContainerStatuses, nil, path.Child("ephemeralContainerStatuses"))
	c.checkIPs(podIPs(now), podIPs(before), now.PodIPs, path.Child("podIPs"))
	if len(now.HostIPs) > 0 && now.HostIP != now.HostIPs[0].IP {
		c.invalid(path.Child("hostIPs").Index(0).Child("ip"), now.HostIPs[0].IP, "must be equal to `hostIP`")
	}
	c.checkIPs(hostIPs(now), hostIPs(before), now.HostIPs, path.Child("hostIPs"))
	for _, list := range []struct {
		name     string
		statuses []corev1.ContainerStatus
	}{
		{"containerStatuses", now.ContainerStatuses},
		{"initContainerStatuses", now.InitContainerStatuses},
		{"ephemeralContainerStatuses", now.EphemeralContainerStatuses},
	} {
		c.checkUsers(list.statuses, path.Child(list.name))
	}
	return c.list
}

func (c *podChecker) checkGeneration(n int64, path *field.Path) {
	if n < 0 {
		c.invalid(path.Child("observedGeneration"), n, "must be a non-negative integer")
	}
}

func (c *podChecker) checkPodConditions(conditions []corev1.PodCondition, path *field.Path) {
	for i, cond := range conditions {
		c.checkGeneration(cond.ObservedGeneration, path.Index(i))
		switch cond.Type {
		case corev1.PodScheduled, corev1.PodReady, corev1.PodInitialized:
		default:
			c.invalid(path.Index(i).Child("Type"), string(cond.Type), validation.IsQualifiedName(string(cond.Type))...)
		}
	}
}

// checkStates lets a container that ended run again only if it is to be
// restarted.
func (c *podChecker) checkStates(now, before []corev1.ContainerStatus, containers []corev1.Container, path *field.Path) {
	if containers != nil && restartsAll(c.spec) {
		return
	}
	for i, was := range before {
		end := was.State.Terminated
		j := slices.IndexFunc(now, func(s corev1.ContainerStatus) bool { return s.Name == was.Name && s.State.Terminated == nil })
		if end == nil || j < 0 {
			continue
		}
		k := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == was.Name })
		if k < 0 || !restarts(&containers[k], c.spec.RestartPolicy, end.ExitCode) {
			c.forbidden(path.Index(i).Child("state"), "may not be transitioned to non-terminated state")
		}
	}
}

// restartsAll reports whether the end of one container can restart all others.
func restartsAll(spec *corev1.PodSpec) bool {
	for ctr := range containersOf(spec) {
		for _, r := range ctr.RestartPolicyRules {
			if r.Action == corev1.ContainerRestartRuleActionRestartAllContainers {
				return true
			}
		}
	}
	return false
}

// restarts reports whether a container that ended with code is restarted: its
// own rules come first, then its own policy, then the pod's.
func restarts(ctr *corev1.Container, ofPod corev1.RestartPolicy, code int32) bool {
	policy := string(ofPod)
	if ctr.RestartPolicy != nil {
		policy = string(*ctr.RestartPolicy)
		for _, r := range ctr.RestartPolicyRules {
			if e := r.ExitCodes; e != nil && slices.Contains(e.Values, code) == (e.Operator == corev1.ContainerRestartRuleOnExitCodesOpIn) {
				return r.Action == corev1.ContainerRestartRuleActionRestart
			}
		}
	}
	return policy == string(corev1.RestartPolicyAlways) || policy == string(corev1.RestartPolicyOnFailure) && code != 0
}

func podIPs(s *corev1.PodStatus) []string {
	var ips []string
	for _, ip := range s.PodIPs {
		ips = append(ips, ip.IP)
	}
	return ips
}

func hostIPs(s *corev1.PodStatus) []string {
	var ips []string
	for _, ip := range s.HostIPs {
		ips = append(ips, ip.IP)
	}
	return ips
}

// checkIPs checks addresses, of which there is at most one of each family;
// value is what the error shows.
func (c *podChecker) checkIPs(ips, before []string, value any, path *field.Path) {
	v6 := 0
	for i, ip := range ips {
		c.add(validation.IsValidIPForLegacyField(path.Index(i), ip, true, before)...)
		if addr, err := netip.ParseAddr(ip); err == nil && addr.Is6() && !addr.Is4In6() {
			v6++
		}
	}
	if len(ips) > 2 || len(ips) == 2 && v6 != 1 {
		c.invalid(path, value, "may specify no more than one IP for each IP family")
	}
}

func (c *podChecker) checkUsers(statuses []corev1.ContainerStatus, path *field.Path) {
	windows := c.spec.OS != nil && c.spec.OS.Name == corev1.Windows
	for i, s := range statuses {
		if s.User == nil || s.User.Linux == nil {
			continue
		}
		u, path := s.User.Linux, path.Index(i).Child("user", "linux")
		if windows {
			c.forbidden(path, "cannot be set for a windows pod")
			continue
		}
		if u.UID < 0 || u.UID > math.MaxUint32 {
			c.invalid(path.Child("uid"), u.UID, "must be between 0 and 4294967295, inclusive")
		}
		c.checkGroup(&u.GID, path.Child("gid"))
		for g := range u.SupplementalGroups {
			c.checkGroup(&u.SupplementalGroups[g], path.Child("supplementalGroups").Index(g))
		}
	}
}
